import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { expect } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { spawnSettled } from '../support/process.ts';
import { eventuallyAfter, times } from '../support/timing.ts';
import {
  exchange,
  OPERATOR_TOKEN,
  type Reserved,
  readReserved,
  type Serving,
  seededRandom,
  whenServing,
} from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

/** The first of the chances by which a run goes: with the same ones it is repeated. */
export const SEED = Number(process.env.KILL_SEED ?? Date.now() % 2_147_483_647);
const CONNECTIONS = 24;
/** A life under load ends after so many acknowledgements at most, however long they take on a busy machine. */
const ACKNOWLEDGEMENTS_MAX = times(40, 80);
/** If they do not come at all, the count at the end says so. */
const LIFE_MS_MAX = 20_000;
const JITTER_MS_MAX = 10;
const STALE_BY_MS = 3_600_000;

/** The store of the process that is killed, as it is seen from outside. */
export type KilledStore = {
  /** With which the process is started. */
  environment: Record<string, string>;
  /** For each of these events: what is stored of it. */
  bodies(events: readonly { token: string; eventId: string }[]): Promise<Buffer[][]>;
  events(): Promise<{ token: string; eventId: string; body: Buffer; status: string }[]>;
  /** The event ids of stale deliveries. */
  hints(): Promise<string[]>;
  orders(): Promise<OrderRow[]>;
  /** Lets the time pass that a dead process holds its work for. Called while none lives. */
  lapseLeases(): Promise<void>;
};

export type OrderRow = {
  reference: string;
  state: string;
  settlements: number;
  /** Kind, payment and minor units of each ledger entry. */
  entries: string | null;
  paidNotices: number;
};

/** Kills the process over and over under load, then expects what it acknowledged in its store, settled once. */
export async function killOverAndOver(store: KilledStore, cycles: number): Promise<void> {
  console.log(`kill -9: seed ${SEED} (KILL_SEED=${SEED} repeats it)`);
  const supervisor = new Supervisor(store, seededRandom(SEED));
  for (let cycle = 1; cycle <= cycles; cycle++) await supervisor.cycle();
  await supervisor.finish();

  const { acknowledged, interrupted } = supervisor;
  console.log(`kill -9: ${acknowledged} acknowledged, ${interrupted} exchanges interrupted`);
  // Otherwise the kills missed the load, and the rest says nothing.
  expect(interrupted).toBeGreaterThan(cycles * 4);
  expect(acknowledged).toBeGreaterThan(cycles * 10);
  expect(supervisor.links.size).toBeGreaterThan(cycles);
  expect(supervisor.surprises).toEqual([]);
  await checkStore(store, supervisor);
}

type Delivery = { link: Reserved; eventId: string; body: string; stale: boolean };

/**
 * Plays the service and the shop from outside the process that is killed, and keeps its own book of what was sent and
 * what was acknowledged. An unacknowledged delivery is sent again in a later cycle.
 */
class Supervisor {
  readonly askedReferences = new Set<string>();
  readonly links = new Map<string, Reserved>();
  /** By link and digest of the body: sent at least once with a fresh signature. */
  readonly sent = new Map<string, Delivery>();
  readonly stored = new Map<string, Delivery>();
  readonly hints = new Map<string, Delivery>();
  readonly surprises: string[] = [];
  acknowledged = 0;
  interrupted = 0;
  #waiting: Delivery[] = [];
  #lately: Delivery[] = [];
  #lastOrder = 0;
  readonly #store: KilledStore;
  readonly #random: () => number;

  constructor(store: KilledStore, random: () => number) {
    this.#store = store;
    this.#random = random;
  }

  async cycle(): Promise<void> {
    const process = spawnSettled(['serve'], this.#store.environment);
    if (this.#random() < 0.1) {
      await after(this.#random() * 500);
      process.child.kill('SIGKILL');
      await process.finished;
      return;
    }
    const serving = await whenServing(process);
    await this.#checkLately();
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const target = this.acknowledged + this.#random() * ACKNOWLEDGEMENTS_MAX;
    const enough = Promise.withResolvers<void>();
    let killed = false;
    const load = Array.from({ length: CONNECTIONS }, async () => {
      while (!killed) {
        await this.#step(serving, agent);
        if (this.acknowledged >= target) enough.resolve();
      }
    });
    await Promise.race([enough.promise, after(LIFE_MS_MAX)]);
    await after(this.#random() * JITTER_MS_MAX);
    process.child.kill('SIGKILL');
    killed = true;
    await Promise.all(load);
    await process.finished;
    agent.destroy();
  }

  /** One last life: everything that is owed is delivered and settled, then the process is stopped gently. */
  async finish(): Promise<void> {
    await this.#store.lapseLeases();
    const serving = await whenServing(spawnSettled(['serve'], this.#store.environment));
    await this.#checkLately();
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const load = Array.from({ length: CONNECTIONS }, async () => {
      for (let next = this.#waiting.pop(); next; next = this.#waiting.pop()) await this.#deliver(serving, agent, next);
    });
    await Promise.all(load);
    expect(this.#waiting).toEqual([]);
    await eventually(async () => {
      const { events } = (await serving.api('/v1/stats')).body.stats;
      expect(events).toMatchObject({ pending: 0, leased: 0 });
    });
    agent.destroy();
    serving.child.kill('SIGTERM');
    expect((await serving.finished).code).toBe(0);
  }

  async #step(serving: Serving, agent: Agent): Promise<void> {
    if (this.#waiting.length < CONNECTIONS) await this.#open(serving, agent);
    const index = Math.floor(this.#random() * this.#waiting.length);
    const [delivery] = this.#waiting.splice(index, 1);
    if (delivery !== undefined) await this.#deliver(serving, agent, delivery);
  }

  async #open(serving: Serving, agent: Agent): Promise<void> {
    const reference = `order-${++this.#lastOrder}`;
    this.askedReferences.add(reference);
    const answer = await exchange({
      agent,
      port: serving.operatorPort,
      path: '/v1/links',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reference, amount: '100.00' }),
    }).catch(() => null);
    if (answer === null) this.interrupted++;
    else if (answer.status !== 201) this.surprises.push(`registering answered ${answer.status}`);
    else {
      const link = readReserved(JSON.parse(answer.text));
      this.links.set(reference, link);
      this.#waiting.push(...this.#planned(link));
    }
  }

  /** A COMPLETED event, and some of what else the service may send: copies, a conflict, a stale one, a PENDING. */
  #planned(link: Reserved): Delivery[] {
    const { reference } = link;
    const make = (eventId: string, status: string, suffix = ''): Delivery => {
      const money = { linkId: `pl_${reference}`, amount: '100.00' };
      const body = paymentEvent({ id: eventId, status, paymentId: `pay_${reference}`, ...money }) + suffix;
      return { link, eventId, body, stale: false };
    };
    const completed = make(`evt_${reference}`, 'COMPLETED');
    const planned = [completed];
    if (this.#random() < 0.25) planned.push(completed, completed);
    if (this.#random() < 0.15) planned.push(make(`evt_${reference}`, 'COMPLETED', '\n'));
    if (this.#random() < 0.25) planned.push({ ...make(`evt_${reference}_s`, 'COMPLETED'), stale: true });
    if (this.#random() < 0.15) planned.push(make(`evt_${reference}_p`, 'PENDING'));
    return planned;
  }

  async #deliver(serving: Serving, agent: Agent, delivery: Delivery): Promise<void> {
    const { link, body, stale } = delivery;
    const timestamp = String(Date.now() - (stale ? STALE_BY_MS : 0));
    const key = keyOf(delivery);
    if (!stale) this.sent.set(key, delivery);
    const answer = await exchange({
      agent,
      port: serving.hooksPort,
      path: link.path,
      headers: signedHeaders(link.secret, body, timestamp),
      body,
    }).catch(() => null);
    if (answer === null || answer.status === 503) {
      if (answer === null) this.interrupted++;
      this.#waiting.push(delivery);
    } else if (answer.status === (stale ? 400 : 200)) {
      this.acknowledged++;
      (stale ? this.hints : this.stored).set(key, delivery);
      if (!stale) this.#lately.push(delivery);
    } else this.surprises.push(`a delivery was answered ${answer.status}: ${answer.text}`);
  }

  /** What was acknowledged since the last look is there, before anything more is sent. */
  async #checkLately(): Promise<void> {
    const lately = this.#lately.map(({ link, eventId, body }) => ({ token: tokenOf(link), eventId, body }));
    const bodies = await this.#store.bodies(lately);
    for (const [index, { eventId, body }] of lately.entries()) {
      if (!bodies[index]?.some((stored) => stored.equals(Buffer.from(body)))) {
        this.surprises.push(`acknowledged, then lost: ${eventId}`);
      }
    }
    this.#lately = [];
  }
}

function keyOf({ link, body }: Delivery): string {
  return `${tokenOf(link)} ${createHash('sha256').update(body).digest('hex')}`;
}

function tokenOf(link: Reserved): string {
  return link.path.slice('/hooks/'.length);
}

/** Holds what all those lives left against the supervisor's book. */
async function checkStore(store: KilledStore, supervisor: Supervisor): Promise<void> {
  const inbox = await store.events();
  const rows = new Map(inbox.map((row) => [`${row.token} ${digest(row.body)}`, row]));
  expect(rows.size, 'each event is stored once').toBe(inbox.length);
  const lost = [...supervisor.stored].filter(([key, sent]) => rows.get(key)?.eventId !== sent.eventId);
  expect(lost.map(([, { eventId }]) => eventId)).toEqual([]);
  const unsent = [...rows].filter(([key]) => !supervisor.sent.has(key));
  expect(unsent.map(([, { eventId }]) => eventId)).toEqual([]);
  expect(inbox.filter(({ status }) => status !== 'done').map(({ eventId }) => eventId)).toEqual([]);

  const hints = new Set(await store.hints());
  const kept = [...supervisor.hints.values()].map(({ eventId }) => eventId);
  expect(kept.filter((eventId) => !hints.has(eventId))).toEqual([]);

  checkOrders(await store.orders(), supervisor);
}

function checkOrders(orders: readonly OrderRow[], { askedReferences, links }: Supervisor): void {
  expect(orders.filter(({ reference }) => !askedReferences.has(reference))).toEqual([]);
  const found = new Map(orders.map((order) => [order.reference, order]));
  const paidOnce = [...links.keys()].map((reference) => ({
    reference,
    state: 'paid',
    settlements: 1,
    entries: `captured pay_${reference} 10000`,
    paidNotices: 1,
  }));
  expect(paidOnce.map(({ reference }) => found.get(reference))).toEqual(paidOnce);
  const unanswered = orders.filter(({ reference }) => !links.has(reference));
  expect(unanswered.filter(({ state }) => state !== 'awaiting_payment')).toEqual([]);
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
