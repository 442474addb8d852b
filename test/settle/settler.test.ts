import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { Fault, LinkFault } from '../../src/fault.ts';
import { openLog } from '../../src/observe/log.ts';
import { deliveryMac } from '../../src/paylink/events.ts';
import type { LinkCredentials } from '../../src/secrets/credentials.ts';
import {
  BATCH_MAX,
  restAfterBatchMs,
  type SettledBatch,
  type SettlerOptions,
  startSettler,
} from '../../src/settle/settler.ts';
import type { ClaimedEvent } from '../../src/store/verbs/inbox.ts';

const YIELD_MS_MAX = 10_000;

/** A row that needs no credentials. */
function reading(receivedAtMs: number): ClaimedEvent {
  const body = Buffer.from('{"paymentLink":{"id":"pl_1","status":"ACTIVE","payments":[]}}');
  const mac = createHash('sha256').update(body).digest();
  return { eventKey: 1, attempt: 1, linkKey: 1, body, timestamp: '', mac, receivedAtMs, reading: 1 };
}

it.each([
  { workedMs: 10, ageMs: 100, restMs: 150 },
  { workedMs: 100, ageMs: 100, restMs: 400 },
  { workedMs: 5_000, ageMs: 4_000, restMs: 1_000 },
])(
  'settlement that took $workedMs ms yields to deliveries, but no event waits for more than 10 s by that',
  async (given) => {
    const { workedMs, ageMs, restMs } = given;
    let nowMs = 1_000_000;
    const rested = Promise.withResolvers<number>();
    const claims = [[reading(nowMs - ageMs)]];
    const settler = startSettler({
      clock: {
        nowMs: () => nowMs,
        monotonicMs: () => nowMs,
        after: (delayMs: number) => {
          rested.resolve(delayMs);
          return () => {};
        },
      },
      store: {
        quietMs: () => 0,
        claimEvents: async () => claims.shift() ?? [],
        settle: async () => {
          nowMs += workedMs;
          return { outcome: 'lost' };
        },
      },
      policy: { asks: 'never' },
      log: openLog('silent'),
      load: () => 1,
      isShared: false,
      onSettled: () => {},
    } as unknown as SettlerOptions);
    settler.wake();
    expect(await rested.promise).toBe(restMs);
    expect(ageMs + workedMs + restMs).toBeLessThanOrEqual(YIELD_MS_MAX);
    // The clock never ends this rest.
    await settler.stop();
  },
);

/** After a batch that was not full, of an idle process that has its store for itself, unless a test says otherwise. */
function restMs(over: Partial<SettledBatch>): number {
  return restAfterBatchMs({ events: 1, arrivals: 1, workedMs: 10, waitedMs: 100, load: 0, isShared: false, ...over });
}

describe('the rest after a batch of settlements', () => {
  it('is none while no delivery arrives, however busy the event loop is', () => {
    expect(restMs({ arrivals: 0, load: 1 })).toBe(0);
    expect(restMs({ arrivals: 0, load: 1, events: BATCH_MAX, isShared: true })).toBe(0);
  });

  it('is none while the event loop has time for both', () => {
    expect(restMs({ load: 0.4 })).toBe(0);
  });

  it.each([
    { workedMs: 10, waitedMs: 110, expected: 150 },
    { workedMs: 20, waitedMs: 120, expected: 200 },
    { workedMs: 100, waitedMs: 200, expected: 400 },
  ])('is long while deliveries fill the event loop: $expected ms after $workedMs ms of work', (given) => {
    const { workedMs, waitedMs, expected } = given;
    expect(restMs({ load: 0.9, workedMs, waitedMs })).toBe(expected);
  });

  it('ends before the oldest event has waited ten seconds', () => {
    for (const waitedMs of [5_000, 9_000, 9_999]) {
      const rest = restMs({ load: 1, workedMs: 5_000, waitedMs });
      expect(waitedMs + rest).toBe(YIELD_MS_MAX);
    }
  });

  it('is none for events that wait longer, but for the moment in which more come together', () => {
    expect(restMs({ load: 1, waitedMs: YIELD_MS_MAX, events: BATCH_MAX })).toBe(0);
    expect(restMs({ load: 1, waitedMs: YIELD_MS_MAX, events: BATCH_MAX - 1 })).toBe(40);
  });

  it('is short while the event loop is busy, so that more events share a commit', () => {
    expect(restMs({ load: 0.41 })).toBe(40);
    expect(restMs({ load: 0.41, events: BATCH_MAX })).toBe(0);
  });

  it('is long in a burst on a shared store, which the event loop does not show', () => {
    const burst = { events: BATCH_MAX, arrivals: BATCH_MAX + 1 };
    expect(restMs({ ...burst, isShared: true })).toBe(150);
    expect(restMs({ ...burst, isShared: false })).toBe(0);
    expect(restMs({ ...burst, isShared: true, arrivals: BATCH_MAX })).toBe(0);
    expect(restMs({ ...burst, isShared: true, events: BATCH_MAX - 1 })).toBe(0);
  });
});

describe('an event of a link whose secrets another process may know better', () => {
  const link: LinkCredentials = { linkKey: 1, reference: 'order-1', token: 't', secret: 'ours' };
  const provisional = { ...link, isProvisional: true } as const;
  const named = { ...link, serviceSecret: () => 'named by the service' };
  const unreadable = new LinkFault(link, new Fault('transient', 'secret_undecipherable', 'No key opens it.'));

  /** What becomes of an event signed with `secret`. `cached`: what this process knows; `stored`: what it finds. */
  async function settledWith(
    secret: string,
    cached: LinkCredentials | undefined,
    stored: LinkCredentials | Fault,
    attempt = 1,
  ) {
    const body = Buffer.from('{"id":"evt_1"}');
    const mac = deliveryMac(secret, '1', body);
    const event: ClaimedEvent = {
      eventKey: 1,
      attempt,
      linkKey: 1,
      body,
      timestamp: '1',
      mac,
      receivedAtMs: 0,
      reading: null,
    };
    const store = {
      quietMs: () => 0,
      claimEvents: async () => [],
      settle: vi.fn(async () => ({ outcome: 'lost' })),
      retryEvent: vi.fn(async (_: object) => {}),
      buryEvent: vi.fn(async (_: object) => 'dead'),
    };
    const find = vi.fn(async () => {
      if (stored instanceof Fault) throw stored;
      return stored;
    });
    const settler = startSettler({
      store,
      credentials: { cachedByLinkKey: () => cached, find },
      policy: { asks: 'never' },
      clock: { nowMs: () => 0, monotonicMs: () => 0, after: () => () => {} },
      random: () => 0,
      log: openLog('silent'),
      load: () => 0,
      isShared: true,
      onSettled: () => {},
      onFailed: () => {},
    } as unknown as SettlerOptions);
    await settler.settleNow(event);
    await settler.stop();
    const [ended] = [...store.retryEvent.mock.calls, ...store.buryEvent.mock.calls] as [{ fault: { code: string } }][];
    return {
      lookedUp: find.mock.calls.length,
      settled: store.settle.mock.calls.length,
      retried: store.retryEvent.mock.calls.length,
      buried: store.buryEvent.mock.calls.length,
      why: ended?.[0].fault.code ?? null,
    };
  }

  const SETTLED = { settled: 1, retried: 0, buried: 0, why: null };
  const UNREADABLE = { lookedUp: 1, settled: 0, retried: 1, buried: 0, why: 'secret_undecipherable' };
  const DAMAGED = { settled: 0, retried: 0, buried: 1, why: 'stored_event_damaged' };
  it.each<[string, Parameters<typeof settledWith>, object]>([
    ['is settled with what is known', ['ours', link, named], { ...SETTLED, lookedUp: 0 }],
    ['is settled with what is found if nothing is known', ['ours', undefined, link], { ...SETTLED, lookedUp: 1 }],
    [
      'is settled with what is known while the link is opened',
      ['ours', provisional, named],
      { ...SETTLED, lookedUp: 0 },
    ],
    [
      'is settled with a secret that the service named since',
      ['named by the service', provisional, named],
      { ...SETTLED, lookedUp: 1 },
    ],
    [
      'that no secret verifies is given up, as the bytes are damaged',
      ['nobody', provisional, named],
      { ...DAMAGED, lookedUp: 1 },
    ],
    ['that a link long open does not verify is given up at once', ['nobody', link, named], { ...DAMAGED, lookedUp: 0 }],
    ['waits for a key while the secret of the link cannot be read', ['ours', undefined, unreadable], UNREADABLE],
    [
      'waits for a key while a secret named since cannot be read',
      ['named by the service', provisional, unreadable],
      UNREADABLE,
    ],
    ['waits for a key once more, if it was tried 15 times', ['ours', undefined, unreadable, 15], UNREADABLE],
    [
      'is given up when it was tried 16 times',
      ['ours', undefined, unreadable, 16],
      { ...UNREADABLE, retried: 0, buried: 1 },
    ],
  ])('%s', async (_what, given, wanted) => {
    expect(await settledWith(...given)).toEqual(wanted);
  });
});
