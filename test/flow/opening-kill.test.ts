import { describe, expect, it } from 'vitest';
import { runProof } from '../prove/proof.ts';
import { times } from '../support/timing.ts';

const CYCLES = Number(process.env.OPEN_CYCLES ?? times(1, 2));
const POINTS = 5;

describe('a process killed while it opens ten links', () => {
  it('from the commit of an intent to what is stored of the answer: each order gets one link, whose webhooks verify', async () => {
    // It says itself whether each kill was at its point.
    const { output } = await runProof('open', '--cycles', String(CYCLES), '--at-once', '2');
    console.log(output);
    expect(output).toMatch(/\nproved in \d+ s\n$/);
    expect(output).toContain(`${CYCLES * POINTS} kills`);
  });
});
