import { createHash, randomBytes } from 'node:crypto';
import type { RequestClass } from '../../../src/domain/budget.ts';
import type { ClaimedCheck } from '../../../src/domain/check_queue.ts';
import type { FactKind, SaidFact } from '../../../src/domain/fact.ts';
import type { AttentionKind } from '../../../src/domain/matter.ts';
import type { OrderState, ServiceLink } from '../../../src/domain/order.ts';
import { explainAttention } from '../../../src/explain/attention_sentences.ts';
import type { Store } from '../../../src/store/contract.ts';
import type { ClaimedEvent, SettleJob } from '../../../src/store/verbs/inbox.ts';
import type { Delivery, Hint, Recorded } from '../../../src/store/verbs/intake.ts';
import type { ClaimedOpening, Intent } from '../../../src/store/verbs/intents.ts';
import type { Registered, Registration } from '../../../src/store/verbs/links.ts';
import type { EventDetail } from '../../../src/store/verbs/lists.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import type { Reading } from '../../../src/store/verbs/readings.ts';
import type { SealedSecret } from '../../../src/store/verbs/secrets.ts';
import type { SettleResult } from '../../../src/store/verbs/settle.ts';
import { aFact } from '../../support/orders.ts';
import { openAttention } from '../../support/rows.ts';

/** A store as an engine opens it for the contract. */
export type ContractStore = {
  store: Store;
  /** Closes the store and opens the same data again, at this time. */
  reopen(nowMs: number): Promise<Store>;
  /** Set where other replicas may hold leases: opening the data again ends none of them. */
  leasesLapse?: true;
  /** Empties the queue of checks and the schedule, as if every link had been asked about for the last time. */
  forgetChecks(): Promise<void>;
  /** Carries out one statement behind the store's back, as another program would; returns its rows. */
  run(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Closes the store and removes its data, or keeps it and returns where. */
  dispose(outcome: 'passed' | 'failed'): Promise<string | null>;
};

/** The store that most tests share, and stores of one's own. */
export type Worlds = { shared: () => World; fresh: () => Promise<World> };

type AnswerOptions = { made?: Partial<ServiceLink>; reading?: Partial<Reading>; job?: Partial<SettleJob> };

export type Link = { reference: string; token: string; linkKey: number };

export const LEASE_MS = 30_000;
export const FAULT = { code: 'bug', message: 'it went wrong' };

/** One store with the little that tests of it repeat: names that are never used twice, a clock, one line per deed. */
export class World {
  store: Store;
  nowMs = 1_700_000_000_000;
  readonly #opened: ContractStore;
  #names = 0;

  constructor(opened: ContractStore) {
    this.#opened = opened;
    this.store = opened.store;
  }

  /** A delivery for the link was refused as not authentic. */
  reject({ linkKey }: Link): Promise<void> {
    return this.store.recordRejection({ linkKey, reason: 'signature_wrong', count: 1, lastAtMs: this.nowMs });
  }

  name(kind: string): string {
    return `${kind}-${++this.#names}`;
  }

  /** Later by so much; returns the new time. */
  tick(ms = 1000): number {
    this.nowMs += ms;
    return this.nowMs;
  }

  async reopen(): Promise<void> {
    this.store = await this.#opened.reopen(this.nowMs);
  }

  /** Closes the store and opens it again when the leases that it held are over. */
  async restart(): Promise<void> {
    await this.reopen();
    if (this.#opened.leasesLapse) this.tick(LEASE_MS);
  }

  forgetChecks(): Promise<void> {
    return this.#opened.forgetChecks();
  }

  run(sql: string): ReturnType<ContractStore['run']> {
    return this.#opened.run(sql);
  }

  registration(over: Partial<Registration> = {}): Registration {
    return {
      by: null,
      reference: this.name('order'),
      amount: { amountMinor: 10_000, currency: 'BRL' },
      linkId: null,
      token: randomBytes(24).toString('base64url'),
      secret: null,
      freshSecret: sealedSecret(this.name('secret')),
      mayCorrect: true,
      atMs: this.nowMs,
      ...over,
    };
  }

  register(over: Partial<Registration> = {}): Promise<Registered> {
    return this.store.registerLink(this.registration(over));
  }

  /** An order of 100.00 BRL with its link. */
  async newLink(over: Partial<Registration> = {}): Promise<Link> {
    const registration = this.registration(over);
    await this.store.registerLink(registration);
    const { reference, token } = registration;
    const found = await this.store.findCredentials({ token });
    if (found === null) throw new Error(`no link was made for ${reference}`);
    return { reference, token, linkKey: found.linkKey };
  }

  delivery({ linkKey }: Link, over: Partial<Delivery> = {}): Delivery {
    const body = over.body ?? Buffer.from(`{"id":"${this.name('event')}"}`);
    return {
      linkKey,
      eventId: this.name('event'),
      bodySha256: sha256(body),
      body,
      timestamp: String(this.nowMs),
      mac: sha256(Buffer.from('mac')),
      type: 'payment_link.payment_status_changed',
      readable: true,
      isPaymentId: false,
      receivedAtMs: this.nowMs,
      ...over,
    };
  }

  deliver(link: Link, over: Partial<Delivery> = {}): Promise<Recorded> {
    return this.store.recordDelivery(this.delivery(link, over));
  }

  hint({ linkKey }: Link, body: Buffer = Buffer.from(this.name('stale'))): Hint {
    const receivedAtMs = this.tick();
    const timestamp = String(receivedAtMs - 3_600_000);
    return { linkKey, eventId: 'evt_stale', bodySha256: sha256(body), body, timestamp, receivedAtMs };
  }

  claim(limit = 1000): Promise<ClaimedEvent[]> {
    return this.store.claimEvents({ limit, nowMs: this.nowMs, leaseMs: LEASE_MS });
  }

  /** Claims what is due and returns one of it. */
  async claimOne(eventKey: number): Promise<ClaimedEvent> {
    const claimed = await this.claim();
    const found = claimed.find((event) => event.eventKey === eventKey);
    if (found === undefined) throw new Error(`event ${eventKey} is not due`);
    return found;
  }

  /** Records a new event and claims it. */
  async claimNew(link: Link): Promise<ClaimedEvent> {
    return this.claimOne((await this.deliver(link)).eventKey);
  }

  job({ eventKey, attempt }: { eventKey: number; attempt: number }, over: Partial<SettleJob> = {}): SettleJob {
    const policy = { asks: 'never' } as const;
    return {
      eventKey,
      attempt,
      linkIds: [],
      facts: [],
      linkChanged: false,
      linkStatus: null,
      notUnderstood: null,
      details: [],
      expiresAtMs: null,
      link: null,
      policy,
      nowMs: this.nowMs,
      ...over,
    };
  }

  /** A new event with these facts, recorded, claimed and settled. */
  async settle(link: Link, facts: SaidFact[], over: Partial<SettleJob> = {}): Promise<SettleResult> {
    this.tick();
    return this.store.settle(this.job(await this.claimNew(link), { facts, ...over }));
  }

  intent(over: Partial<Intent> = {}): Intent {
    const reference = over.reference ?? this.name('order');
    return {
      by: null,
      reference,
      amount: { amountMinor: 10_000, currency: 'BRL' },
      request: JSON.stringify({ reference, amount: '100.00' }),
      token: randomBytes(24).toString('base64url'),
      secret: sealedSecret(this.name('secret')),
      callbackUrl: null,
      returnToken: null,
      expiresAtMs: this.nowMs + 3 * 86_400_000,
      atMs: this.nowMs,
      ...over,
    };
  }

  /** An order of 100.00 BRL whose link settled is to open. */
  async intend(over: Partial<Intent> = {}): Promise<Link> {
    const intent = this.intent(over);
    const intended = await this.store.openIntent(intent);
    if (intended.outcome === 'conflict') throw new Error(`${intent.reference} is in use`);
    return { reference: intent.reference, token: intent.token, linkKey: intended.linkKey };
  }

  /** Claims the openings that are due and returns a link's. */
  async claimOpening({ linkKey }: Link): Promise<ClaimedOpening> {
    const claim = { limit: 1000, nowMs: this.nowMs, leaseMs: LEASE_MS };
    const found = (await this.store.claimOpenings(claim)).find((opening) => opening.linkKey === linkKey);
    if (found === undefined) throw new Error(`the opening of link ${linkKey} is not due`);
    return found;
  }

  /** An order of 100.00 BRL with a link that settled opened. */
  async openNew(over: Partial<Intent> = {}): Promise<Link & { linkId: string }> {
    const link = await this.intend(over);
    const made = this.made();
    if ((await this.finishOpening(link, made)) !== 'bound') throw new Error('the link was not bound');
    return { ...link, linkId: made.id };
  }

  /** Claims an opening and gives it back. */
  async retryOpening(link: Link, over: Partial<Parameters<Store['retryOpening']>[0]> = {}): Promise<ClaimedOpening> {
    const claimed = await this.claimOpening(link);
    const { linkKey, attempt } = claimed;
    const given = { fault: FAULT, mayExist: false, waits: false, dueAtMs: this.nowMs, ...over };
    await this.store.retryOpening({ linkKey, attempt, nowMs: this.nowMs, ...given });
    return claimed;
  }

  /** Claims an opening and hands in what the service made. */
  async finishOpening(link: Link, made: ServiceLink = this.made(), withheld: string | null = null) {
    const { linkKey, attempt } = await this.claimOpening(link);
    return this.store.finishOpening({ linkKey, attempt, link: made, withheld, nowMs: this.nowMs });
  }

  /** Claims an opening and parks it for a person. */
  async parkOpening(link: Link, foreignId: string | null = null): Promise<void> {
    const { linkKey, attempt } = await this.claimOpening(link);
    await this.store.parkOpening({ linkKey, attempt, fault: FAULT, foreignId, nowMs: this.nowMs });
  }

  /** A link as the service shows it. */
  made(over: Partial<ServiceLink> = {}): ServiceLink {
    const id = over.id ?? this.name('plink');
    const url = `https://pay.example.com/${id}`;
    return { id, url, shortUrl: null, status: 'ACTIVE', expiresAtMs: null, ...over };
  }

  /** The number of a slot. The budget is never spent here: as many slots as there are. */
  async slot(as: RequestClass = 'confirm'): Promise<number> {
    const ask = { class: as, slots: 1_000_000, deadlineMs: 10_000, nowMs: this.nowMs };
    const taken = await this.store.takeBudget(ask);
    if (taken.outcome !== 'taken') throw new Error('no slot is left');
    return taken.number;
  }

  /** Records what the service answers about a link, asked now, and claims it. */
  async read(link: Link & { linkId: string }, over: Partial<Reading> = {}): Promise<ClaimedEvent> {
    const { linkKey, linkId } = link;
    const body = Buffer.from(this.name('answer'));
    const number = over.number ?? (await this.slot());
    const asked = { linkKey, linkId, reason: 'scheduled', body, nowMs: this.nowMs, leaseMs: LEASE_MS } as const;
    const claimed = await this.store.recordReading({ ...asked, ...over, number });
    if (claimed === null) throw new Error(`link ${linkId} is another order's`);
    return claimed;
  }

  /** A new reading with these facts, recorded and settled. */
  async answer(
    link: Link & { linkId: string },
    facts: SaidFact[],
    { made = {}, reading = {}, job = {} }: AnswerOptions = {},
  ): Promise<SettleResult> {
    const claimed = await this.read(link, reading);
    const shown = this.made({ id: link.linkId, ...made });
    const said = { facts, linkIds: [shown.id], link: shown };
    return this.store.settle(this.job(claimed, { ...said, policy: { asks: 'in-doubt' }, ...job }));
  }

  /** Claims the checks that are due, as many as there are. */
  claimChecks(over: { limit?: number; slots?: number } = {}): Promise<ClaimedCheck[]> {
    return this.store.claimChecks({ limit: 1000, slots: 50, nowMs: this.nowMs, leaseMs: LEASE_MS, ...over });
  }

  async event(eventKey: number): Promise<EventDetail> {
    const found = await this.store.findEvent(eventKey);
    if (found === null) throw new Error(`there is no event ${eventKey}`);
    return found;
  }

  /** `detail` of attention is what a person reads. */
  async timeline({ reference }: { reference: string }) {
    const found = await this.store.timeline(reference);
    if (found === null) throw new Error(`there is no order ${reference}`);
    const attention = found.attention.map((matter) => {
      return { ...matter, detail: explainAttention(matter, { key: matter.key, canAsk: true }) };
    });
    return { ...found, attention };
  }

  async state(of: { reference: string }): Promise<OrderState> {
    return (await this.timeline(of)).order.state;
  }

  /** The kinds of an order's open matters. */
  async kinds(of: { reference: string }): Promise<string[]> {
    return (await this.timeline(of)).attention.map(({ kind }) => kind);
  }

  /** The open matters of a kind, newest first. */
  async matters(wanted: AttentionKind): ReturnType<typeof openAttention> {
    return (await openAttention(this.store)).filter(({ kind }) => kind === wanted);
  }

  /** A person ends a matter. */
  end(key: number | undefined, reason = 'seen'): ReturnType<Store['endAttention']> {
    return this.store.endAttention({ by: null, key: key ?? 0, reason, atMs: this.nowMs });
  }

  /** A person decides about a held order, a little later. */
  resolve({ reference }: { reference: string }, decision: 'accept' | 'reject', reason = 'seen') {
    return this.store.resolveOrder({ by: null, reference, decision, reason, atMs: this.tick() });
  }

  /** A person cancels an order. */
  cancel({ reference }: { reference: string }): ReturnType<Store['cancelOrder']> {
    return this.store.cancelOrder({ by: null, reference, atMs: this.nowMs });
  }

  /** A person has an event settled again, a little later. */
  requeue(eventKey: number): ReturnType<Store['requeueEvent']> {
    return this.store.requeueEvent({ by: null, eventKey, nowMs: this.tick() });
  }

  /** Makes a claimed event a dead letter. */
  bury({ eventKey, attempt }: { eventKey: number; attempt: number }, fault = FAULT): ReturnType<Store['buryEvent']> {
    return this.store.buryEvent({ eventKey, attempt, nowMs: this.nowMs, fault });
  }

  /** The key of a new event of the link that is a dead letter. */
  async deadEvent(link: Link): Promise<number> {
    const claimed = await this.claimNew(link);
    await this.bury(claimed);
    return claimed.eventKey;
  }

  /** Claims notices that are due: those never tried, or the others. */
  claimNotices(tried = false, limit = 1000): Promise<ClaimedNotice[]> {
    return this.store.claimNotices({ tried, limit, nowMs: this.nowMs, leaseMs: LEASE_MS });
  }

  /** The reason of the check that waits for a link; null where none does. */
  async check(link: Link): Promise<string | null> {
    return (await this.timeline(link)).check?.reason ?? null;
  }
}

/** What tests of a store that is open say in one line each. It is not opened again. */
export function worldOf(store: Store): World {
  const unused = () => Promise.reject(new Error('not used here'));
  return new World({ store, reopen: unused, forgetChecks: unused, run: unused, dispose: unused });
}

/** What the service says of `pay_1`, of 100.00 BRL and without a reference, unless told otherwise. */
export function said(kind: FactKind, over: Partial<SaidFact> = {}): SaidFact {
  return aFact(kind, { reference: null, ...over });
}

export function sealedSecret(secret: string): SealedSecret {
  const sealed = Buffer.concat([randomBytes(12), Buffer.from(secret)]);
  return { sealed, keyId: 'key-1', fingerprint: sha256(Buffer.from(secret)) };
}

export function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Bytes as they are compared: an engine may return any kind of byte array. */
export function hex(bytes: Uint8Array | null): string {
  return bytes === null ? 'dropped' : Buffer.from(bytes).toString('hex');
}
