import { describe, expect, it, onTestFinished } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { startTestApp } from '../support/app.ts';
import { readableLog } from '../support/observe.ts';
import { startEndlessRun, tamper } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { bySession, get, paidOrder, post, problem } from './client.ts';

const settled = sharedApp();

/** Rows that are numbered by the millisecond of their time, behind settled's back. */
function manyRows(insert: string, table: string, time: string) {
  const series = (to: number) =>
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i AS i FROM n WHERE i >= ?`;
  return {
    add: (from: number, to: number) => tamper(settled().storePath, `${insert} FROM (${series(to)})`, from),
    drop: (from: number, to: number) =>
      tamper(settled().storePath, `DELETE FROM ${table} WHERE ${time} BETWEEN ? AND ?`, from, to),
  };
}

/** Events that were given up, of the newest link. */
const EVENTS = manyRows(
  `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, status, attempt, received_at_ms, due_at_ms)
   SELECT (SELECT max(key) FROM link), 'evt_' || i, x'00', '1', x'00', 'dead', 1, i, i`,
  'inbox',
  'received_at_ms',
);
const MATTERS = manyRows(
  `INSERT INTO attention (kind, subject, detail, opened_at_ms, last_at_ms) SELECT 'link_missing', 'pl_' || i, 'Look.', i, i`,
  'attention',
  'opened_at_ms',
);

describe('api: work on all rows of a filter', () => {
  it('is previewed, started, and done in the background; each row is told of in the audit', async () => {
    const { log, lines } = readableLog();
    const app = await startTestApp({ log });
    const orders = [await paidOrder(app), await paidOrder(app)];
    tamper(app.storePath, `UPDATE inbox SET status = 'dead', fault_code = 'bug', fault_message = ''`);
    const asked = { action: 'replay_events', filter: { status: 'dead' } };
    const previewed = await post(app, '/v1/bulk', { ...asked, preview: true });
    expect([previewed.status, previewed.body]).toEqual([200, { count: { n: 2, isMore: false } }]);
    expect((await get(app, '/v1/bulk')).body.runs).toEqual([]);
    const started = await post(app, '/v1/bulk', { ...asked, reason: 'the secret was wrong' });
    expect(started.status).toBe(202);
    const { id, ...run } = started.body.run;
    expect(run).toMatchObject({ ...asked, reason: 'the secret was wrong', by: 'operator', total: 2, isMore: false });
    await eventually(async () => {
      const { run: now } = (await get(app, `/v1/bulk/${id}`)).body;
      expect(now).toMatchObject({ status: 'done', done: 2, changed: 2, skipped: 0, failed: 0, expectedEndAt: null });
    });
    for (const { reference } of orders) {
      await eventually(async () => {
        const { events } = (await get(app, `/v1/events?reference=${reference}`)).body;
        expect(events).toMatchObject([{ status: 'done', rule: 'completion_already_counted' }]);
      });
    }
    const { audit } = (await get(app, '/v1/audit')).body;
    expect(
      audit.slice(0, 3).map(({ action, subject }: { action: string; subject: string }) => [action, subject]),
    ).toEqual([
      ['replay_event', expect.any(String)],
      ['replay_event', expect.any(String)],
      ['start_bulk', id],
    ]);
    expect(audit[0].after).toEqual({ bulk: id });
    await eventually(() => {
      expect(lines.findLast(({ msg }) => msg === 'head of the audit chain')?.number).toBe(audit[0].number);
    });
    problem(await post(app, `/v1/bulk/${id}/cancel`, {}), 409, 'bulk_ended');
  });

  it('of a list is counted to 1 000, and then said to be more, until it is less', async () => {
    await settled().reserve(freshReference());
    onTestFinished(() => EVENTS.drop(1, 100_000));
    const count = async () => (await get(settled(), '/v1/events?status=dead&count=true&limit=1')).body.count;
    EVENTS.add(1, 999);
    expect(await count()).toEqual({ n: 999, isMore: false });
    EVENTS.add(1_000, 1_000);
    expect(await count()).toEqual({ n: 1_000, isMore: false });
    EVENTS.add(1_001, 1_001);
    expect(await count()).toEqual({ n: 1_000, isMore: true });
    EVENTS.drop(2, 2);
    expect(await count()).toEqual({ n: 1_000, isMore: false });
    EVENTS.add(1_002, 1_002);
    expect(await count()).toEqual({ n: 1_000, isMore: true });
  });

  it('takes 10 000 rows at most, of each list, and says if there are more, until some of them are gone', async () => {
    await settled().reserve(freshReference());
    const until = (ms: number) => ({ until: new Date(ms).toISOString() });
    const lists = [
      { action: 'replay_events', filter: { status: 'dead' }, ...EVENTS },
      { action: 'end_attention', filter: { kind: 'link_missing' }, ...MATTERS },
    ];
    for (const { action, filter, add, drop } of lists) {
      onTestFinished(() => drop(1, 100_000));
      const count = async (over = {}) =>
        (await post(settled(), '/v1/bulk', { action, filter: { ...filter, ...over }, preview: true })).body.count;
      const [below, exactly, reached] = [9_999, 10_000, 10_000].map((n, at) => ({ n, isMore: at === 2 }));
      add(1, 9_999);
      expect([action, await count()]).toEqual([action, below]);
      add(10_000, 10_000);
      expect([action, await count()]).toEqual([action, exactly]);
      add(10_001, 10_001);
      expect([action, await count(), await count(until(10_000))]).toEqual([action, reached, exactly]);
      expect([action, await count(until(3)), await count({ since: new Date(9_999).toISOString() })]).toEqual([
        action,
        { n: 3, isMore: false },
        { n: 3, isMore: false },
      ]);
      drop(1, 2);
      expect([action, await count()]).toEqual([action, below]);
      add(10_002, 10_004);
      expect([action, await count()]).toEqual([action, reached]);
      const started = (await post(settled(), '/v1/bulk', { action, filter, reason: 'seen' })).body.run;
      const { run } = (await post(settled(), `/v1/bulk/${started.id}/cancel`, {})).body;
      expect(run).toMatchObject({ action, total: 10_000, isMore: true, status: 'cancelled' });
    }
  });

  it('keeps nowhere what was searched for, which may name a customer', async () => {
    const service = { SETTLED_API_URL: 'https://service.invalid', SETTLED_API_KEY: 'key' };
    const app = await startTestApp({ environment: service });
    const filter = { q: 'ana.souza@example.com', currency: 'BRL' };
    const started = await post(app, '/v1/bulk', { action: 'check_orders', filter });
    expect([started.status, started.body.run.filter]).toEqual([202, { q: '(a search)', currency: 'BRL' }]);
    const { cookie } = await signIn(app);
    const page = await fetch(`${app.apiUrl}/bulk/${started.body.run.id}`, { headers: { cookie } });
    const told = [JSON.stringify([(await get(app, '/v1/bulk')).body, (await get(app, '/v1/audit')).body])];
    told.push(await page.text());
    for (const text of told) {
      expect(text).toContain('(a search)');
      expect(text).not.toContain('souza');
      expect(text).not.toContain('q=');
    }
  });

  it('is not started to ask a service that settled cannot ask', async () => {
    const asked = { action: 'check_orders', filter: { state: 'paid' } };
    problem(await post(settled(), '/v1/bulk', asked), 503, 'api_not_configured');
  });

  it('is cancelled: what it did stays', async () => {
    const app = await startTestApp();
    startEndlessRun(app.storePath, 7);
    // Wakes the worker, which takes the oldest run first.
    await post(app, '/v1/bulk', { action: 'resend_notices', filter: { status: 'dead' } });
    await eventually(async () => {
      const { run } = (await get(app, '/v1/bulk/7')).body;
      expect(run).toMatchObject({ status: 'running', expectedEndAt: expect.any(String) });
      expect(run.skipped).toBeGreaterThan(0);
    });
    const cancelled = await post(app, '/v1/bulk/7/cancel', {});
    expect([cancelled.status, cancelled.body.run]).toMatchObject([200, { status: 'cancelled', total: 10_000 }]);
    expect((await get(app, '/v1/bulk/7')).body.run.done).toBeLessThan(10_000);
  });

  it('goes no further once the token that started it was revoked', async () => {
    const app = await startTestApp();
    await paidOrder(app);
    tamper(app.storePath, `UPDATE inbox SET status = 'dead', fault_code = 'bug', fault_message = ''`);
    const token = await namedToken(app, 'operator', 'ana');
    const { own } = await signIn(app, token);
    // The worker takes the oldest run first: the others wait.
    startEndlessRun(app.storePath, 7);
    const asked = { action: 'replay_events', filter: { status: 'dead' } };
    expect((await app.api('/v1/bulk', { body: asked, token })).status).toBe(202);
    expect((await bySession(app, 'post', '/v1/bulk', own).send(asked)).status).toBe(202);
    await post(app, '/v1/tokens/ana/revoke', {});
    expect((await post(app, '/v1/bulk', asked)).status).toBe(202);
    await post(app, '/v1/bulk/7/cancel', {});
    await eventually(async () => {
      const { runs } = (await get(app, '/v1/bulk')).body;
      expect(runs).toMatchObject([
        { by: 'operator', status: 'done', detail: null, changed: 1 },
        { by: 'ana', status: 'cancelled', detail: 'token_ended', done: 0, endedAt: expect.any(String) },
        { by: 'ana', status: 'cancelled', detail: 'token_ended', done: 0 },
        { id: '7', status: 'cancelled', detail: null },
      ]);
    });
    const { cookie } = await signIn(app);
    const page = await fetch(`${app.apiUrl}/bulk/8`, { headers: { cookie } });
    expect(await page.text()).toContain('the token that started it was revoked or has expired');
  });

  it('ends in the middle when the token of who started it is revoked', async () => {
    const app = await startTestApp();
    await paidOrder(app);
    const token = await namedToken(app, 'operator', 'ana');
    startEndlessRun(app.storePath, 7);
    const asked = { action: 'replay_events', filter: { status: 'done' } };
    expect((await app.api('/v1/bulk', { body: asked, token })).body.run.id).toBe('8');
    tamper(
      app.storePath,
      'INSERT INTO bulk_item (run_key, item_key) SELECT 8, item_key FROM bulk_item WHERE run_key = 7',
    );
    await post(app, '/v1/bulk/7/cancel', {});
    await eventually(async () => {
      const { run } = (await get(app, '/v1/bulk/8')).body;
      expect([run.status, run.skipped > 10]).toEqual(['running', true]);
    });
    await post(app, '/v1/tokens/ana/revoke', {});
    const ended = await eventually(async () => {
      const { run } = (await get(app, '/v1/bulk/8')).body;
      expect(run).toMatchObject({ by: 'ana', status: 'cancelled', detail: 'token_ended' });
      return run;
    });
    expect(ended.done).toBeLessThan(10_000);
    // What was under way when it ended is over: no row follows.
    await post(app, '/v1/bulk', { action: 'resend_notices', filter: { status: 'dead' } });
    await eventually(async () => expect((await get(app, '/v1/bulk/9')).body.run.status).toBe('done'));
    expect((await get(app, '/v1/bulk/8')).body.run.done).toBe(ended.done);
  });

  it.each([
    [{ action: 'replay_events', filter: {} }, 'filter: must name at least one parameter'],
    [{ action: 'replay_events', filter: { status: 'lost' } }, 'filter.status: must be one of '],
    [{ action: 'replay_events', filter: { q: 'a' } }, 'filter.q: there is no such field'],
    [{ action: 'check_orders', filter: { amountTo: '1.0011' } }, 'amountTo: has more decimals'],
    [{ action: 'end_attention', filter: { since: '2030-01-31T12:00:00Z' }, reason: 'seen' }, 'filter.kind: is needed'],
    [{ action: 'end_attention', filter: { kind: 'refund_due' } }, 'reason: is needed'],
    [{ action: 'accept_orders', filter: { hold: 'amount_mismatch' } }, 'reason: is needed'],
    [{ action: 'accept_orders', filter: { state: 'held' }, reason: 'seen' }, 'filter: must name a hold reason'],
  ])('refuses a filter that it cannot use: %j', async (body, expected) => {
    const detail = problem(await post(settled(), '/v1/bulk', body), 422, 'invalid_request');
    expect(detail.startsWith(expected)).toBe(true);
  });

  it('knows no run that there is not', async () => {
    for (const id of ['99', 'x', '0']) {
      problem(await get(settled(), `/v1/bulk/${id}`), 404, 'not_found');
      problem(await post(settled(), `/v1/bulk/${id}/cancel`, {}), 404, 'not_found');
    }
  });
});
