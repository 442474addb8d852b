import { execFileSync } from 'node:child_process';
import { existsSync, openSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';

export type FreezableDisk = {
  /** For the settled process whose commits can be frozen. */
  environment: Record<string, string>;
  freeze(): void;
  /** Until a commit hangs. */
  hangs(): Promise<void>;
  thaw(): void;
};

/** A disk that can stop answering: see frozen_disk.ts. `pipe` is a path where nothing is. */
export function freezableDisk(pipe: string): FreezableDisk {
  const preload = fileURLToPath(new URL('frozen_disk.ts', import.meta.url));
  return {
    environment: { NODE_OPTIONS: `--import=${preload}`, FROZEN_DISK: pipe },
    freeze: () => void execFileSync('mkfifo', [pipe]),
    hangs: () => vi.waitFor(() => expect(existsSync(`${pipe}.waiting`)).toBe(true), { timeout: 5_000 }),
    thaw: () => {
      const writing = openSync(pipe, 'r+');
      rmSync(pipe);
      void writing;
    },
  };
}
