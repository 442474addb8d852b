import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DemoError, EXIT } from './exit.ts';

const SWEEPER = fileURLToPath(new URL('./sweeper.ts', import.meta.url));

export type Folder = {
  readonly path: string;
  /** Says which process writes there, so that the sweeper waits for it. */
  wroteBy(pid: number): void;
  /** To be called when nobody writes there any more. A folder of --keep stays. */
  close(): void;
};

/**
 * The folder in which everything of a demo lies: a temporary one of this user alone (0700), which goes with the demo even
 * where that is killed; or the one to keep. Throws a `DemoError` where that cannot be used.
 */
export function openFolder(keep: string | null): Folder {
  if (keep !== null) return { path: folderToKeep(keep), wroteBy: () => {}, close: () => {} };
  const path = temporaryFolder();
  const sweeper = startSweeper(path);
  return {
    path,
    wroteBy: (pid) => sweeper.connected && sweeper.send(pid, () => {}),
    close: () => {
      rmSync(path, { recursive: true, force: true });
      sweeper.kill('SIGKILL');
    },
  };
}

function temporaryFolder(): string {
  try {
    return mkdtempSync(join(realpathSync(tmpdir()), 'settled-demo-'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `No folder can be made in ${tmpdir()} (${code}). Name one yourself: --keep FOLDER`;
    throw new DemoError(EXIT.cannotOpen, message);
  }
}

function folderToKeep(keep: string): string {
  const path = resolve(keep);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (readdirSync(path).length === 0) return path;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new DemoError(EXIT.cannotOpen, `${path} cannot be used (${code}). Name another folder: --keep FOLDER`);
  }
  throw new DemoError(EXIT.cannotOpen, `${path} is not empty. Name a new folder: --keep FOLDER`);
}

function startSweeper(path: string): ChildProcess {
  const sweeper = spawn(process.execPath, [SWEEPER, path], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Ctrl+C in the terminal is not meant for it.
    detached: true,
  });
  // Without it a folder may be left behind where the demo is killed; nothing else is lost.
  sweeper.on('error', () => {});
  return sweeper;
}
