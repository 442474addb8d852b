import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { type Metrics, openMetrics } from '../../src/observe/metrics.ts';
import type { Stats } from '../../src/store/queries.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';

/** The samples of a scrape by name and labels, as they are written. */
async function scrape(app: TestApp): Promise<Record<string, number>> {
  const { status, headers, body } = await app.api('/metrics');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return samples(body);
}

function samples(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const outcome = (name: string) => `settled_deliveries_total{outcome="${name}"}`;
const orders = (state: string) => `settled_orders{state="${state}"}`;
const checks = (name: string) => `settled_checks_waiting{class="${name}"}`;
const events = (status: string) => `settled_inbox_events{status="${status}"}`;

describe('metrics: what a scrape shows', () => {
  it('is every name that operations.md speaks of', async () => {
    const app = await startTestApp();
    const { body } = await app.api('/metrics');
    const named = body
      .match(/^# TYPE settled_\w+ \w+/gm)
      ?.map((line: string) => line.slice('# TYPE '.length));
    expect(named.sort()).toEqual([
      'settled_api_request_seconds histogram',
      'settled_api_requests_in_flight gauge',
      'settled_api_requests_total counter',
      'settled_api_slots_in_use gauge',
      'settled_attention gauge',
      'settled_checks_waiting gauge',
      'settled_commit_batch_calls histogram',
      'settled_commit_seconds histogram',
      'settled_deliveries_total counter',
      'settled_delivery_seconds histogram',
      'settled_disk_free_bytes gauge',
      'settled_drift gauge',
      'settled_holds gauge',
      'settled_inbox_events gauge',
      'settled_inbox_lag_seconds gauge',
      'settled_notices gauge',
      'settled_opening_attempts_total counter',
      'settled_openings gauge',
      'settled_orders gauge',
      'settled_settlement_failures_total counter',
      'settled_settlements_total counter',
    ]);
  });

  it('has a series for every outcome and state from the start, so that rates have a beginning', async () => {
    const app = await startTestApp();
    const now = await scrape(app);
    const zeros = [
      ...['recorded', 'duplicate', 'conflict', 'unreadable', 'stale', 'rejected', 'unknown_link'].map(
        outcome,
      ),
      ...['too_large', 'encoded', 'aborted', 'refused', 'shed', 'failed'].map(outcome),
      ...['awaiting_payment', 'payment_pending', 'paid', 'held', 'expired'].map(orders),
      ...['cancelled', 'refunded', 'disputed'].map(orders),
      ...['pending', 'leased', 'done', 'dead'].map(events),
      ...['confirm', 'hint', 'janitor'].map(checks),
      ...['pending', 'leased', 'taken'].map((status) => `settled_openings{status="${status}"}`),
      'settled_api_requests_in_flight',
      'settled_api_slots_in_use',
      'settled_drift',
    ];
    expect(Object.fromEntries(zeros.map((name) => [name, now[name]]))).toEqual(
      Object.fromEntries(zeros.map((name) => [name, 0])),
    );
    expect(now.settled_disk_free_bytes).toBeGreaterThan(0);
    expect(now.process_resident_memory_bytes).toBeGreaterThan(0);
  });

  it('counts deliveries by how they ended, and how long each took', async () => {
    const app = await startTestApp();
    const link = await app.reserve('order');
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
    const now = await scrape(app);
    const ended = ['recorded', 'duplicate', 'conflict', 'unreadable', 'stale', 'rejected', 'unknown_link'];
    for (const name of [...ended, 'too_large', 'encoded'])
      expect([name, now[outcome(name)]]).toEqual([name, 1]);
    expect(now.settled_delivery_seconds_count).toBe(9);
    expect(now['settled_delivery_seconds_bucket{le="+Inf"}']).toBe(9);
    expect(now.settled_delivery_seconds_sum).toBeGreaterThan(0);
    expect(now.settled_delivery_seconds_sum).toBeLessThan(30);
  });

  it('follows orders from state to state, and leaves nothing behind in the old one', async () => {
    const app = await startTestApp();
    const link = await app.reserve('order');
    expect(await scrape(app)).toMatchObject({ [orders('awaiting_payment')]: 1, [orders('paid')]: 0 });
    await app.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '100.00' }));
    await vi.waitFor(async () =>
      expect(await scrape(app)).toMatchObject({
        [orders('awaiting_payment')]: 0,
        [orders('paid')]: 1,
        [events('done')]: 1,
        'settled_notices{status="pending"}': 1,
        'settled_settlements_total{outcome="applied"}': 1,
        settled_holds: 0,
        [checks('janitor')]: 1,
      }),
    );
  });

  it('shows holds and attention while they stand', async () => {
    const app = await startTestApp();
    const link = await app.reserve('order');
    await app.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '60.00' }));
    await app.deliver(link, 'not JSON');
    await vi.waitFor(async () =>
      expect(await scrape(app)).toMatchObject({
        settled_holds: 1,
        settled_attention: 1,
        [events('dead')]: 1,
        'settled_settlements_total{outcome="held"}': 1,
        'settled_settlement_failures_total{outcome="buried"}': 1,
      }),
    );
    await app.api('/v1/orders/order/resolve', { body: { decision: 'accept', reason: 'seen' } });
    expect(await scrape(app)).toMatchObject({ settled_holds: 0, [orders('held')]: 0, [orders('paid')]: 1 });
  });

  it('shows the age of the oldest event that is due', async () => {
    const app = await startTestApp();
    const link = await app.reserve('order');
    await app.deliver(link, paymentEvent({ linkId: 'pl_1', status: 'PENDING' }));
    await vi.waitFor(async () => expect(await scrape(app)).toMatchObject({ [events('done')]: 1 }));
    expect((await scrape(app)).settled_inbox_lag_seconds).toBe(0);
    // A row that cannot be worked on: it has no body, so it is never claimed and only grows older.
    const db = new Database(app.storePath);
    db.pragma('busy_timeout = 2000');
    db.exec(`INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, received_at_ms, due_at_ms)
      VALUES (1, 'stuck', x'00', '0', x'00', 0, ${Date.now() - 90_000})`);
    db.close();
    const { settled_inbox_lag_seconds: lag } = await scrape(app);
    expect(lag).toBeGreaterThanOrEqual(90);
    expect(lag).toBeLessThan(120);
  });

  it('shows how many calls shared a commit, and how long commits took', async () => {
    const app = await startTestApp();
    const before = await scrape(app);
    const links = await Promise.all(Array.from({ length: 20 }, (_, i) => app.reserve(`order-${i}`)));
    await Promise.all(links.map((link) => app.deliver(link, paymentEvent({ amount: '100.00' }))));
    const after = await scrape(app);
    const grown = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
    const commits = grown('settled_commit_batch_calls_count');
    expect(commits).toBeGreaterThan(0);
    expect(grown('settled_commit_seconds_count')).toBe(commits);
    // 20 reservations and 20 deliveries at least.
    expect(grown('settled_commit_batch_calls_sum')).toBeGreaterThanOrEqual(40);
    expect(grown('settled_commit_seconds_sum')).toBeGreaterThan(0);
  });

  it('is for the operator alone', async () => {
    const app = await startTestApp();
    expect((await fetch(`${app.apiUrl}/metrics`)).status).toBe(401);
    expect((await fetch(`${app.hooksUrl}/metrics`)).status).toBe(404);
  });
});

const NOTHING: Stats = {
  orders: {},
  events: {},
  notices: {},
  holds: 0,
  attention: 0,
  checks: 0,
  checksByClass: { confirm: 0, hint: 0, janitor: 0 },
  openings: {},
  drift: 0,
  api: { slotsInUse: 0, pausedUntilMs: null },
  rejections: 0,
  lagMs: 0,
};

describe('metrics: by themselves', () => {
  const open = (stats: () => Stats = () => NOTHING) =>
    openMetrics({ deliveryOutcomes: ['recorded'], stats: async () => stats(), freeBytes: async () => null });
  const scrapeOf = async (metrics: Metrics) => samples((await metrics.scrape()).text);

  it('show no number for the free space where the system does not tell it', async () => {
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

  it('count attempts to open links by what came of them', async () => {
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
});
