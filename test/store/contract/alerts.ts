import { describe, expect, it } from 'vitest';
import { ATTENTION_KINDS } from '../../../src/domain/matter.ts';
import type { AlertEntry } from '../../../src/store/verbs/alerts.ts';
import type { AlertChannel } from '../../../src/vocabulary.ts';
import { stated } from '../../support/orders.ts';
import { CAUSES } from './matter-causes.ts';
import { FAULT, LEASE_MS, said, type World, type Worlds } from './world.ts';

const LITTLE = { linkMoney: stated('60.00') };
const NAMES = ['mail', 'url'] as const satisfies readonly AlertChannel[];

const open = (world: World, names: readonly AlertChannel[] = NAMES, digests = true) =>
  world.store.openAlertChannels({ names, digests, nowMs: world.nowMs });
const entries = (world: World, channel: AlertChannel = 'url') => world.store.alertEntries({ channel, limit: 1000 });
const said3 = (found: readonly AlertEntry[]) => found.map(({ what, kind, reference }) => [what, kind, reference]);
const state = async (world: World, channel: AlertChannel = 'url') =>
  (await world.store.alertChannels()).find(({ name }) => name === channel);

async function held(world: World) {
  const link = await world.newLink();
  await world.settle(link, [said('completed', LITTLE)]);
  expect(await world.state(link)).toBe('held');
  return link;
}

/** Writes a message of all that waits. */
async function put(world: World, over: Partial<Parameters<World['store']['putAlert']>[0]> = {}) {
  const { channel = 'url' } = over;
  const { number = 0 } = (await state(world, channel)) ?? {};
  const told = (await entries(world, channel)).map(({ key }) => key);
  const as = { reminds: false, digests: false, body: '{}', nowMs: world.tick() };
  return world.store.putAlert({ channel, number, entries: told, ...as, ...over });
}

const claim = (world: World, channel: AlertChannel = 'url') =>
  world.store.claimAlert({ channel, nowMs: world.nowMs, leaseMs: LEASE_MS });

/** What is told to people, and by which message. */
export function alertsContract({ fresh, shared }: Worlds): void {
  describe.each(ATTENTION_KINDS)('an alert of %s', (kind) => {
    it('is one entry for each channel when it opens and one when it is over, and none when it is raised again', async () => {
      const { about, again } = CAUSES[kind];
      const world = await fresh();
      const of = async (channel: AlertChannel) =>
        (await entries(world, channel)).filter((entry) => entry.kind === kind).map(({ what, id }) => [what, id]);
      const cause = await about(world);
      await open(world);
      await cause();
      const [{ key = 0 } = {}] = await world.matters(kind);
      expect(await Promise.all(NAMES.map(of))).toEqual(NAMES.map(() => [['opened', key]]));

      if (again !== 'replaces') {
        await cause();
        expect(await of('url')).toEqual([['opened', key]]);
      }
      const [last = { key }] = await world.matters(kind);
      await world.end(last.key);
      await world.end(last.key);
      expect((await of('mail')).filter(([, id]) => id === last.key)).toEqual([
        ['opened', last.key],
        ['over', last.key],
      ]);
    });
  });

  it('tells of an order that is held, with its reason and money, and when a person has decided', async () => {
    const world = await fresh();
    await open(world);
    const link = await held(world);
    await world.settle(link, [said('completed', { ...LITTLE, paymentId: 'pay_2' })]);
    await world.resolve(link, 'reject');
    const found = (await entries(world)).filter(({ kind }) => kind === 'hold');
    const sums = [{ currency: 'BRL', asked: 10_000n, balance: 12_000n }];
    expect(said3(found)).toEqual([
      ['opened', 'hold', link.reference],
      ['over', 'hold', link.reference],
    ]);
    expect(found[0]).toMatchObject({ reason: 'amount_mismatch', id: null, sums, customerName: null });
  });

  it('writes nothing while no channel is configured, and forgets what one had to tell that no longer is', async () => {
    const world = await fresh();
    await held(world);
    await open(world);
    expect(await entries(world)).toEqual([]);
    await held(world);
    await put(world, { channel: 'mail' });
    await held(world);
    await open(world, ['mail']);
    expect((await world.store.alertChannels()).map((one) => [one.name, one.hasMessage, one.waiting])).toEqual([
      ['mail', true, 1],
    ]);
    expect(await entries(world)).toEqual([]);
    await open(world);
    expect(await state(world)).toMatchObject({ number: 0, waiting: 0, remindedAtMs: null });
    expect(await state(world, 'mail')).toMatchObject({ number: 1, waiting: 1 });
  });

  it('names no order that came after one that settled has forgotten', async () => {
    const world = await fresh();
    await open(world);
    const link = await world.intend();
    await world.retryOpening(link, { waits: true });
    const { linkKey, attempt } = await world.claimOpening(link);
    await world.store.closeOpening({ linkKey, attempt, nowMs: world.nowMs });
    await world.newLink();
    expect(said3(await entries(world))).toEqual([
      ['opened', 'link_not_opened', link.reference],
      ['over', 'link_not_opened', link.reference],
    ]);
  });

  describe('a message', () => {
    it('takes its entries along, is one at a time, and is written by one replica', async () => {
      const world = await fresh();
      await open(world);
      await held(world);
      const { number = -1 } = (await state(world)) ?? {};
      expect(await put(world)).toBe('put');
      expect([await entries(world), (await entries(world, 'mail')).length]).toEqual([[], 1]);
      expect(await put(world)).toBe('lost');
      await held(world);
      const { id = '', attempt = 0 } = (await claim(world)) ?? {};
      const taken = { channel: 'url', number: number + 1, attempt, fault: null, answer: '200', dueAtMs: null } as const;
      expect(await world.store.endAlert({ ...taken, nowMs: world.tick() })).toBe('taken');
      expect(await state(world)).toMatchObject({
        hasMessage: false,
        takenAtMs: world.nowMs,
        answer: '200',
        waiting: 1,
      });
      // Another replica read the channel before the first message.
      expect(await put(world, { number })).toBe('lost');
      expect(await put(world)).toBe('put');
      expect((await claim(world))?.id).not.toBe(id);
    });

    it('is leased to one replica, which alone ends the attempt, and is due again with its id', async () => {
      const world = await fresh();
      await open(world);
      await put(world, { body: '"said"' });
      const first = await claim(world);
      expect(first).toMatchObject({ body: '"said"', number: 1, attempt: 1, id: expect.stringMatching(/^alert_/) });
      expect(await claim(world)).toBeNull();
      const failed = { channel: 'url', number: 1, fault: FAULT, answer: null } as const;
      world.tick(LEASE_MS);
      const second = await claim(world);
      expect(second).toEqual({ ...first, attempt: 2 });
      const late = { ...failed, attempt: 1, dueAtMs: world.nowMs, nowMs: world.nowMs };
      expect(await world.store.endAlert(late)).toBe('lost');
      const failedAtMs = world.tick();
      const dueAtMs = failedAtMs + 5000;
      expect(await world.store.endAlert({ ...late, attempt: 2, dueAtMs, nowMs: failedAtMs })).toBe('retried');
      expect(await state(world)).toMatchObject({ fault: FAULT, failingSinceMs: failedAtMs, dueAtMs, attempt: 2 });
      expect(await claim(world)).toBeNull();
      world.tick(5000);
      expect(await claim(world)).toMatchObject({ id: first?.id, attempt: 3 });
      const end = { channel: 'url', number: 1, attempt: 3, fault: null, answer: 'ok', dueAtMs: null } as const;
      expect(await world.store.endAlert({ ...end, nowMs: world.tick() })).toBe('taken');
      expect(await state(world)).toMatchObject({ fault: null, failingSinceMs: null, hasMessage: false });
      expect(await world.store.endAlert({ ...end, nowMs: world.tick() })).toBe('lost');
    });

    it('outlives its process, and a clock that was ahead', async () => {
      const world = await fresh();
      await open(world);
      await held(world);
      await put(world);
      const before = await claim(world);
      await world.restart();
      world.tick(15_000);
      const after = await claim(world);
      expect(after).toMatchObject({ id: before?.id, attempt: 2 });
      world.tick(-600_000);
      expect(await claim(world)).toMatchObject({ id: before?.id, attempt: 3 });
    });

    it('is noted as a reminder or a digest', async () => {
      const world = await fresh();
      await open(world);
      const openedAtMs = world.nowMs;
      expect(await state(world)).toMatchObject({ remindedAtMs: openedAtMs, digestedAtMs: openedAtMs });
      await put(world, { reminds: true });
      const remindedAtMs = world.nowMs;
      expect(await state(world)).toMatchObject({ remindedAtMs, digestedAtMs: openedAtMs });
      await put(world, { channel: 'mail', digests: true });
      expect(await state(world, 'mail')).toMatchObject({ remindedAtMs: openedAtMs, digestedAtMs: world.nowMs });
    });

    it.each(['hold', 'attention'] as const)('reminds a new channel at once of what waits already: %s', async (what) => {
      const world = await fresh();
      if (what === 'hold') await held(world);
      else await (await CAUSES.shop_refuses_notices.about(world))();
      await open(world);
      expect(await state(world)).toMatchObject({ remindedAtMs: null, waiting: 0 });
      await open(world);
      expect(await state(world)).toMatchObject({ remindedAtMs: null });
    });

    it('has a time from which the next digest counts, since digests are wanted', async () => {
      const world = await fresh();
      await open(world, NAMES, false);
      expect(await state(world)).toMatchObject({ digestedAtMs: null });
      world.tick();
      await open(world);
      const wantedAtMs = world.nowMs;
      world.tick();
      await open(world);
      expect(await state(world)).toMatchObject({ digestedAtMs: wantedAtMs });
      await open(world, NAMES, false);
      expect(await state(world)).toMatchObject({ digestedAtMs: null });
    });

    it('tells of a matter that ended and was raised again in that order', async () => {
      const world = await fresh();
      await open(world);
      const cause = await CAUSES.shop_refuses_notices.about(world);
      await cause();
      await put(world);
      const [{ key = 0 } = {}] = await world.matters('shop_refuses_notices');
      await world.end(key);
      await (await CAUSES.shop_refuses_notices.about(world))();
      expect((await entries(world)).map(({ what }) => what)).toEqual(['over', 'opened']);
    });

    it('tells first what is still open, and money; and of each matter in its order', async () => {
      const world = await fresh();
      await open(world);
      const over = await held(world);
      await world.resolve(over, 'reject');
      await (await CAUSES.shop_refuses_notices.about(world))();
      const still = await held(world);
      const again = await held(world);
      await world.resolve(again, 'reject');
      await world.settle(again, [said('completed', { ...LITTLE, paymentId: 'pay_2' })]);
      const name = new Map(
        [over, still, again].map(({ reference }, index) => [reference, ['over', 'still', 'again'][index]]),
      );
      const told = (await entries(world)).map(
        ({ what, kind, reference }) => `${name.get(reference ?? '')} ${kind} ${what}`,
      );
      expect(told).toEqual([
        'over refund_due opened',
        'still hold opened',
        'again hold opened',
        'again refund_due opened',
        'again hold over',
        'again hold opened',
        'undefined shop_refuses_notices opened',
        'over hold opened',
        'over hold over',
      ]);
    });
  });

  it('sums what became paid in a time, by currency, with what the shop was told', async () => {
    const world = await fresh();
    const fromMs = world.tick();
    const [first] = [await world.newLink(), await world.newLink({ amount: { amountMinor: 5, currency: 'USD' } })];
    await world.settle(first, [said('completed')]);
    const [notice] = await world.claimNotices();
    const answer = { status: 204, body: '' };
    if (notice) await world.store.finishNotice({ ...notice, answer, nowMs: world.tick() });
    const untilMs = world.tick();
    await world.settle(await world.newLink(), [said('completed')]);
    const sum = { currency: 'BRL', amountMinor: 10_000n };
    expect(await world.store.paidBetween({ afterMs: fromMs, untilMs })).toEqual([{ ...sum, orders: 1, told: 1 }]);
    const all = await world.store.paidBetween({ afterMs: fromMs, untilMs: world.nowMs });
    expect(all).toEqual([{ ...sum, amountMinor: 20_000n, orders: 2, told: 1 }]);
  });

  it('leaves channels and entries in the store that other tests share', async () => {
    const world = shared();
    await open(world);
    await held(world);
    expect((await entries(world)).length).toBeGreaterThan(0);
  });
}
