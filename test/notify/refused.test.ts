import { expect, it } from 'vitest';
import { openAttention } from '../support/rows.ts';
import { HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import { POLL_MS, type Stage, startStage } from './stage.ts';

async function isRaised({ store }: Stage): Promise<boolean> {
  const open = await openAttention(store);
  return open.some(({ kind }) => kind === 'shop_refuses_notices');
}

it('a shop that does not take one order, and takes the others, is not said to refuse notices', async () => {
  const stage = await startStage();
  stage.shop.answerWith(({ body }) => (body.includes('"broken"') ? 500 : 204));
  await stage.happen(await stage.newOrder('broken'));
  const others = [3_000, 20_000, 2 * MINUTE_MS, 10 * MINUTE_MS, ...Array<number>(24).fill(30 * MINUTE_MS)];
  for (const afterMs of others) {
    await stage.passFar(afterMs);
    // The look that finds what failed two minutes ago.
    await stage.pass(POLL_MS);
    expect(await isRaised(stage)).toBe(false);
    await stage.happen(await stage.newOrder());
    await stage.quiet();
  }
  const [broken] = await stage.list();
  expect(broken).toMatchObject({ reference: 'broken', status: 'pending' });
  expect(broken?.attempt).toBeGreaterThan(10);
});

it('a shop that never answers is reported as refusing notices, until it takes one', async () => {
  const stage = await startStage();
  stage.shop.answerWith((_, response) => void response.socket?.destroy());
  await stage.happen(await stage.newOrder());
  await stage.passFar(6_000);
  expect(await isRaised(stage)).toBe(false);
  await stage.passFar(MINUTE_MS);
  expect(await isRaised(stage)).toBe(true);
  stage.shop.answerWith(204);
  await stage.passFar(HOUR_MS);
  expect(await isRaised(stage)).toBe(false);
});
