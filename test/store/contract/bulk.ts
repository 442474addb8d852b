import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedBulk } from '../../../src/store/verbs/bulk.ts';
import type { BulkAction, BulkSelection, MatterFilter } from '../../../src/store/verbs/bulk_actions.ts';
import { stated } from '../../support/orders.ts';
import { openAttention } from '../../support/rows.ts';
import { LEASE_MS, said, type World, type Worlds } from './world.ts';

const AUDIT_KEY = Buffer.alloc(32, 7);
const ANA = { name: 'ana', role: 'operator', origin: 'console', address: '127.0.0.1', auditKey: AUDIT_KEY } as const;

/** Work on all rows of a filter. */
export function bulkContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  async function start(selection: BulkSelection, by: typeof ANA | null = ANA) {
    const { keys, isMore } = await world.store.findBulkKeys({ ...selection, limit: 10_000 });
    const { action, filter } = selection;
    const started = { action, filter: JSON.stringify(filter), reason: 'seen', keys, isMore, by, atMs: world.tick() };
    return world.store.startBulk(started);
  }

  const claim = (limit = 10) => world.store.claimBulk({ limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
  const carryOut = (run: ClaimedBulk, itemKey: number) =>
    world.store.carryOutBulk({ run, itemKey, auditKey: AUDIT_KEY, nowMs: world.nowMs });

  /** Carries out all that runs there are want, and returns what became of it. */
  async function finish(): Promise<unknown[]> {
    const outcomes: unknown[] = [];
    for (let run = await claim(); run !== null; run = await claim()) {
      for (const itemKey of run.items) outcomes.push(await carryOut(run, itemKey));
    }
    return outcomes;
  }

  const audited = async () =>
    (await world.store.listAudit({ limit: 100, after: null, actor: null, subject: null })).reverse();

  describe('bulk work', () => {
    it('is done to the rows that a filter lets through when it starts, and to no others', async () => {
      const link = await world.newLink();
      const keys = [await world.deadEvent(link), await world.deadEvent(link)];
      const run = await start({ action: 'replay_events', filter: { status: 'dead' } });
      expect(run).toMatchObject({ status: 'running', total: 2, changed: 0, isMore: false, author: { name: 'ana' } });
      const later = await world.deadEvent(link);
      const changed = { outcome: 'changed', detail: null };
      expect(await finish()).toEqual([changed, changed]);
      const statuses = [...keys, later].map(async (key) => (await world.event(key)).status);
      expect(await Promise.all(statuses)).toEqual(['pending', 'pending', 'dead']);
      const ended = { status: 'done', changed: 2, skipped: 0, failed: 0, endedAtMs: world.nowMs };
      expect(await world.store.findBulk(run.key)).toMatchObject(ended);
    });

    it('leaves one audit row for its start, one for each row that it changed, and one for its end by a person', async () => {
      const link = await world.newLink();
      const [first, second] = [await world.deadEvent(link), await world.deadEvent(link)];
      const { key } = await start({ action: 'replay_events', filter: { status: 'dead' } });
      await world.store.requeueEvent({ eventKey: first, by: null, nowMs: world.nowMs });
      const run = (await claim()) as ClaimedBulk;
      expect(await carryOut(run, first)).toEqual({ outcome: 'skipped', detail: 'in_work' });
      await world.store.cancelBulk({ key, by: ANA, atMs: world.nowMs });
      expect(await carryOut(run, second)).toBe('lost');
      await start({ action: 'replay_events', filter: { status: 'dead' } });
      await finish();
      const rows = (await audited()).map(({ action, subject, actor, after }) => [action, subject, actor, after]);
      const filter = { status: 'dead' };
      expect(rows).toEqual([
        ['start_bulk', '1', 'ana', JSON.stringify({ action: 'replay_events', filter, total: 2 })],
        ['cancel_bulk', '1', 'ana', JSON.stringify({ changed: 0, skipped: 1, failed: 0 })],
        ['start_bulk', '2', 'ana', JSON.stringify({ action: 'replay_events', filter, total: 1 })],
        ['replay_event', String(second), 'ana', '{"bulk":"2"}'],
      ]);
    });

    it('accepts held orders of one reason as they were counted, each with its reason in the audit chain', async () => {
      const held = async (fact: Partial<Parameters<typeof said>[1]>) => {
        const link = await world.newLink();
        await world.settle(link, [said('completed', fact)]);
        return link;
      };
      const less = await held({ quoteMoney: stated('40.00') });
      const other = await held({ linkMoney: stated('100.00', 'USD'), quoteMoney: null });
      const more = await held({ linkMoney: stated('500.00'), quoteMoney: null });
      const twice = await held({ quoteMoney: stated('40.00') });
      await world.settle(twice, [said('completed', { paymentId: 'pay_2' })]);
      const unread = await held({ quoteMoney: stated('1,00') });
      const filter = { hold: 'amount_mismatch' } as const;
      await start({ action: 'accept_orders', filter });
      const skipped = (detail: string) => ({ outcome: 'skipped', detail });
      const outcomes = await finish();
      expect(outcomes).toHaveLength(4);
      expect(outcomes).toEqual(
        expect.arrayContaining([
          { outcome: 'changed', detail: null },
          skipped('more_than_asked'),
          skipped('nothing_counted'),
          skipped('several_holds'),
        ]),
      );
      const states = [less, other, more, twice, unread].map(async (link) => (await world.timeline(link)).order.state);
      expect(await Promise.all(states)).toEqual(['paid', 'held', 'held', 'held', 'held']);
      expect((await world.timeline(less)).order.entries).toMatchObject([{ kind: 'captured', amountMinor: 4_000 }]);
      expect((await audited()).filter(({ action }) => action === 'accept_order')).toMatchObject([
        { subject: less.reference, actor: 'ana', reason: 'seen' },
      ]);
      expect((await world.timeline(less)).notices.map(({ type }) => type)).toContain('order.paid');
    });

    it('accepts no order that is held for something else when its turn comes', async () => {
      const link = await world.newLink();
      const paid = said('completed', { quoteMoney: stated('40.00') });
      await world.settle(link, [paid]);
      await start({ action: 'accept_orders', filter: { hold: 'amount_mismatch' } });
      await world.resolve(link, 'reject');
      await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
      expect(await finish()).toEqual([{ outcome: 'skipped', detail: 'other_hold' }]);
      const { order } = await world.timeline(link);
      expect([order.state, order.holds.map(({ reason }) => reason)]).toEqual(['held', ['paid_after_cancel']]);
    });

    it('leaves no audit row if no person started it', async () => {
      await world.deadEvent(await world.newLink());
      await start({ action: 'replay_events', filter: { status: 'dead' } }, null);
      expect(await finish()).toHaveLength(1);
      expect(await audited()).toEqual([]);
    });

    it('takes as many rows as it may, does nothing twice, and goes on where it ended', async () => {
      const link = await world.newLink();
      for (let n = 0; n < 3; n++) await world.deadEvent(link);
      const dead = { action: 'replay_events', filter: { status: 'dead' } } as const;
      expect(await world.store.findBulkKeys({ ...dead, limit: 2 })).toEqual({ keys: [3, 2], isMore: true });
      expect(await world.store.findBulkKeys({ ...dead, limit: 3 })).toEqual({ keys: [3, 2, 1], isMore: false });
      const { key } = await start({ action: 'replay_events', filter: { status: 'dead' } });
      const run = (await claim(2)) as ClaimedBulk;
      expect(run.items).toHaveLength(2);
      const [first = 0] = run.items;
      await carryOut(run, first);
      expect(await carryOut(run, first)).toBe('lost');
      await world.restart();
      const again = (await claim()) as ClaimedBulk;
      expect(again.items).toHaveLength(2);
      expect(again.items).not.toContain(first);
      await finish();
      expect(await world.store.findBulk(key)).toMatchObject({ status: 'done', changed: 3 });
      expect((await audited()).filter(({ action }) => action === 'replay_event')).toHaveLength(3);
    });

    it('goes on with the other rows if it fails for one', async () => {
      const link = await world.newLink();
      for (let n = 0; n < 2; n++) await world.deadEvent(link);
      const { key } = await start({ action: 'replay_events', filter: { status: 'dead' } });
      const run = (await claim()) as ClaimedBulk;
      const [first = 0, second = 0] = run.items;
      await world.store.failBulk({ run, itemKey: first, auditKey: AUDIT_KEY, nowMs: world.nowMs, detail: 'bug' });
      await carryOut(run, second);
      expect(await world.store.findBulk(key)).toMatchObject({ status: 'done', changed: 1, failed: 1 });
    });

    it('notes no failure of a run that was cancelled, or that another replica works at', async () => {
      const link = await world.newLink();
      for (let n = 0; n < 2; n++) await world.deadEvent(link);
      const { key } = await start({ action: 'replay_events', filter: { status: 'dead' } });
      const run = (await claim()) as ClaimedBulk;
      const [itemKey = 0] = run.items;
      const failing = { run, itemKey, auditKey: AUDIT_KEY, nowMs: world.nowMs, detail: 'bug' };
      await world.run(`UPDATE bulk_run SET holder = 'another'`);
      expect(await world.store.failBulk(failing)).toBe('lost');
      await world.store.cancelBulk({ key, by: ANA, atMs: world.nowMs });
      expect(await world.store.failBulk(failing)).toBe('lost');
      expect(await world.store.findBulk(key)).toMatchObject({ status: 'cancelled', failed: 0 });
    });

    it('ends at once if there is nothing to do, and cannot be cancelled then', async () => {
      const run = await start({ action: 'replay_events', filter: { status: 'dead' } });
      expect(run).toMatchObject({ status: 'done', total: 0 });
      expect(await world.store.cancelBulk({ key: run.key, by: ANA, atMs: world.nowMs })).toBe('ended');
      expect(await world.store.cancelBulk({ key: 99, by: ANA, atMs: world.nowMs })).toBeNull();
      expect(await world.store.findBulk(99)).toBeNull();
    });

    it('sends notices again, queues checks and ends matters, each as if it were asked for alone', async () => {
      const [a, b] = [await world.newLink(), await world.newLink()];
      await world.settle(a, [said('completed', { paymentId: 'pay_1' })]);
      await world.settle(a, [said('completed', { paymentId: 'pay_2' })]);
      await world.deadEvent(b);
      await world.run(`UPDATE outbox SET status = 'done', due_at_ms = NULL`);
      const selections: BulkSelection[] = [
        { action: 'resend_notices', filter: { type: 'order.paid' } },
        { action: 'check_orders', filter: { states: ['awaiting_payment'] } },
        { action: 'end_attention', filter: { kind: 'duplicate_payment' } },
      ];
      for (const selection of selections) {
        await start(selection);
        expect([selection.action, await finish()]).toEqual([selection.action, [{ outcome: 'changed', detail: null }]]);
      }
      expect((await world.timeline(a)).notices.map(({ status }) => status).sort()).toEqual(['done', 'pending']);
      expect((await world.store.findOrder(a.reference))?.flags).toEqual([]);
      expect((await world.timeline(b)).check).toMatchObject({ reason: expect.any(String) });
      const actions: string[] = (await audited()).map(({ action }) => action);
      expect(actions.filter((action) => action !== 'start_bulk')).toEqual([
        'resend_notice',
        'check_order',
        'end_attention',
      ]);
      const listed = await world.store.listBulk({ limit: 2, after: null });
      expect(listed.map(({ action }): BulkAction => action)).toEqual(['end_attention', 'check_orders']);
      expect(await world.store.listBulk({ limit: 2, after: listed.at(-1)?.key ?? 0 })).toHaveLength(1);
    });

    it('ends the matters that each filter lets through alone, and no other', async () => {
      const times: number[] = [];
      for (let n = 0; n < 3; n++) {
        const link = await world.newLink();
        await world.settle(link, [said('completed')]);
        await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
        times.push(world.nowMs);
        await world.deadEvent(link);
      }
      const [first = 0, middle = 0, last = 0] = times;
      const open = () => world.matters('duplicate_payment');
      const kind = 'duplicate_payment' as const;
      const filters: { filter: MatterFilter; keeps: (atMs: number) => boolean }[] = [
        { filter: { kind, sinceMs: last }, keeps: (atMs) => atMs >= last },
        { filter: { kind, sinceMs: last + 1 }, keeps: () => false },
        { filter: { kind, untilMs: first }, keeps: (atMs) => atMs <= first },
        { filter: { kind, untilMs: first - 1 }, keeps: () => false },
        { filter: { kind, sinceMs: middle, untilMs: middle }, keeps: (atMs) => atMs === middle },
        { filter: { kind: 'event_dead' }, keeps: () => false },
      ];
      for (const { filter, keeps } of filters) {
        const before = await open();
        await start({ action: 'end_attention', filter });
        await finish();
        expect([filter, await open()]).toEqual([filter, before.filter(({ openedAtMs }) => !keeps(openedAtMs))]);
      }
      expect(await openAttention(world.store)).toEqual([]);
    });
  });
}
