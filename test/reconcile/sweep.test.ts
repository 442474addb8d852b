import { describe, expect, it } from 'vitest';
import { peek } from '../support/rows.ts';
import { act, createLink, HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import {
  openLink,
  pass,
  passUntil,
  requestsOf,
  reserveLink,
  type Shop,
  startDeafShop,
  startShop,
} from '../support/shop.ts';

const OPEN_LINKS = 45;
const PAGE_SIZE = 20;
/** From the end of a sweep to the next. */
const SWEEP_MS = 10 * MINUTE_MS;

const stateOf = async ({ settled }: Shop, reference: string) => (await settled.order(reference)).state;
const isList = ({ path }: { path: string }) => path.includes('?page=');

/** Lets time pass until the schedule asks about nothing in the next hours: a day after the link was made at the soonest. */
async function passFreshChecks(shop: Shop): Promise<void> {
  const soonest = () => peek(shop.settled.storePath, 'SELECT min(next_check_at_ms) AS ms FROM link')[0].ms;
  await pass(shop, 6 * HOUR_MS + MINUTE_MS, HOUR_MS);
  await passUntil(shop, () => soonest() > shop.sandbox.clock.nowMs() + HOUR_MS, { stepMs: 5 * MINUTE_MS });
}

describe('the sweep', () => {
  it('finds what changed among many open links with a few requests, long before the schedule asks', async () => {
    const shop = await startDeafShop();
    const { sandbox } = shop;
    for (let n = 1; n <= OPEN_LINKS; n++) await openLinkInTime(shop, `order-${n}`);
    await passFreshChecks(shop);
    const before = (await requestsOf(sandbox)).at(-1)?.number ?? 0;
    for (const reference of ['order-1', 'order-30']) await act(sandbox, { id: reference }, 'pay');
    const bothPaid = async () =>
      (await stateOf(shop, 'order-1')) === 'paid' && (await stateOf(shop, 'order-30')) === 'paid';
    await passUntil(shop, bothPaid, { withinMs: SWEEP_MS + MINUTE_MS, stepMs: 20_000 });
    const asked = (await requestsOf(sandbox)).filter(({ number }) => number > before);
    const lists = asked.filter(isList);
    const pages = Math.ceil(OPEN_LINKS / PAGE_SIZE);
    expect(lists.length).toBeLessThanOrEqual(2 * pages);
    // The service says how many there are: none is read behind the last.
    expect(lists.filter(({ path }) => Number(path.split('=').at(-1)) > pages)).toEqual([]);
    expect(asked.length - lists.length).toBe(2);
    const drift = peek(shop.settled.storePath, 'SELECT ours, theirs, rule, right_side, learned_by FROM drift');
    expect(drift).toHaveLength(2);
    expect(drift[0]).toMatchObject({ rule: 'paid', right_side: 'service', learned_by: 'listed' });
    expect(drift[0].ours).toContain('awaiting_payment');
  });

  it('stops past the oldest open link', async () => {
    const shop = await startDeafShop();
    for (let n = 1; n <= 2 * PAGE_SIZE + 1; n++) {
      await createLink(shop.sandbox, { externalReference: `elsewhere-${n}` });
    }
    await pass(shop, HOUR_MS, HOUR_MS);
    await openLink(shop, 'order-1');
    const before = (await requestsOf(shop.sandbox)).at(-1)?.number ?? 0;
    await pass(shop, SWEEP_MS + MINUTE_MS, MINUTE_MS);
    const lists = (await requestsOf(shop.sandbox)).filter((one) => one.number > before && isList(one));
    expect(lists.map(({ path }) => path)).toEqual(['/api/v1/payment-links?page=1']);
  });

  it('finds a reserved link without an event, and its order is paid', async () => {
    const shop = await startDeafShop();
    await shop.settled.reserve('another');
    const fields = await reserveLink(shop, 'order-1');
    await passFreshChecks(shop);
    const link = await createLink(shop.sandbox, fields);
    await act(shop.sandbox, link, 'pay');
    const paid = async () => (await stateOf(shop, 'order-1')) === 'paid';
    await passUntil(shop, paid, { withinMs: SWEEP_MS + MINUTE_MS, stepMs: 20_000 });
    expect(await shop.settled.order('order-1')).toMatchObject({ learnedBy: 'reconciliation', link: { id: link.id } });
    expect(peek(shop.settled.storePath, 'SELECT type FROM inbox')).toEqual([{ type: 'listed' }]);
  });

  it('is off if the service has no list, like its sandbox, and links are still asked about', async () => {
    const shop = await startShop({ service: 'sandbox' });
    const link = await openLink(shop, 'order-1');
    await pass(shop, 3 * HOUR_MS, 5 * MINUTE_MS);
    const requests = await requestsOf(shop.sandbox);
    expect(requests.filter(isList).map(({ status }) => status)).toEqual([403]);
    const asked = requests.filter(({ path }) => path.endsWith(link.id));
    expect(asked).toHaveLength(3);
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
  });

  it('continues where it stopped once the budget has room again', async () => {
    const shop = await startDeafShop({ environment: { SETTLED_API_BUDGET_PER_MINUTE: '5' } });
    for (let n = 1; n <= OPEN_LINKS; n++) {
      const fields = await reserveLink(shop, `order-${n}`);
      const link = await createLink(shop.sandbox, fields);
      const { status } = await shop.settled.api('/v1/links', {
        body: { reference: `order-${n}`, amount: '100', id: link.id },
      });
      expect(status).toBe(200);
    }
    const lists = async () => (await requestsOf(shop.sandbox)).filter((one) => isList(one) && one.status === 200);
    await passUntil(shop, async () => (await lists()).length >= 3, { withinMs: 2 * HOUR_MS, stepMs: 30_000 });
    const pages = (await lists()).map(({ path }) => path.split('=').at(-1));
    expect(pages.slice(0, 3)).toEqual(['1', '2', '3']);
  });
});

/** Opens a link; if the budget is spent, time passes until it has room. */
async function openLinkInTime(shop: Shop, reference: string): Promise<void> {
  const body = { reference, title: 'A chair', amount: 100 };
  let answered: { status: number } | undefined;
  const opening = shop.settled.api('/v1/orders', { body }).then((answer) => {
    answered = answer;
  });
  await passUntil(shop, () => answered !== undefined, { withinMs: 20_000, stepMs: 1_000 });
  await opening;
  expect([201, 202]).toContain(answered?.status);
}
