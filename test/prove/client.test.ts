import { describe, expect, it } from 'vitest';
import { runProof } from './proof.ts';

const KILLS = 4;

/** What `npm run prove:client` does with 100 kills for each way to learn of the orders. */
describe('a shop that keeps its cursor beside its orders', () => {
  it('forgets nothing and packs nothing twice while it is killed', async () => {
    const { code, output } = await runProof('client', '--kills', String(KILLS), '--way', 'feed');
    expect(code, output).toBe(0);
    const count = (what: string) => Number(new RegExp(`^ +${what} +(\\d+)$`, 'm').exec(output)?.[1]);
    expect(count('kills of the shop')).toBe(KILLS);
    // Otherwise the kills missed the load, and the rest says nothing.
    expect(
      count('before it committed the page in its hands') + count('after that, before the next page'),
    ).toBeGreaterThan(0);
    expect(count('orders that stay paid')).toBeGreaterThan(KILLS);
    expect([count('paid and not packed'), count('packed twice')]).toEqual([0, 0]);
    expect(output).toMatch(/\nproved in \d+ s\n$/);
  });
});
