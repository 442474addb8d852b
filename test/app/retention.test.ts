import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock, type TurnableClock } from '../../sandbox/clock.ts';
import { startRetention } from '../../src/app/retention.ts';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { readableLog } from '../support/observe.ts';
import { peek, tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Kept = { app: TestApp; clock: TurnableClock };

/** settled on a clock that can be turned. It keeps bodies for a day. */
async function startKept(environment: Record<string, string> = {}): Promise<Kept> {
  const clock = openClock({ startMs: Date.now(), scale: 1 });
  const app = await startTestApp({ clock, environment: { SETTLED_KEEP_BODIES: '1d', ...environment } });
  onTestFinished(() => clock.advance(HOUR_MS));
  return { app, clock };
}

/** Signed at the time of settled's clock, or so much before it. */
function deliver({ app, clock }: Kept, link: ReservedLink, body: string, beforeMs = 0): Promise<Response> {
  return app.deliver(link, body, signedHeaders(link.webhookSecret, body, String(clock.nowMs() - beforeMs)));
}

function eventsIn({ app }: Kept, status: string, count: number): Promise<{ id: string }[]> {
  return eventually(async () => {
    const { events } = (await app.api(`/v1/events?status=${status}`)).body;
    expect(events).toHaveLength(count);
    return events;
  });
}

const show = async ({ app }: Kept, id: string) => (await app.api(`/v1/events/${id}`)).body.event;
const bodies = ({ app }: Kept): number => peek(app.storePath, 'SELECT count(*) AS n FROM inbox_body')[0].n as number;

/** A day passes, and then hours until something is so: each brings another round. */
async function aDayAndMore({ clock }: Kept, isSo: () => unknown): Promise<void> {
  await clock.advance(DAY_MS);
  await eventually(async () => {
    await clock.advance(HOUR_MS);
    await isSo();
  });
}

/** An order that was paid, its event a day and an hour ago. */
async function startOld(): Promise<Kept & { link: ReservedLink; body: string; id: string }> {
  const kept = await startKept();
  const link = await kept.app.reserve('order-1');
  const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
  expect((await deliver(kept, link, body)).status).toBe(200);
  const [event] = await eventsIn(kept, 'done', 1);
  const id = event?.id as string;
  await aDayAndMore(kept, async () => expect(await show(kept, id)).toMatchObject({ bodyDropped: true }));
  return { ...kept, link, body, id };
}

describe('retention: the bytes of events', () => {
  it('are dropped a while after the event was settled, and are not wanted to know a delivery again', async () => {
    const kept = await startOld();
    const { app, id } = kept;
    const gone = { status: 'done', rule: 'paid', bodyBase64: null, bodyText: null, bodyDropped: true };
    expect(await show(kept, id)).toMatchObject({ ...gone, bodySha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(bodies(kept)).toBe(0);
    expect((await app.api('/v1/stats')).body.stats.events).toMatchObject({ done: 1, dead: 0 });
    const told = (await app.api('/v1/orders/order-1/timeline')).body;
    expect(told.order.state).toBe('paid');
    expect(JSON.stringify(told)).toContain('authentic, payment_link.payment_status_changed: done');
    // They are wanted for a replay, which is refused and says what to do instead.
    const { status, body } = await app.api(`/v1/events/${id}/replay`, { method: 'POST' });
    expect([status, body.title]).toEqual([409, 'event_body_dropped']);
    expect(body.detail).toContain('settled orders check');
    const again = await deliver(kept, kept.link, kept.body);
    expect([again.status, await again.json()]).toEqual([200, { received: true, duplicate: true }]);
    expect(await show(kept, id)).toMatchObject({ status: 'done', duplicates: 1, bodyDropped: true });
    expect((await app.order('order-1')).payments).toHaveLength(1);
    expect(bodies(kept)).toBe(0);
  });

  it('stay while the event waits for a person, who can have it replayed; those of a hint go, and it is known', async () => {
    const kept = await startKept();
    const { app } = kept;
    const link = await app.reserve('order-1');
    expect((await deliver(kept, link, 'not JSON')).status).toBe(202);
    const [event] = await eventsIn(kept, 'dead', 1);
    const id = event?.id as string;
    const settled = await app.reserve('order-2');
    const body = paymentEvent({ linkId: 'pl_2', amount: '100.00' });
    await deliver(kept, settled, body);
    await eventsIn(kept, 'done', 1);
    expect((await deliver(kept, settled, body, HOUR_MS)).status).toBe(400);
    const hints = () => peek(app.storePath, 'SELECT length(body) AS bytes, count FROM hint');
    expect(hints()).toEqual([{ bytes: Buffer.byteLength(body), count: 1 }]);
    await aDayAndMore(kept, () => expect([bodies(kept), hints()]).toEqual([1, [{ bytes: 0, count: 1 }]]));
    const told = (await app.api('/v1/orders/order-2/timeline')).body;
    expect(JSON.stringify(told)).toContain('settled did not settle it');
    expect(await show(kept, id)).toMatchObject({ bodyText: 'not JSON', bodyDropped: false });
    expect((await app.api(`/v1/events/${id}/replay`, { method: 'POST' })).status).toBe(202);
  });

  it('that are lost make an event dead, and not forgotten; the next delivery brings them back', async () => {
    const kept = await startKept();
    const link = await kept.app.reserve('order-1');
    tamper(
      kept.app.storePath,
      'CREATE TRIGGER lose AFTER INSERT ON inbox_body BEGIN DELETE FROM inbox_body WHERE inbox_key = new.inbox_key; END',
    );
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
    await deliver(kept, link, body);
    const [event] = await eventsIn(kept, 'dead', 1);
    expect(await show(kept, event?.id as string)).toMatchObject({ fault: { code: 'stored_event_damaged' } });
    tamper(kept.app.storePath, 'DROP TRIGGER lose');
    expect(await (await deliver(kept, link, body)).json()).toMatchObject({ duplicate: true });
    await eventsIn(kept, 'done', 1);
    expect((await kept.app.order('order-1')).state).toBe('paid');
    expect(await show(kept, event?.id as string)).toMatchObject({ bodyText: body });
  });
});

describe('retention: the names of customers', () => {
  const NAME = 'Ana Souza';
  const EMAIL = 'ana@example.com';
  const paidBy = (event: string) => {
    const quote = { paymentMethod: 'PIX', installments: 1 };
    return event.replace(
      '"status":"COMPLETED"}',
      `"status":"COMPLETED","customer":${JSON.stringify({ name: NAME, email: EMAIL })},"quote":${JSON.stringify(quote)}}`,
    );
  };

  it('are dropped a while after they came, from the order and from every notice of it; how it was paid stays', async () => {
    const kept = await startKept();
    const { app } = kept;
    const shops = { name: 'Bia Prado', email: 'bia@example.org' };
    const link = await app.reserve('order-1', '100.00', { customer: shops });
    await deliver(kept, link, paidBy(paymentEvent({ linkId: 'pl_1', amount: '100.00' })));
    await eventsIn(kept, 'done', 1);
    const payment = { method: 'PIX', installments: 1, customer: { name: NAME, email: EMAIL } };
    expect(await app.order('order-1')).toMatchObject({ state: 'paid', payment, customer: shops });
    const search = async () => (await app.api('/v1/orders?q=prado')).body.orders;
    expect(await search()).toMatchObject([{ reference: 'order-1' }]);
    const feed = async () => (await app.api('/v1/feed')).body;
    const before = await feed();
    expect(before.notices).toMatchObject([
      { type: 'order.paid', data: { order: { payment, payments: [payment], customer: shops } } },
    ]);

    const without = { ...payment, customer: null };
    await aDayAndMore(kept, async () => expect((await app.order('order-1')).payment).toMatchObject(without));
    const after = await feed();
    expect(after.notices).toMatchObject([
      { id: before.notices[0].id, data: { order: { payment: without, payments: [without], customer: null } } },
    ]);
    expect(await search()).toEqual([]);
    const gone = /Ana Souza|ana@example|Bia Prado|bia@example|prado/i;
    const paths = ['orders', 'orders/order-1', 'orders/order-1/timeline', 'orders.csv', 'notices', 'events', 'feed'];
    for (const path of paths) {
      expect(JSON.stringify((await app.api(`/v1/${path}`)).body)).not.toMatch(gone);
    }
    for (const { id } of (await app.api('/v1/notices')).body.notices) {
      expect(JSON.stringify((await app.api(`/v1/notices/${id}`)).body)).not.toMatch(gone);
    }
    const text = (table: string) => JSON.stringify(peek(app.storePath, `SELECT * FROM ${table}`));
    const tables = ['payment', 'order_customer', 'order_word', 'outbox', 'history', 'attention', 'inbox'];
    for (const table of tables) expect(text(table)).not.toMatch(/\bana|bia|prado/i);
    // The round ends with it.
    await eventually(() => {
      const holding = [app.storePath, `${app.storePath}-wal`].filter((file) => gone.test(readFileSync(file, 'latin1')));
      expect(holding).toEqual([]);
    });
  });

  it('stay in a notice that the shop has not taken', async () => {
    const shop = await startCallback();
    shop.answerWith(503);
    const kept = await startKept(shop.environment);
    const link = await kept.app.reserve('order-1');
    await deliver(kept, link, paidBy(paymentEvent({ linkId: 'pl_1', amount: '100.00' })));
    await eventsIn(kept, 'done', 1);
    await aDayAndMore(kept, async () =>
      expect((await kept.app.order('order-1')).payment).toMatchObject({ customer: null }),
    );
    const { notices } = (await kept.app.api('/v1/feed')).body;
    expect(notices.at(-1).data.order.payment.customer).toEqual({ name: NAME, email: EMAIL });
  });
});

describe('retention: its rounds', () => {
  /** A store of so many batches. */
  function startRounds(batches: number, failing = { value: false }, trusted = { value: true }) {
    const clock = openClock({ startMs: 1_700_000_000_000, scale: 1 });
    const calls: { after: number; atMs: number }[] = [];
    const steps: { drop: string; untilMs?: number }[] = [];
    /** What the next erasures say; after these, that all is gone. */
    const erased: boolean[] = [];
    const { log, lines } = readableLog();
    const retention = startRetention({
      store: {
        dropBodies: async ({ after, nowMs, untilMs }) => {
          expect(nowMs - untilMs).toBe(DAY_MS);
          steps.push({ drop: 'bodies', untilMs });
          calls.push({ after, atMs: nowMs });
          if (failing.value) throw new Error('the disk is full');
          return { dropped: 5, next: after + 1 < batches ? after + 1 : null };
        },
        dropCustomers: async ({ untilMs, sendsNotices }) => {
          // A notice that the shop has not taken keeps them.
          expect(sendsNotices).toBe(true);
          steps.push({ drop: 'customers', untilMs });
          return { dropped: 0, isMore: false };
        },
        eraseDropped: async () => {
          steps.push({ drop: 'erase' });
          return { isErased: erased.shift() ?? true };
        },
      },
      clock,
      log,
      keepBodiesMs: DAY_MS,
      canTell: true,
      clockSteps: { isTrusted: () => trusted.value },
    });
    onTestFinished(() => retention.stop());
    return { clock, calls, steps, erased, lines, retention };
  }

  it('continue from batch to batch, with a pause after each, and log once what was dropped', async () => {
    const { clock, calls, lines } = startRounds(3);
    await eventually(() => expect(calls).toHaveLength(1));
    await clock.advance(200);
    expect(calls).toHaveLength(1);
    await eventually(async () => {
      await clock.advance(50);
      expect(calls.map(({ after }) => after)).toEqual([0, 1, 2]);
    });
    await eventually(() => expect(lines).toMatchObject([{ level: 'info', bodies: 15 }]));
    await clock.advance(HOUR_MS);
    await eventually(() => expect(calls[3]).toMatchObject({ after: 0 }));
  });

  it('are tried again an hour after one failed, and the failure is logged', async () => {
    const failing = { value: true };
    const { clock, calls, lines } = startRounds(1, failing);
    await eventually(() => expect(lines).toMatchObject([{ level: 'warn' }]));
    failing.value = false;
    await clock.advance(HOUR_MS);
    await eventually(() => expect(calls).toHaveLength(2));
  });

  it('drop nothing while the clock is not trusted, and stop in the middle when it steps', async () => {
    const trusted = { value: false };
    const { clock, calls } = startRounds(1000, { value: false }, trusted);
    // The first round is over.
    await setImmediate();
    await clock.advance(HOUR_MS - 1_000);
    expect(calls).toHaveLength(0);
    trusted.value = true;
    await clock.advance(2_000);
    await eventually(() => expect(calls.length).toBeGreaterThan(0));
    trusted.value = false;
    const { length } = calls;
    await clock.advance(HOUR_MS - 10_000);
    expect(calls).toHaveLength(length);
  });

  it('drop bodies and names of the same age, and erase both, again in the next round if it could not be done', async () => {
    let asked = 0;
    // It becomes trusted in the middle of what would be the first round.
    const trusted = {
      get value() {
        return ++asked > 1;
      },
    };
    const { clock, steps, erased } = startRounds(2, { value: false }, trusted);
    erased.push(false);
    const round = async () => {
      await eventually(async () => {
        await clock.advance(HOUR_MS / 4);
        expect(steps.at(-1)?.drop).toBe('erase');
      });
      const done = steps.splice(0);
      expect(done.map((step) => step.drop)).toEqual(['bodies', 'bodies', 'customers', 'erase']);
      expect(new Set(done.flatMap(({ untilMs }) => untilMs ?? [])).size).toBe(1);
    };
    await round();
    await round();
  });

  it('end at once when settled stops, also in a rest', async () => {
    const { calls, retention } = startRounds(1000);
    await eventually(() => expect(calls).toHaveLength(1));
    await retention.stop();
    expect(calls.length).toBeLessThanOrEqual(2);
  });
});
