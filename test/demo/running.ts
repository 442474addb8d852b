import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, vi } from 'vitest';
import { testFolder } from '../support/app.ts';
import { type RunningProcess, type SpawnOptions, spawnSettled } from '../support/process.ts';

/** `settled demo`, as the launcher runs it. */
const DEMO_MAIN = fileURLToPath(new URL('../../demo/main.ts', import.meta.url));

type Demo = RunningProcess & {
  /** What it leaves behind: entries of its temporary folder, and processes that have it in their environment. */
  left(): { files: string[]; processes: string[] };
  nothingLeft(): Promise<void>;
};

/** Starts `settled demo` with a temporary folder of its own. */
export function spawnDemo(
  args: readonly string[],
  environment: Record<string, string> = {},
  options: SpawnOptions & { temporary?: string } = {},
): Demo {
  const { temporary = testFolder(), ...rest } = options;
  const running = spawnSettled(args, { TMPDIR: temporary, ...environment }, { script: DEMO_MAIN, ...rest });
  const left = () => ({ files: readdirSync(temporary), processes: processesWith(`TMPDIR=${temporary}`) });
  return {
    ...running,
    left,
    nothingLeft: () =>
      vi.waitFor(
        () => {
          const { files, processes } = left();
          if (files.length + processes.length > 0) throw new Error(`left: ${[...files, ...processes]}`);
        },
        { timeout: 12_000, interval: 50 },
      ),
  };
}

export type Addresses = {
  shop: string;
  sandbox: string;
  operator: string;
  hooks: string;
  folder: string;
  store: string;
};

/** Starts a demo and waits until it serves. */
export function startedDemo(options: SpawnOptions = {}): Promise<Demo & { addresses: Addresses }> {
  return whenServing(spawnDemo(['--json'], {}, options));
}

/** A demo for all tests of one file. */
export function useDemo(): () => Addresses {
  const temporary = mkdtempSync(join(tmpdir(), 'settled-test-'));
  let demo: Demo & { addresses: Addresses };
  beforeAll(async () => {
    demo = await whenServing(spawnDemo(['--json'], {}, { temporary, atEnd: () => {} }));
  });
  afterAll(async () => {
    demo.child.kill('SIGTERM');
    await demo.finished;
    rmSync(temporary, { recursive: true, force: true });
  });
  return () => demo.addresses;
}

async function whenServing(demo: Demo): Promise<Demo & { addresses: Addresses }> {
  return { ...demo, addresses: JSON.parse(await demo.line(/^\{"shop"/)) };
}

/** The command lines of the processes of this machine that have an entry in their environment (Linux). */
function processesWith(entry: string): string[] {
  const found = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && environmentOf(name).includes(entry),
  );
  return found.map((pid) => `${pid} ${read(pid, 'cmdline').replaceAll('\0', ' ')}`);
}

function environmentOf(pid: string): string[] {
  return read(pid, 'environ').split('\0');
}

/** Empty for a process that has ended meanwhile. */
function read(pid: string, file: string): string {
  try {
    return readFileSync(join('/proc', pid, file), 'utf8');
  } catch {
    return '';
  }
}
