import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { namedToken } from '../support/access.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { act, plan } from '../support/sandbox.ts';
import { check, openLink, payLink, quiet, type Shop, sell, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

/** A text that a browser would carry out if a page did not escape it. */
export const HOSTILE = `"><script>alert('x')</script><img src=x onerror=alert(1)>`;
/** The same in letters that a header's name may have (RFC 9110 §5.1). */
const HOSTILE_HEADER = `x-'&\`-signature`;
const HOSTILE_ORDER = `order ${HOSTILE}`;

/** Something on every page about deliveries, shop, service, audit and system, with hostile words wherever a stranger writes. */
export function seededShop(): () => Shop {
  let shop: Shop | undefined;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    const atEnd = (end: () => unknown) => void ends.unshift(end);
    const callback = await startCallback({ atEnd });
    callback.answerWith({ status: 410, body: HOSTILE });
    const environment = { ...callback.environment, SETTLED_CONSOLE_BADGE: 'sandbox' };
    shop = await startShop({ environment, storePath: join(folder, 'settled.db'), atEnd });
    await payLink(shop, await openLink(shop, 'order-paid'));
    await quiet(shop);
    callback.answerWith({ status: 500, body: HOSTILE });
    await seedDeliveries(shop);
    await seedDrift(shop);
    await seedPeople(shop);
    await quiet(shop);
    return async () => {
      for (const end of ends) await end();
    };
  });
  return () => {
    if (shop === undefined) throw new Error('the shop has not been started yet');
    return shop;
  };
}

/** Dead, doubled, conflicting and stale events, and rejected deliveries. */
async function seedDeliveries({ settled, sandbox }: Shop): Promise<void> {
  const link = await settled.reserve(HOSTILE_ORDER);
  const nowMs = sandbox.clock.nowMs();
  const send = (body: string, atMs = nowMs) =>
    settled.deliver(link, body, signedHeaders(link.webhookSecret, body, String(atMs)));
  await send('not JSON');
  await send(JSON.stringify({ id: HOSTILE, type: HOSTILE, data: {} }));
  const held = paymentEvent({ linkId: 'pl_held', amount: '60.00', paymentId: 'pay_held' });
  for (let n = 0; n < 2; n++) await send(held);
  await send(paymentEvent({ linkId: 'pl_held', id: JSON.parse(held).id, status: 'PENDING' }));
  await send(paymentEvent({ linkId: 'pl_held' }), nowMs - 3_600_000);
  await settled.deliver(link, held, { ...signedHeaders('another secret of 32 bytes, or so', held, String(nowMs)) });
  await settled.deliver(link, held, { 'content-type': 'application/json', [HOSTILE_HEADER]: 'ab'.repeat(32) });
  await eventually(async () => {
    const { events } = (await settled.api('/v1/stats')).body.stats;
    if (events.pending + events.leased > 0) throw new Error('not all is settled');
  });
  const { attention } = (await settled.api('/v1/attention')).body;
  const { id } = attention.find(({ kind }: { kind: string }) => kind === 'event_not_understood');
  await settled.api(`/v1/attention/${id}/end`, { body: { reason: HOSTILE } });
}

/** A payment that no webhook told of, and one that waits to be asked about. */
async function seedDrift(shop: Shop): Promise<void> {
  await plan(shop.sandbox, { fault: 'drop', count: null });
  const link = await sell(shop, 'order-unheard');
  await act(shop.sandbox, link, 'pay');
  await check(shop, 'order-unheard');
}

async function seedPeople({ settled }: Shop): Promise<void> {
  for (const name of ['ana', 'bruno', 'carla']) await namedToken(settled, 'operator', name);
  await settled.api('/v1/tokens/carla/revoke', { body: {} });
}
