import { expect } from 'vitest';
import { runProof } from '../prove/proof.ts';
import { times } from '../support/timing.ts';

const CYCLES = Number(process.env.OPEN_CYCLES ?? times(1, 2));

/** Runs some of what `npm run prove:open` runs by the hundred; it says itself whether each kill was at its point. */
export async function proveOpen(points: string): Promise<void> {
  const { output } = await runProof('open', '--cycles', String(CYCLES), '--points', points, '--at-once', '1');
  console.log(output);
  expect(output).toMatch(/\nproved in \d+ s\n$/);
  expect(output).toContain(`${CYCLES * points.split(',').length} kills`);
}
