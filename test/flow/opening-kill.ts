import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { times } from '../support/timing.ts';

const PROOF = fileURLToPath(new URL('../../prove/open.ts', import.meta.url));
const CYCLES = Number(process.env.OPEN_CYCLES ?? times(1, 2));

/** Runs some of what `npm run prove:open` runs by the hundred; it says itself whether each kill was at its point. */
export async function proveOpen(points: string): Promise<void> {
  const args = [PROOF, '--cycles', String(CYCLES), '--points', points, '--at-once', '1'];
  const ended = await promisify(execFile)(process.execPath, args).catch((failed) => failed);
  console.log(ended.stdout);
  expect(`${ended.stdout}${ended.stderr}`).toMatch(/\nproved in \d+ s\n$/);
  expect(ended.stdout).toContain(`${CYCLES * points.split(',').length} kills`);
}
