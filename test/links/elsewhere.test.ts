import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { OpeningState } from '../../src/domain/opening.ts';
import type { Order } from '../../src/domain/order.ts';
import type { OpenRequest } from '../../src/links/attempt.ts';
import { type OpenerOptions, type OpenResult, startOpener } from '../../src/links/opener.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { readableLog } from '../support/observe.ts';

const REQUEST: OpenRequest = {
  reference: 'order-1',
  title: 'A chair',
  amount: { amountMinor: 10_000, currency: 'BRL' },
  description: null,
  expiresAtMs: null,
  metadata: null,
  callbackUrl: null,
};
const PENDING: OpeningState = { status: 'pending', withheld: null, fault: null, foreignId: null, needsId: false };
const DONE: OpeningState = { ...PENDING, status: 'done' };
const order = (state: string, link: object | null) => ({ reference: 'order-1', state, link }) as Order;
const UNOPENED = order('awaiting_payment', null);
const OPENED = order('awaiting_payment', { id: 'pl_1' });

/** A second takes a hundredth of one. */
const quick: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms / 100, work) };

/** An opener that never gets to do it itself; the order is seen in these ways, one after the other, and stays as last. */
function startIdle(seen: ({ order: Order; opening: OpeningState | null } | null)[], isShared = true) {
  const timeline = vi.fn(async () => (seen.length > 1 ? seen.shift() : seen[0]) ?? null);
  const opener = startOpener({
    store: {
      openIntent: async () => ({ outcome: 'created', order: UNOPENED, linkKey: 1, opening: PENDING }),
      quietMs: () => 0,
      claimOpenings: async () => [],
      findOrder: async () => seen[0]?.order ?? null,
      timeline,
    },
    keyring: openKeyring(Buffer.alloc(32)),
    credentials: { keep: () => {}, forget: () => {} },
    clock: quick,
    log: readableLog().log,
    random: Math.random,
    linkLifetimeMs: 60_000,
    customerReturn: false,
    isShared,
  } as unknown as OpenerOptions);
  onTestFinished(() => opener.stop());
  return { timeline, open: (): Promise<OpenResult> => opener.open(REQUEST, null) };
}

describe('a link that another replica opens', () => {
  it('is answered with as soon as it is there', async () => {
    const { open, timeline } = startIdle([
      { order: UNOPENED, opening: PENDING },
      { order: UNOPENED, opening: { ...PENDING, status: 'leased' } },
      { order: OPENED, opening: DONE },
    ]);
    expect(await open()).toEqual({ outcome: 'created', order: OPENED });
    expect(timeline).toHaveBeenCalledTimes(3);
  });

  it.each<[string, { order: Order; opening: OpeningState | null } | null, object]>([
    ['was refused', null, { outcome: 'refused', detail: expect.stringContaining('Send the request again') }],
    [
      'is withheld',
      { order: UNOPENED, opening: { ...DONE, withheld: 'It asks for other money.' } },
      { outcome: 'withheld', detail: 'It asks for other money.' },
    ],
    [
      'has a reference that is taken',
      { order: UNOPENED, opening: { ...PENDING, status: 'taken', fault: { code: 'x', message: 'By pl_9.' } } },
      { outcome: 'taken', detail: 'By pl_9.', foreignId: null },
    ],
    [
      'was cancelled',
      { order: order('cancelled', null), opening: PENDING },
      { outcome: 'cancelled', order: order('cancelled', null) },
    ],
  ])('is not waited for if it %s', async (_what, seen, answer) => {
    expect(await startIdle([{ order: UNOPENED, opening: PENDING }, seen]).open()).toEqual(answer);
  });

  it('is waited for no longer than one that is opened here', async () => {
    const { open, timeline } = startIdle([{ order: UNOPENED, opening: PENDING }]);
    expect(await open()).toEqual({ outcome: 'opening', order: UNOPENED });
    expect(timeline).toHaveBeenCalledTimes(19);
  });

  it('is looked for only if there may be another replica', async () => {
    const { open, timeline } = startIdle([{ order: UNOPENED, opening: PENDING }], false);
    expect(await open()).toEqual({ outcome: 'opening', order: UNOPENED });
    expect(timeline).not.toHaveBeenCalled();
  });
});
