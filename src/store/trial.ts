import { createHash } from 'node:crypto';
import { readSearch } from '../domain/search.ts';
import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { OpenedEngine, Store } from './contract.ts';

/**
 * What `settled doctor --store` does on either engine: steps until one fails, the last of which takes an order through a
 * store beside settled's own (in a schema, or in a file).
 */

export type TrialOptions = {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct: StoreAddress | null;
  /** Whether the operator has declared the server's storage durable. */
  trustsStorage: boolean;
  clock: Clock;
  newId: () => string;
  /** Rejects if the trial must end early. What it made is removed all the same. */
  stopped: Promise<never>;
};

/** A finding of doctor. */
export type Tried = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

/** Throws what is wrong, or returns what was found. */
type Step = readonly [name: string, find: () => string | Promise<string>];

/** What settled can do without, in words for people. */
export class DegradedError extends Error {}

/** Takes steps until one fails, and names that. `whyOf`: an error in words for people. Faults: `store_unreachable`. */
export async function trySteps(steps: readonly Step[], whyOf: (error: unknown) => string): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (const [name, find] of steps) {
    try {
      tried.push({ name, status: 'ok', detail: await find() });
    } catch (error) {
      if (error instanceof Fault && error.code === 'store_unreachable') throw error;
      const isWarning = error instanceof DegradedError;
      tried.push({ name, status: isWarning ? 'warning' : 'failing', detail: whyOf(error) });
      if (!isWarning) break;
    }
  }
  return tried;
}

/** What the opening of either engine needs of a trial. */
export function openingOf({ clock, newId }: Pick<TrialOptions, 'clock' | 'newId'>) {
  const key = { secretsKeyId: 'trial', olderKeyIds: [], newInstanceId: newId() };
  return { ...key, clock, callTimeoutMs: 10_000, onBatch: () => {}, onFailed: () => {} };
}

/** Opens a store, which migrates it, takes an order through it, and closes it. */
export async function tryOrder(open: () => Promise<OpenedEngine>, { clock, newId }: TrialOptions): Promise<string> {
  const { store } = await open();
  try {
    await takeOrder(store, clock.nowMs(), newId);
    return 'all migrations and statements work';
  } finally {
    await store.close();
  }
}

/** Calls what settled calls in an order's life. Throws the first error. */
async function takeOrder(store: Store, nowMs: number, newId: () => string): Promise<void> {
  const claim = { limit: 1, nowMs, leaseMs: 30_000 };
  const { intent, delivery, job, author } = inputsAt(nowMs, newId);
  await store.openIntent(intent);
  await store.claimOpenings(claim);
  const linkKey = (await store.findCredentials({ token: intent.token }))?.linkKey ?? 0;
  await store.recordDelivery({ ...delivery, linkKey });
  for (const { eventKey, attempt } of await store.claimEvents(claim)) await store.settle({ ...job, eventKey, attempt });
  await store.claimNotices({ ...claim, tried: false });
  await store.findFeedEnd();
  const { notices } = await store.readFeed({ after: 0, limit: 10, bytesMax: 100_000 });
  const { rows } = await store.listOrders({ limit: 10, search: readSearch('sao joao') });
  await store.takeBudget({ class: 'confirm', slots: 1, deadlineMs: 10_000, nowMs });
  const change = { action: 'check_order', subject: intent.reference } as const;
  await store.recordAction({ by: author, change, atMs: nowMs });
  await store.heartbeat(nowMs);
  await Promise.all([store.stats(nowMs), store.storeState(nowMs)]);
  // A database may accept a statement and not do what it says.
  const states = rows.map(({ value }) => value.state).join();
  if (states === 'paid' && notices.length === 1) return;
  throw new Error(`an order was paid, and is found as "${states}", and the number of its notices is ${notices.length}`);
}

/** An order, a delivery for it, what that says, and a person. */
function inputsAt(nowMs: number, newId: () => string) {
  const body = Buffer.from(newId());
  const digest = createHash('sha256').update(body).digest();
  const money = { amount: '100.00', currency: 'BRL' };
  const fact = { kind: 'completed', paymentId: 'one', linkMoney: money } as const;
  return {
    intent: {
      reference: `trial-${newId()}`,
      token: newId(),
      amount: { amountMinor: 10_000, currency: 'BRL' },
      request: JSON.stringify({ title: 'Camisa São João' }),
      secret: { sealed: body, keyId: 'trial', fingerprint: digest },
      callbackUrl: null,
      returnToken: null,
      expiresAtMs: nowMs + 86_400_000,
      by: null,
      atMs: nowMs,
    },
    delivery: {
      eventId: 'one',
      body,
      bodySha256: digest,
      mac: digest,
      timestamp: String(nowMs),
      type: null,
      readable: true,
      isPaymentId: false,
      receivedAtMs: nowMs,
    },
    job: {
      linkIds: [],
      facts: [{ ...fact, quoteMoney: null, reference: null }],
      linkChanged: false,
      linkStatus: null,
      notUnderstood: null,
      details: [],
      expiresAtMs: null,
      link: null,
      policy: { asks: 'never' },
      nowMs,
    } as const,
    author: { name: 'doctor', role: 'admin', origin: 'cli', address: '', auditKey: digest } as const,
  };
}
