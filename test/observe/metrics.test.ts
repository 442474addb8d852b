import { describe, expect, it } from 'vitest';
import { type Metrics, openMetrics } from '../../src/observe/metrics.ts';
import type { Stats } from '../../src/store/verbs/stats.ts';
import type { TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { NOTHING, SOURCES, samples } from '../support/observe.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

/** What the running settled shows. */
async function scrape(app: TestApp): Promise<Record<string, number>> {
  const { status, headers, body } = await app.api('/metrics');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return samples(body);
}

/** What a scrape shows when every event that came is settled, and counted. */
async function scrapeSettled(app: TestApp): Promise<Record<string, number>> {
  await eventually(async () => {
    const now = await scrape(app);
    expect([now[events('pending')], now[events('leased')]]).toEqual([0, 0]);
  });
  // It changes nothing, and is answered after every change that came before it: those are counted by then.
  await app.api('/v1/orders/nobodys/resolve', { body: { decision: 'reject', reason: 'none' } });
  return scrape(app);
}

/** Every number less what it was. */
function grown(now: Record<string, number>, before: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(now).map(([name, value]) => [name, value - (before[name] ?? 0)]));
}

const outcome = (name: string) => `settled_deliveries_total{outcome="${name}"}`;
const orders = (state: string) => `settled_orders{state="${state}"}`;
const matters = (kind: string) => `settled_needs_person{concern="money",kind="${kind}"}`;
const checks = (name: string) => `settled_checks_waiting{class="${name}"}`;
const events = (status: string) => `settled_inbox_events{status="${status}"}`;

describe('metrics: what a scrape shows', () => {
  /** Nothing is delivered to it. */
  const idle = sharedApp();
  /** Its tests come one after the other, and each looks at what has grown since it began. */
  const settled = sharedApp();

  it('has a series for every outcome and state from the start, so that rates have a beginning', async () => {
    const now = await scrape(idle());
    const zeros = [
      ...['recorded', 'duplicate', 'conflict', 'unreadable', 'stale', 'rejected', 'unknown_link'].map(outcome),
      ...['too_large', 'encoded', 'aborted', 'refused', 'shed', 'failed'].map(outcome),
      ...['awaiting_payment', 'payment_pending', 'paid', 'held', 'expired'].map(orders),
      ...['cancelled', 'refunded', 'disputed'].map(orders),
      ...['pending', 'leased', 'done', 'dead'].map(events),
      ...['confirm', 'hint', 'janitor'].map(checks),
      ...['pending', 'leased', 'taken'].map((status) => `settled_openings{status="${status}"}`),
      ...['delivered', 'retried', 'dead'].map((name) => `settled_notice_attempts_total{outcome="${name}"}`),
      ...['retried', 'buried'].map((name) => `settled_settlement_failures_total{outcome="${name}"}`),
      ...['confirm', 'hint', 'janitor'].map((name) => `settled_checks_lag_seconds{class="${name}"}`),
      'settled_api_paused',
      'settled_api_requests_in_flight',
      'settled_api_slots',
      'settled_api_slots_in_use',
      'settled_drift',
      'settled_inbox_lag_seconds',
      'settled_notices_lag_seconds',
      'settled_store_restored',
      'settled_webhooks_missing',
    ];
    expect(Object.fromEntries(zeros.map((name) => [name, now[name]]))).toEqual(
      Object.fromEntries(zeros.map((name) => [name, 0])),
    );
    expect(now.settled_ready).toBe(1);
    expect(now.settled_disk_free_bytes).toBeGreaterThan(0);
    expect(now.process_resident_memory_bytes).toBeGreaterThan(0);
  });

  it('counts deliveries by how they ended, and how long each took', async () => {
    const app = settled();
    const before = await scrapeSettled(app);
    const link = await app.reserve(freshReference());
    const body = paymentEvent({ id: 'evt_1', linkId: 'pl_1', status: 'PENDING' });
    await app.deliver(link, body);
    await app.deliver(link, body);
    await app.deliver(link, paymentEvent({ id: 'evt_1', linkId: 'pl_1', amount: '100.00' }));
    await app.deliver(link, 'not JSON');
    await app.deliver(link, body, signedHeaders(link.webhookSecret, body, '1700000000000'));
    await app.deliver(link, body, signedHeaders('another-secret-altogether', body));
    await app.deliver({ ...link, webhookUrl: `${app.hooksUrl}/hooks/${'x'.repeat(32)}` }, body);
    await app.deliver(link, 'x'.repeat(262_145)).catch(() => {});
    await app.deliver(link, body, { 'content-encoding': 'gzip' });
    const now = grown(await scrape(app), before);
    const ended = ['recorded', 'duplicate', 'conflict', 'unreadable', 'stale', 'rejected', 'unknown_link'];
    for (const name of [...ended, 'too_large', 'encoded']) expect([name, now[outcome(name)]]).toEqual([name, 1]);
    expect(now.settled_delivery_seconds_count).toBe(9);
    expect(now['settled_delivery_seconds_bucket{le="+Inf"}']).toBe(9);
    expect(now.settled_delivery_seconds_sum).toBeGreaterThan(0);
    expect(now.settled_delivery_seconds_sum).toBeLessThan(30);
  });

  it('follows orders from state to state, and leaves nothing behind in the old one', async () => {
    const app = settled();
    const before = await scrapeSettled(app);
    const link = await app.reserve(freshReference());
    const linkId = `pl_${link.reference}`;
    const reserved = grown(await scrape(app), before);
    expect(reserved).toMatchObject({ [orders('awaiting_payment')]: 1, [orders('paid')]: 0 });
    await app.deliver(link, paymentEvent({ linkId, amount: '100.00' }));
    await eventually(async () =>
      expect(grown(await scrape(app), before)).toMatchObject({
        [orders('awaiting_payment')]: 0,
        [orders('paid')]: 1,
        [events('done')]: 1,
        'settled_notices{status="pending"}': 1,
        'settled_settlements_total{outcome="applied"}': 1,
        [matters('hold')]: 0,
        [checks('janitor')]: 1,
      }),
    );
  });

  it('shows holds and attention while they stand', async () => {
    const app = settled();
    const before = await scrapeSettled(app);
    const link = await app.reserve(freshReference());
    await app.deliver(link, paymentEvent({ linkId: `pl_${link.reference}`, amount: '60.00' }));
    await app.deliver(link, 'not JSON');
    await eventually(async () =>
      expect(grown(await scrape(app), before)).toMatchObject({
        [matters('hold')]: 1,
        'settled_needs_person{concern="unsettled",kind="event_not_understood"}': 1,
        [events('dead')]: 1,
        'settled_settlements_total{outcome="held"}': 1,
        'settled_settlement_failures_total{outcome="buried"}': 1,
      }),
    );
    const decided = { decision: 'accept', reason: 'seen' };
    await app.api(`/v1/orders/${link.reference}/resolve`, { body: decided });
    const after = grown(await scrape(app), before);
    expect(after).toMatchObject({ [matters('hold')]: 0, [orders('held')]: 0, [orders('paid')]: 1 });
  });

  it('counts the orders that were paid by how that was learned', async () => {
    const app = settled();
    const paid = (door: string) => `settled_orders_paid_total{learned_by="${door}"}`;
    expect(await scrape(idle())).toMatchObject({
      [paid('webhook')]: 0,
      [paid('reconciliation')]: 0,
      [paid('person')]: 0,
    });
    const before = await scrapeSettled(app);
    const link = await app.reserve(freshReference());
    const body = paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00' });
    await app.deliver(link, body);
    await app.deliver(link, body);
    const less = await app.reserve(freshReference());
    await app.deliver(less, paymentEvent({ linkId: `pl_${less.reference}`, amount: '60.00' }));
    await eventually(async () => expect(grown(await scrape(app), before)).toMatchObject({ [events('done')]: 2 }));
    const decided = { decision: 'accept', reason: 'seen' };
    for (let n = 0; n < 2; n++) await app.api(`/v1/orders/${less.reference}/resolve`, { body: decided });
    expect(grown(await scrape(app), before)).toMatchObject({
      [paid('webhook')]: 1,
      [paid('reconciliation')]: 0,
      [paid('person')]: 1,
    });
  });

  it('tells how far behind the reader of the feed is', async () => {
    const app = settled();
    const pay = async () => {
      const before = await scrapeSettled(app);
      const link = await app.reserve(freshReference());
      await app.deliver(link, paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00' }));
      await eventually(async () => expect(grown(await scrape(app), before)).toMatchObject({ [orders('paid')]: 1 }));
    };
    const behind = async () => (await scrape(app)).settled_feed_behind;
    await pay();
    expect(await behind()).toBeNaN();
    const { cursor } = (await app.api('/v1/feed')).body;
    // A client that only looked at it is not a reader that could fall behind.
    expect(await behind()).toBeNaN();
    await app.api(`/v1/feed?after=${cursor}`);
    expect(await behind()).toBe(0);
    await pay();
    expect(await behind()).toBe(1);
    // A client that reads from the beginning does not lower the figure.
    await app.api('/v1/feed');
    expect(await behind()).toBe(1);
  });

  it('shows how many calls shared a commit, and how long commits took', async () => {
    const app = settled();
    const before = await scrapeSettled(app);
    const links = await Promise.all(Array.from({ length: 20 }, () => app.reserve(freshReference())));
    await Promise.all(links.map((link) => app.deliver(link, paymentEvent({ amount: '100.00' }))));
    const since = grown(await scrape(app), before);
    expect(since.settled_commit_batch_calls_count).toBeGreaterThan(0);
    expect(since.settled_commit_seconds_count).toBe(since.settled_commit_batch_calls_count);
    // 20 reservations and 20 deliveries at least.
    expect(since.settled_commit_batch_calls_sum).toBeGreaterThanOrEqual(40);
    expect(since.settled_commit_seconds_sum).toBeGreaterThan(0);
  });
});

describe('metrics: by themselves', () => {
  const open = (stats: () => Stats = () => NOTHING) =>
    openMetrics({ ...SOURCES, deliveryOutcomes: ['recorded'], stats: async () => stats() });
  const scrapeOf = async (metrics: Metrics) => samples((await metrics.scrape()).text);

  it('show no number for the free space if the system does not say', async () => {
    expect((await open().scrape()).text).toMatch(/^settled_disk_free_bytes (NaN|Nan)$/m);
  });

  it("count requests to the service's API by call and end, and show those that are under way", async () => {
    const metrics = open();
    metrics.apiStarted();
    metrics.apiStarted();
    expect(await scrapeOf(metrics)).toMatchObject({
      settled_api_requests_in_flight: 2,
      settled_api_request_seconds_count: 0,
    });
    metrics.apiAnswered('GET /payment-links', 'ok', 0.2);
    metrics.apiAnswered('POST /payment-links', 'service_timeout', 10.1);
    expect(await scrapeOf(metrics)).toMatchObject({
      settled_api_requests_in_flight: 0,
      'settled_api_requests_total{call="GET /payment-links",outcome="ok"}': 1,
      'settled_api_requests_total{call="POST /payment-links",outcome="service_timeout"}': 1,
      settled_api_request_seconds_count: 2,
      'settled_api_request_seconds_bucket{le="0.25"}': 1,
    });
  });

  it('count attempts to open links by result', async () => {
    const metrics = open();
    for (const outcome of ['retried', 'retried', 'opened']) metrics.opening(outcome);
    expect(await scrapeOf(metrics)).toMatchObject({
      'settled_opening_attempts_total{outcome="retried"}': 2,
      'settled_opening_attempts_total{outcome="opened"}': 1,
    });
  });

  it('follow what the store says of asking and opening, and leave nothing behind', async () => {
    let stats: Stats = {
      ...NOTHING,
      checksByClass: { confirm: 3, hint: 2, janitor: 1 },
      openings: { pending: 4, taken: 1 },
      drift: 5,
      api: { slotsInUse: 17, pausedUntilMs: null },
    };
    const metrics = open(() => stats);
    expect(await scrapeOf(metrics)).toMatchObject({
      [checks('confirm')]: 3,
      [checks('hint')]: 2,
      [checks('janitor')]: 1,
      'settled_openings{status="pending"}': 4,
      'settled_openings{status="taken"}': 1,
      settled_drift: 5,
      settled_api_slots_in_use: 17,
    });
    stats = NOTHING;
    expect(await scrapeOf(metrics)).toMatchObject({
      [checks('confirm')]: 0,
      'settled_openings{status="pending"}': 0,
      settled_api_slots_in_use: 0,
    });
  });

  it('say what has waited for how long, what is missing and what was restored', async () => {
    const stats: Stats = {
      ...NOTHING,
      lagMs: 90_000,
      noticesLagMs: 7_500,
      shopFailures: 6,
      checksLagMs: { confirm: 1_000, hint: 2_000, janitor: 3_000 },
      webhooksMissing: 4,
      api: { slotsInUse: 0, pausedUntilMs: 1 },
      feed: { newest: 0, generation: 3, restoredFromMs: 1 },
    };
    expect(await scrapeOf(open(() => stats))).toMatchObject({
      settled_inbox_lag_seconds: 90,
      settled_notices_lag_seconds: 7.5,
      settled_shop_failures: 6,
      'settled_checks_lag_seconds{class="confirm"}': 1,
      'settled_checks_lag_seconds{class="hint"}': 2,
      'settled_checks_lag_seconds{class="janitor"}': 3,
      settled_webhooks_missing: 4,
      settled_api_slots: 50,
      settled_api_paused: 1,
      settled_store_generation: 3,
      settled_store_restored: 1,
    });
  });

  it('show no waiting if there is no callback and no API', async () => {
    const stats = {
      ...NOTHING,
      noticesLagMs: 9_000,
      shopFailures: 6,
      checksLagMs: { confirm: 1, hint: 1, janitor: 9_000 },
    };
    const sources = { ...SOURCES, deliveryOutcomes: [], stats: async () => stats, canTell: false, apiSlots: null };
    expect(await scrapeOf(openMetrics(sources))).toMatchObject({
      settled_notices_lag_seconds: 0,
      settled_shop_failures: 0,
      'settled_checks_lag_seconds{class="confirm"}': 0,
      'settled_checks_lag_seconds{class="janitor"}': 0,
      settled_api_slots: 0,
    });
  });

  it("tell how far the service's clock is ahead of ours, once an answer says it", async () => {
    const metrics = open();
    expect((await scrapeOf(metrics)).settled_clock_ahead_seconds).toBeNaN();
    metrics.apiDated(-61_000);
    expect(await scrapeOf(metrics)).toMatchObject({ settled_clock_ahead_seconds: -61 });
  });
});
