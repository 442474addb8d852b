import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

export type FreezableDisk = {
  /** For the settled process whose commits can be frozen. */
  environment: Record<string, string>;
  freeze(): void;
  /** Until a commit hangs. */
  hangs(): Promise<void>;
  thaw(): void;
};

/** A disk that can stop answering: see frozen-disk.ts. `pipe` is an unused path. */
export function freezableDisk(pipe: string): FreezableDisk {
  const preload = fileURLToPath(new URL('frozen-disk.ts', import.meta.url));
  return {
    environment: { NODE_OPTIONS: `--import=${preload}`, FROZEN_DISK: pipe },
    freeze: () => void execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]),
    hangs: () => eventually(() => expect(existsSync(`${pipe}.waiting`)).toBe(true)),
    thaw: () => {
      // A process that waits to read the pipe continues once another opens it for writing.
      const pipeEnd = openSync(pipe, 'r+');
      rmSync(pipe);
      closeSync(pipeEnd);
    },
  };
}

export type SmallDisk = {
  /** Runs a command that sees the disk: it is mounted for that command alone. */
  through: readonly string[];
  /** Where the disk is for the command. */
  folder: string;
  /** The path by which other processes reach the same folder, while the process of the command lives. */
  folderOf(pid: number): string;
};

/** A disk of `bytes` that is mounted at `folder`; null if this system does not allow it. */
export function smallDisk(folder: string, bytes: number): SmallDisk | null {
  const mount = `mount -t tmpfs -o size=${bytes} settled "$0" && exec "$@"`;
  const ways = [
    ['unshare', '-Urm', 'sh', '-c', mount, folder],
    ['unshare', '-m', 'sh', '-c', mount, folder],
  ];
  const through = ways.find(([command, ...rest]) => spawnSync(command as string, [...rest, 'true']).status === 0);
  if (through === undefined) return null;
  return { through, folder, folderOf: (pid) => `/proc/${pid}/root${folder}` };
}

/** Writes a file until the disk has no byte left. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'a');
  try {
    for (let bytes = 1 << 20; bytes > 0; ) {
      try {
        writeSync(file, Buffer.alloc(bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        bytes >>= 1;
      }
    }
  } finally {
    closeSync(file);
  }
}
