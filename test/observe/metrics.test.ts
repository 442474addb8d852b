import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { openMetrics } from '../../src/observe/metrics.ts';
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
const events = (status: string) => `settled_inbox_events{status="${status}"}`;

describe('metrics: what a scrape shows', () => {
  it('is every name that operations.md speaks of', async () => {
    const app = await startTestApp();
    const { body } = await app.api('/metrics');
    const named = body
      .match(/^# TYPE settled_\w+ \w+/gm)
      ?.map((line: string) => line.slice('# TYPE '.length));
    expect(named.sort()).toEqual([
      'settled_attention gauge',
      'settled_checks_waiting gauge',
      'settled_commit_batch_calls histogram',
      'settled_commit_seconds histogram',
      'settled_deliveries_total counter',
      'settled_delivery_seconds histogram',
      'settled_disk_free_bytes gauge',
      'settled_holds gauge',
      'settled_inbox_events gauge',
      'settled_inbox_lag_seconds gauge',
      'settled_notices gauge',
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
        settled_checks_waiting: 1,
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

describe('metrics: by themselves', () => {
  it('show no number for the free space where the system does not tell it', async () => {
    const metrics = openMetrics({
      deliveryOutcomes: ['recorded'],
      stats: async () => ({
        orders: {},
        events: {},
        notices: {},
        holds: 0,
        attention: 0,
        checks: 0,
        rejections: 0,
        lagMs: 0,
      }),
      freeBytes: async () => null,
    });
    expect((await metrics.scrape()).text).toMatch(/^settled_disk_free_bytes (NaN|Nan)$/m);
  });
});
