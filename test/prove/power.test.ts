import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const PROOF = fileURLToPath(new URL('../../prove/power.ts', import.meta.url));
const STATES = 24;

/** Some of the states that `npm run prove:power` examines by the thousand. */
describe('a power failure', () => {
  it('loses nothing that was acknowledged, and does if commits are not synced', ({ skip }) => {
    const args = [PROOF, '--states', String(STATES), '--seed', '20261120'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (stdout.startsWith('skipped')) {
      console.log(`power-loss proof ${stdout.trim()}`);
      skip(stdout.trim());
    }
    expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 });
    expect(stdout).toMatch(`as settled has it: ${STATES} states`);
    expect(stdout).toMatch(/0 lost something acknowledged, 0 had half a transaction, 0 were damaged, 0 did not start/);
    expect(stdout).toMatch(/acknowledged events lost at once\nproved in/);
  });
});
