import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import type { RunningProcess } from '../../prove/harness/program.ts';
import { testFolder } from '../support/app.ts';
import { type SpawnOptions, spawnSettled } from '../support/process.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

/** `settled demo`, as the launcher runs it. */
const DEMO_MAIN = fileURLToPath(new URL('../../demo/main.ts', import.meta.url));
const SWEEPER = fileURLToPath(new URL('../../demo/sweeper.ts', import.meta.url));

export type Demo = RunningProcess & {
  /** The entries of its temporary folder. */
  files(): string[];
  /** The command lines of the processes that have that folder in their environment. */
  processes(): string[];
  /** What is left when it has ended in order. It kills its sweeper last, which may be there for a moment more. */
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
  const files = () => readdirSync(temporary);
  const processes = () => processesWith(`TMPDIR=${temporary}`);
  return {
    ...running,
    files,
    processes,
    left: () => ({ files: files(), processes: processes().filter((line) => !line.includes(SWEEPER)) }),
    nothingLeft: () =>
      eventually(() => {
        const left = [...files(), ...processes()];
        if (left.length > 0) throw new Error(`left: ${left}`);
      }),
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

/** A demo for all tests of one file. */
export function useDemo(): () => Addresses {
  let addresses: Addresses | undefined;
  const demo = sharedDemo(['--json']);
  beforeAll(async () => {
    addresses = JSON.parse(await demo().line(/^\{"shop"/));
  });
  return () => addresses as Addresses;
}

/** A demo for several tests: the first that asks for it starts it. It ends after the last. */
export function sharedDemo(
  args: readonly string[],
  { environment = {}, through = [] }: { environment?: Record<string, string>; through?: readonly string[] } = {},
): () => Demo {
  const temporary = mkdtempSync(join(tmpdir(), 'settled-test-'));
  let demo: Demo | undefined;
  afterAll(async () => {
    demo?.child.kill('SIGTERM');
    await demo?.finished;
    rmSync(temporary, { recursive: true, force: true });
  });
  return () => {
    demo ??= spawnDemo(args, environment, { temporary, through, atEnd: () => {} });
    return demo;
  };
}

/** The command lines of the processes of this machine that have an entry in their environment (Linux). */
function processesWith(entry: string): string[] {
  const found = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && environmentOf(name).includes(entry));
  return found
    .map((pid) => [pid, read(pid, 'cmdline').replaceAll('\0', ' ')] as const)
    .filter(([, line]) => line !== '')
    .map(([pid, line]) => `${pid} ${line}`);
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
