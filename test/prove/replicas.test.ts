import { describe, expect, it } from 'vitest';
import { runProof } from './proof.ts';

const SMALL = { links: 40, openings: 4, seconds: 1, 'kill-every': 250, 'postgres-kills': 1 };

/** What `npm run prove:replicas` does with 20 000 links. */
describe('replicas that share a database', () => {
  it('lose nothing, pay once, and send each notice under one id, while they and PostgreSQL are killed', async () => {
    const options = Object.entries(SMALL).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const { code, output } = await runProof('replicas', ...options, '--lapse');
    expect(code, output).toBe(0);
    expect(output).toMatch(/PostgreSQL killed +1\n/);
    // Otherwise the kills missed the load, and the rest says nothing.
    expect(Number(/replicas killed +(\d+)\n/.exec(output)?.[1])).toBeGreaterThanOrEqual(3);
    expect(output).toMatch(/\nproved in \d+ s\n$/);
  });
});
