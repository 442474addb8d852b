import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Litestream as its users run it: a process of its own, with the configuration that docs/operations.md shows. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const LITESTREAM = join(
  ROOT,
  `node_modules/@flydotio/litestream-${process.platform}-${process.arch}/litestream`,
);

/** Why it cannot run here; null if it can. */
export const NO_LITESTREAM = existsSync(LITESTREAM)
  ? null
  : `Litestream is not installed: its package is for Linux on x64, and this is ${process.platform} on ${process.arch}; or npm was told to leave optional packages out`;

export type Replicated = {
  /** The file of the configuration. */
  config: string;
  /** The time between two copies, plus the time between two looks at the database. */
  intervalMs: number;
};

/** Writes the configuration of docs/operations.md into a folder, with this database, and a folder in the object store's place. */
export function configureLitestream(folder: string, { db, replica }: { db: string; replica: string }): Replicated {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
  const [, shown = ''] = /```yaml\n(# \/etc\/litestream\.yml\n[\s\S]*?)```/.exec(page) ?? [];
  const given = shown.replace(/^( *- path: ).*$/m, `$1${db}`).replace(/^( *- url: )s3:.*$/m, `$1file://${replica}`);
  if (!given.includes(db) || !given.includes(replica)) throw new Error('docs/operations.md shows no configuration');
  const config = join(folder, 'litestream.yml');
  writeFileSync(config, given);
  return { config, intervalMs: durationMs(given, 'monitor-interval') + durationMs(given, 'sync-interval') };
}

function durationMs(given: string, name: string): number {
  const [, number = '', unit = ''] = new RegExp(`^ *${name}: (\\d+)(ms|s)$`, 'm').exec(given) ?? [];
  if (number === '') throw new Error(`the configuration of docs/operations.md has no ${name}`);
  return Number(number) * (unit === 's' ? 1_000 : 1);
}

export type RunningLitestream = { child: ChildProcess; ended: Promise<unknown>; output: () => string };

export function startLitestream({ config }: Replicated): RunningLitestream {
  const child = spawn(LITESTREAM, ['replicate', '-config', config], { env: {}, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = new Promise((resolve) => child.once('close', resolve));
  return { child, ended, output: () => output };
}

/** Restores the newest state of the replica to a file that does not exist yet. */
export async function restoreFromLitestream({ config }: Replicated, db: string, to: string): Promise<void> {
  await promisify(execFile)(LITESTREAM, ['restore', '-config', config, '-o', to, db], { env: {} });
}
