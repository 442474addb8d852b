import { describe, expect, it } from 'vitest';
import { runProof } from './proof.ts';

const STATES = 24;

/** Some of the states that `npm run prove:power` examines by the thousand. */
describe('a power failure', () => {
  it('loses nothing that was acknowledged, and does if commits are not synced', async ({ skip }) => {
    const { code, output } = await runProof('power', '--states', String(STATES), '--seed', '20261120');
    if (output.startsWith('skipped')) {
      console.log(`power-loss proof ${output.trim()}`);
      skip(output.trim());
    }
    expect(code, output).toBe(0);
    expect(output).toMatch(`as settled has it: ${STATES} states`);
    expect(output).toMatch(/0 lost something acknowledged, 0 had half a transaction, 0 were damaged, 0 did not start/);
    expect(output).toMatch(/acknowledged events lost at once\nproved in/);
  });
});
