import { createHash } from 'node:crypto';
import { readSearch } from '../domain/search.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { OpenedEngine, Store } from './contract.ts';

/**
 * What `settled doctor --store` does on either engine: it opens a store beside settled's own (in a schema, or in a file)
 * and calls verbs of the contract there until one fails.
 */

/** `degraded`: settled works, but a person must take care of something. `missing`: settled cannot use the store. */
export type Probed = { capability: string; verdict: 'ok' | 'degraded' | 'missing'; found: string };

export type TrialOptions = {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct: StoreAddress | null;
  /** Whether the operator has declared the server's storage durable. */
  trustsStorage: boolean;
  clock: Clock;
  newId: () => string;
  /** Ends the trial early. What it made is removed all the same. */
  signal: AbortSignal;
};

/** What settled can do without, in words for people. */
export class DegradedError extends Error {}

/** Finds out about one thing. An error says what is wrong with it. */
export async function findOut(capability: string, find: () => string | Promise<string>): Promise<Probed> {
  try {
    return { capability, verdict: 'ok', found: await find() };
  } catch (error) {
    const verdict = error instanceof DegradedError ? 'degraded' : 'missing';
    return { capability, verdict, found: (error as Error).message };
  }
}

/** What a trial left that was killed is removed after this time. Newer ones may belong to a trial that has not ended. */
export const LEFT_MS = 3_600_000;

/** A trial takes a second or two. A server that waits for a lock that is never released would never answer. */
const WITHIN_MS = 60_000;

/** What the opening of either engine needs of a trial. */
export function openingOf({ clock, newId }: Pick<TrialOptions, 'clock' | 'newId'>) {
  const key = { secretsKeyId: 'trial', olderKeyIds: [], newInstanceId: newId() };
  return { ...key, clock, callTimeoutMs: 10_000, onBatch: () => {}, onFailed: () => {} };
}

/** Opens a store, calls the verbs on it until one fails, and closes it. `whyOf`: an error in words for people. */
export async function tryStore(
  open: () => Promise<OpenedEngine>,
  { clock, newId, signal }: TrialOptions,
  whyOf: (error: unknown) => string,
): Promise<Probed[]> {
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  const stop = () => over.reject(new Error('stopped'));
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();
  const cancel = clock.after(WITHIN_MS, () => over.reject(new Error(`no answer within ${WITHIN_MS / 1000} s`)));
  const opening = open();
  const probed: Probed[] = [];
  let trying: Step | undefined = ['opening', 'all migrations are applied'];
  try {
    const { store } = await Promise.race([opening, over.promise]);
    const steps = callVerbs(store, clock.nowMs(), newId);
    while (trying !== undefined) {
      const next: IteratorResult<Step, undefined> = await Promise.race([steps.next(), over.promise]);
      probed.push({ capability: trying[0], verdict: 'ok', found: trying[1] });
      trying = next.value;
    }
  } catch (error) {
    probed.push({ capability: trying?.[0] ?? 'opening', verdict: 'missing', found: whyOf(error) });
  } finally {
    const closed = opening.then(({ store }) => store.close()).catch(() => {});
    await Promise.race([closed, over.promise.catch(() => {})]);
    cancel();
    signal.removeEventListener('abort', stop);
  }
  return probed;
}

/** The verb that is called next, and what it shows if it succeeds. */
type Step = readonly [verb: string, found: string];

/** Opens an order, has it paid, and tells the shop, each by two calls at once, as two replicas make them. */
async function* callVerbs(store: Store, nowMs: number, newId: () => string): AsyncGenerator<Step, undefined> {
  const claim = { limit: 1, nowMs, leaseMs: 30_000 };
  const { intent, delivery, job, author } = inputsAt(nowMs, newId);
  const { reference, token } = intent;

  yield ['openIntent', 'opened once'];
  const opened = await twice(() => store.openIntent(intent));
  expectSame(opened.map(({ outcome }) => outcome).sort(), ['created', 'same']);
  const linkKey = opened[0]?.outcome === 'conflict' ? 0 : (opened[0]?.linkKey ?? 0);

  yield ['claimOpenings', 'one replica opens the link'];
  const openings = (await twice(() => store.claimOpenings(claim))).flat();
  expectSame(
    openings.map((opening) => opening.linkKey),
    [linkKey],
  );

  yield ['findCredentials', 'found by its token'];
  expectSame((await store.findCredentials({ token }))?.linkKey, linkKey);

  yield ['recordDelivery', 'a repeated event, once'];
  const recorded = await twice(() => store.recordDelivery({ ...delivery, linkKey }));
  recorded.push(await store.recordDelivery({ ...delivery, linkKey, eventId: 'another' }));
  expectSame(recorded.map(({ outcome }) => outcome).sort(), ['duplicate', 'recorded', 'recorded']);

  yield ['claimEvents', 'replicas share the work'];
  const events = (await twice(() => store.claimEvents(claim))).flat();
  expectSame(new Set(events.map(({ eventKey }) => eventKey)).size, 2);

  yield ['settle', 'paid once'];
  const settled = await Promise.all(events.map(({ eventKey, attempt }) => store.settle({ ...job, eventKey, attempt })));
  expectSame(settled.map(({ outcome }) => outcome).sort(), ['already_applied', 'applied']);

  yield ['claimNotices', 'the shop hears it once'];
  expectSame((await twice(() => store.claimNotices({ ...claim, tried: false }))).flat().length, 1);

  yield ['readFeed', 'the feed has it'];
  await store.findFeedEnd();
  expectSame((await store.readFeed({ after: 0, limit: 10, bytesMax: 100_000 })).notices.length, 1);

  yield ['listOrders', 'found by words'];
  const { rows } = await store.listOrders({ limit: 10, search: readSearch('sao joao') });
  expectSame(
    rows.map(({ value }) => value.reference),
    [reference],
  );

  yield ['takeBudget', 'replicas share one budget'];
  const ask = { class: 'confirm', slots: 1, deadlineMs: 10_000, nowMs } as const;
  expectSame((await twice(() => store.takeBudget(ask))).map(({ outcome }) => outcome === 'taken').sort(), [
    false,
    true,
  ]);

  yield ['recordAction', 'the audit has no gap'];
  const change = { action: 'check_order', subject: reference } as const;
  await twice(() => store.recordAction({ by: author, change, atMs: nowMs }));
  const audit = await store.listAudit({ limit: 10, after: null, actor: null, subject: reference });
  expectSame(
    audit.map(({ number }) => number),
    [2, 1],
  );

  yield ['heartbeat', 'seen to be alive'];
  await store.heartbeat(nowMs);
  await Promise.all([store.stats(nowMs), store.storeState(nowMs)]);
  return undefined;
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

function twice<T>(call: () => Promise<T>): Promise<T[]> {
  return Promise.all([call(), call()]);
}

/** A database may accept a statement and not do what it says. */
function expectSame(found: unknown, wanted: unknown): void {
  const [is, should] = [found, wanted].map((value) => JSON.stringify(value)) as [string, string];
  if (is !== should) throw new Error(`the answer was ${is} and should be ${should}`);
}
