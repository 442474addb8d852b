import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/work/clock.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import {
  API_KEY,
  faultOf,
  LINK_DETAILS,
  NEW_LINK,
  openClient,
  startAnswering,
  startPeer,
  type TestClient,
} from './peer.ts';

const NOW_MS = Date.UTC(2030, 0, 1, 12);
const clock = { ...systemClock, nowMs: () => NOW_MS };
const SERVICE_DATE = new Date(NOW_MS).toUTCString();

/** What a slot is given back with after an answer with these headers. */
async function returnedAfter(status: number, headers: Record<string, string>) {
  const peer = await startAnswering(status, { paymentLink: LINK_DETAILS }, { date: SERVICE_DATE, ...headers });
  const { service, budget } = openClient(peer.url, { clock });
  const retryAtMs = await service.showLink('pl_1', 'hint').then(
    () => null,
    (fault) => fault.retryAtMs,
  );
  const { seen, pause, nowMs } = budget.last();
  expect(nowMs).toBe(NOW_MS);
  return { seen, pause, retryAtMs };
}

const rate = (limit: string, remaining: string, reset = '30') => ({
  'x-ratelimit-limit': limit,
  'x-ratelimit-remaining': remaining,
  'x-ratelimit-reset': reset,
});

describe('paylink: X-RateLimit-*', () => {
  it('reaches the budget with any answer', async () => {
    for (const status of [200, 404, 500]) {
      expect((await returnedAfter(status, rate('60', '41'))).seen).toEqual({ limit: 60, remaining: 41 });
    }
  });

  it.each([
    ['', ''],
    ['60', ''],
    ['60', '-1'],
    ['60', '1.5'],
    ['60, 60', '1'],
    ['many', '1'],
    ['60', '9'.repeat(20)],
  ])('says nothing as %j and %j', async (limit, remaining) => {
    expect(await returnedAfter(200, rate(limit, remaining))).toMatchObject({ seen: null, pause: null });
  });

  it.each([
    ['seconds from now', '17', 17_000],
    ['epoch seconds', String(NOW_MS / 1_000 + 17), 17_000],
    ['epoch milliseconds', String(NOW_MS + 17_000), 17_000],
    ['a minute', '60', 60_000],
    ['longer than its window', '3600', 60_000],
    ['an epoch far away', String(NOW_MS / 1_000 + 86_400), 60_000],
  ])('pauses all requests until the reset if nothing remains: %s', async (_name, reset, inMs) => {
    expect(await returnedAfter(200, rate('60', '0', reset))).toEqual({
      seen: { limit: 60, remaining: 0, resetAtMs: NOW_MS + inMs },
      pause: { untilMs: NOW_MS + inMs, spares: null },
      retryAtMs: null,
    });
  });

  it.each(['', 'soon', '0', '-5', String(NOW_MS / 1_000 - 1)])('does not pause until %j', async (reset) => {
    expect((await returnedAfter(200, rate('60', '0', reset))).pause).toBeNull();
  });

  it.each([
    ['a reset that is over', '0', { limit: 60, remaining: 0, resetAtMs: NOW_MS }],
    ['none', '', { limit: 60, remaining: 0 }],
  ])('tells the budget until when nothing remains: %s', async (_name, reset, seen) => {
    expect((await returnedAfter(200, rate('60', '0', reset))).seen).toEqual(seen);
  });

  it('does not pause while something remains', async () => {
    expect((await returnedAfter(200, rate('60', '1'))).pause).toBeNull();
  });

  it("is read by the service's clock, because ours may be wrong", async () => {
    const headers = rate('60', '0', String(NOW_MS / 1_000 + 3_600 + 17));
    const date = new Date(NOW_MS + 3_600_000).toUTCString();
    expect((await returnedAfter(200, { ...headers, date })).pause?.untilMs).toBe(NOW_MS + 17_000);
  });

  it.each(['seconds', 'epoch'])('is understood as the sandbox writes it: rate-reset=%s', async (written) => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY, rateLimit: 1, switches: [`rate-reset=${written}`] });
    const { service, budget } = openClient(`${sandbox.url}/api/v1`);
    await service.profile('hint');
    const { seen, pause, nowMs } = budget.last();
    expect(seen).toEqual({ limit: 1, remaining: 0, resetAtMs: pause?.untilMs });
    expect((pause?.untilMs as number) - nowMs).toBeGreaterThan(58_000);
    expect((pause?.untilMs as number) - nowMs).toBeLessThanOrEqual(60_000);
  });
});

describe('paylink: 429', () => {
  it.each([
    ['seconds', '7', 7_000],
    ['a date', new Date(NOW_MS + 90_000).toUTCString(), 90_000],
    ['a date that is over', new Date(NOW_MS - 90_000).toUTCString(), 1_000],
    ['no time at all', '0', 1_000],
    ['a day', '86400', 3_600_000],
    ['words', 'later', 60_000],
    ['nothing', '', 60_000],
  ])('pauses everything as Retry-After says, and tells nothing else: %s', async (_name, retryAfter, inMs) => {
    const headers = retryAfter === '' ? {} : { 'retry-after': retryAfter };
    const untilMs = NOW_MS + inMs;
    expect(await returnedAfter(429, { ...rate('60', '0'), ...headers })).toEqual({
      seen: null,
      pause: { untilMs, spares: null },
      retryAtMs: untilMs,
    });
  });

  it('says until when', async () => {
    const peer = await startAnswering(429, {}, { date: SERVICE_DATE, 'retry-after': '20' });
    const { service } = openClient(peer.url, { clock });
    expect((await faultOf(service.showLink('pl_1', 'confirm'))).message).toBe(
      'GET /payment-links/{id} answered 429. The service takes no more requests until 2030-01-01T12:00:20.000Z; other ' +
        'programs may use the same key.',
    );
  });

  it('is obeyed as the sandbox says it', async () => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY });
    await sandbox.control('/faults', { body: { fault: 'rate-limit', with: { retryAfterSeconds: 45 } } });
    const { service, budget } = openClient(`${sandbox.url}/api/v1`, { clock });
    const fault = await faultOf(service.createLink(NEW_LINK, 'create'));
    expect(fault).toMatchObject({ code: 'service_rate_limited', retryAtMs: NOW_MS + 45_000 });
    expect(budget.last().pause).toEqual({ untilMs: NOW_MS + 45_000, spares: null });
  });
});

describe('paylink: Retry-After of another failure', () => {
  it('says when that call may be tried again, and pauses no other', async () => {
    expect(await returnedAfter(503, { 'retry-after': '120' })).toMatchObject({
      pause: null,
      retryAtMs: NOW_MS + 120_000,
    });
    expect(await returnedAfter(503, {})).toMatchObject({ pause: null, retryAtMs: null });
  });
});

describe('paylink: the key', () => {
  /** A service that takes one key, which can be changed. */
  async function startKeyed(key: string) {
    const state = { key };
    const peer = await startPeer((request, response) => {
      const isRight = request.headers['x-api-key'] === state.key;
      response.writeHead(isRight ? 200 : 401).end('{"merchant":{"id":"m_1"}}');
    });
    return { peer, state };
  }

  const keysOf = ({ requests }: Awaited<ReturnType<typeof startKeyed>>['peer']) =>
    requests.map(({ headers }) => (headers as Record<string, string>)['x-api-key']);

  it('is read again when it is refused, and tried again within another slot', async () => {
    const { peer } = await startKeyed('new-key');
    const keys = ['old-key', 'new-key'];
    const { service, budget, outcomes } = openClient(peer.url, { readKey: () => keys.shift() ?? 'none' });
    expect(await service.profile('create')).toMatchObject({ number: 2, value: { id: 'm_1' } });
    expect(keysOf(peer)).toEqual(['old-key', 'new-key']);
    expect(outcomes).toEqual(['GET /merchant/profile service_key_refused', 'GET /merchant/profile ok']);
    // A refusal of a key that is out of date pauses nothing: the second slot could not be taken otherwise.
    expect(budget.returned).toMatchObject([
      { number: 1, pause: null, standing: 'unknown' },
      { number: 2, pause: null, standing: 'well' },
    ]);
  });

  it('is not read again for every call', async () => {
    const { peer } = await startKeyed('the-key');
    let reads = 0;
    const readKey = () => {
      reads++;
      return 'the-key';
    };
    const { service } = openClient(peer.url, { readKey });
    await service.profile('hint');
    await service.profile('hint');
    expect(reads).toBe(1);
  });

  it('pauses everything but creations for a minute if it is refused and has not changed', async () => {
    const { peer } = await startKeyed('another');
    const { service, budget } = openClient(peer.url, { clock, readKey: () => 'the-key' });
    const fault = await faultOf(service.profile('hint'));
    expect(fault).toMatchObject({
      code: 'service_key_refused',
      kind: 'transient',
      status: 401,
      retryAtMs: NOW_MS + 60_000,
    });
    expect(peer.requests).toHaveLength(1);
    expect(budget.last()).toMatchObject({
      pause: { untilMs: NOW_MS + 60_000, spares: 'create' },
      standing: 'api_key_refused',
    });
    expect(await faultOf(service.profile('create'))).toMatchObject({ retryAtMs: null });
  });

  it('is tried twice at most, however often it changes', async () => {
    const { peer } = await startKeyed('right');
    let n = 0;
    const { service, budget } = openClient(peer.url, { readKey: () => `wrong-${n++}` });
    expect(await faultOf(service.profile('hint'))).toMatchObject({ code: 'service_key_refused' });
    expect(keysOf(peer)).toEqual(['wrong-0', 'wrong-1']);
    expect(budget.last()).toMatchObject({ number: 2, standing: 'api_key_refused' });
  });

  it('is the new one for calls whose old one another call found refused', async () => {
    const { peer, state } = await startKeyed('old-key');
    const { service } = openClient(peer.url, { readKey: () => state.key });
    await service.profile('hint');
    state.key = 'new-key';
    const both = await Promise.all([service.profile('hint'), service.profile('create')]);
    expect(both.map(({ value }) => value.id)).toEqual(['m_1', 'm_1']);
  });

  it('sends nothing if it cannot be read, and says why', async () => {
    const { peer } = await startKeyed('the-key');
    const readKey = () => {
      throw new Error('ENOENT: no such file');
    };
    const { service, budget } = openClient(peer.url, { readKey });
    const fault = await faultOf(service.profile('hint'));
    expect(fault).toMatchObject({ code: 'service_key_refused', kind: 'transient', mayHaveArrived: false });
    expect(fault.message).toContain('ENOENT: no such file');
    expect(budget.taken).toEqual([]);
  });

  it('stays in use if it is refused and its file has gone', async () => {
    const { peer } = await startKeyed('another');
    let isThere = true;
    const readKey = () => {
      if (!isThere) throw new Error('ENOENT: no such file');
      isThere = false;
      return 'the-key';
    };
    const { service } = openClient(peer.url, { readKey });
    expect(await faultOf(service.profile('hint'))).toMatchObject({ status: 401 });
    expect(await faultOf(service.profile('hint'))).toMatchObject({ status: 401 });
    expect(keysOf(peer)).toEqual(['the-key', 'the-key']);
  });

  it('is refused by the sandbox if it is wrong', async () => {
    const sandbox = await startTestSandbox({ apiKey: 'another' });
    const { service } = openClient(`${sandbox.url}/api/v1`);
    const fault = await faultOf(service.profile('hint'));
    expect(fault).toMatchObject({ code: 'service_key_refused', status: 401 });
    expect(fault.message).toContain('Put the right key into SETTLED_API_KEY');
  });
});

describe('paylink: 403', () => {
  const forbidden = async (ask: (client: TestClient) => Promise<unknown>, options: object) => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY, ...options });
    const client = openClient(`${sandbox.url}/api/v1`, { clock });
    const fault = await faultOf(ask(client));
    const { pause, standing } = client.budget.last();
    return { fault, pause, standing };
  };

  it.each([
    ['list', ({ service }: TestClient) => service.listLinks(1, 'janitor')],
    ['search', ({ service }: TestClient) => service.findLinks('order-1', 'create')],
  ])('of the %s is how the service has it in its sandbox: nothing pauses', async (_name, ask) => {
    const { fault, pause, standing } = await forbidden(ask, { environment: 'sandbox' });
    expect(fault).toMatchObject({ code: 'service_forbidden', kind: 'terminal', status: 403 });
    expect({ pause, standing }).toEqual({ pause: null, standing: 'unknown' });
  });

  it('of one link may be that link alone: nothing pauses', async () => {
    const { fault, pause, standing } = await forbidden(({ service }) => service.showLink('pl_1', 'janitor'), {
      merchantInactive: true,
    });
    expect(fault).toMatchObject({ code: 'service_forbidden', kind: 'transient', status: 403 });
    expect({ pause, standing }).toEqual({ pause: null, standing: 'unknown' });
  });

  it('elsewhere is an inactive merchant: all but creations pause for ten minutes', async () => {
    const untilMs = NOW_MS + 600_000;
    const inactive = { merchantInactive: true };
    const asked = await forbidden(({ service }) => service.profile('janitor'), inactive);
    expect(asked.fault).toMatchObject({ code: 'service_forbidden', kind: 'transient', retryAtMs: untilMs });
    expect(asked.pause).toEqual({ untilMs, spares: 'create' });
    expect(asked.standing).toBe('merchant_inactive');
    const created = await forbidden(({ service }) => service.createLink(NEW_LINK, 'create'), inactive);
    expect(created).toMatchObject({ fault: { retryAtMs: null }, pause: { untilMs, spares: 'create' } });
  });
});

describe("paylink: the service's clock", () => {
  async function aheadMs(status: number, date: string): Promise<number[]> {
    const peer = await startAnswering(status, { paymentLink: LINK_DETAILS }, { date });
    const told: number[] = [];
    const { service } = openClient(peer.url, { clock, onDated: (ms) => told.push(ms) });
    await service.showLink('pl_1', 'hint').catch(() => {});
    return told;
  }

  it.each([200, 429, 503])('is reported by every answer with a date, also a %i', async (status) => {
    expect(await aheadMs(status, new Date(NOW_MS + 90_000).toUTCString())).toEqual([90_000]);
    expect(await aheadMs(status, new Date(NOW_MS - 90_000).toUTCString())).toEqual([-90_000]);
  });

  it('is unknown if the date cannot be read', async () => {
    expect(await aheadMs(200, 'yesterday')).toEqual([]);
  });
});
