import { expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp } from '../support/app.ts';
import { act, HOUR_MS } from '../support/sandbox.ts';
import { openLink, pass, startDeafShop } from '../support/shop.ts';
import { environmentOf, failing, say } from './settled.ts';

it('says what asking about every link that can still be paid costs, and does it', async () => {
  const shop = await startDeafShop();
  const environment = environmentOf(shop.settled);
  const nothing = await say(['reconcile'], environment);
  expect(nothing.text).toBe(
    "settled knows the id of no link that can still be paid. The service's list is read for links that are not known.\n",
  );
  const link = await openLink(shop, 'order-1');
  await openLink(shop, 'order-2');
  await pass(shop, 7 * HOUR_MS, HOUR_MS);
  await act(shop.sandbox, link, 'pay');

  const dry = await say(['reconcile', '--dry-run'], environment);
  expect(dry.data).toEqual({ dryRun: true, links: 2, etaSeconds: 60 });
  expect(dry.text).toBe('2 links, with a request each: at most 1 minute. Nothing was done.\n');
  await pass(shop, 2_000);
  expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');

  const done = await say(['reconcile'], environment);
  expect(done.text).toMatch(/^Asking about [12] links?, with a request each: at most 1 minute\.\n$/);
  await pass(shop, 2_000);
  expect((await shop.settled.order('order-1')).state).toBe('paid');
});

it('says that no service is configured', async () => {
  expect(await failing(['reconcile'], environmentOf(await startTestApp()))).toMatchObject({
    code: 'api_not_configured',
    exit: EXIT.configuration,
  });
});
