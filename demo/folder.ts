import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DemoError, EXIT } from './command.ts';

const SWEEPER = fileURLToPath(new URL('./sweeper.ts', import.meta.url));

export type Folder = {
  readonly path: string;
  /** Adds a process that writes there, so that the sweeper waits for its end. */
  wroteBy(pid: number): void;
  /** Removes the folder, unless --keep named it. Call it when no process writes there any more. */
  close(): void;
};

/**
 * The folder of a demo's files: the one to keep; or a temporary one with mode 0700, which is removed even if the demo
 * is killed. Throws a `DemoError` if it cannot be used.
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
    // Its own process group, so that Ctrl+C in the terminal does not stop it.
    detached: true,
  });
  // Without a sweeper a killed demo leaves its folder behind, and nothing worse happens.
  sweeper.on('error', () => {});
  return sweeper;
}
