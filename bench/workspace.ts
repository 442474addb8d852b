import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyStore } from './stores.ts';

/** A temporary folder for the databases and the servers' output, removed when the bench ends. */
export type Workspace = {
  path(name: string): string;
  /** The file of the servers' output. */
  readonly log: string;
  /** The end of that output. */
  logTail(): string;
  /** A new copy of a database under the name `name`, in place of the last one. */
  freshCopy(template: string, name: string): string;
  remove(name: string): void;
};

/** The files that SQLite and settled keep beside a database. */
const SUFFIXES = ['', '-wal', '-shm', '-journal', '.lock', '.new'];

export function openWorkspace(): Workspace {
  const folder = mkdtempSync(join(tmpdir(), 'settled-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = (name: string) => join(folder, name);
  const log = path('servers.log');
  const remove = (name: string) => {
    for (const suffix of SUFFIXES) rmSync(path(name) + suffix, { force: true });
  };
  return {
    path,
    log,
    logTail: () => {
      try {
        return readFileSync(log, 'utf8').slice(-4000);
      } catch {
        return '';
      }
    },
    freshCopy: (template, name) => {
      remove(name);
      copyStore(path(template), path(name));
      return path(name);
    },
    remove,
  };
}

/** Works in a new one. If that fails, it shows the end of the servers' output. */
export async function inWorkspace<T>(work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const workspace = openWorkspace();
  try {
    return await work(workspace);
  } catch (error) {
    process.stderr.write(`\nthe servers' output ends with:\n${workspace.logTail()}\n`);
    throw error;
  }
}
