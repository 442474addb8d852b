import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Chance, chanceOf } from '../../prove/harness/chance.ts';
import { ORDERS, type OrderRow, paidOnce } from '../../prove/harness/orders.ts';
import { AMOUNT, AMOUNT_MINOR, eventOf, outcomeOf, type Reserved, readReserved } from '../../prove/harness/send.ts';
import { type Serving, whenServing } from '../../prove/harness/settled.ts';
import { spawnSettled } from '../support/process.ts';
import { eventuallyAfter, times } from '../support/timing.ts';

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
  /** The rows of a statement that both engines understand. */
  query(sql: string): Promise<unknown[]>;
  /** Lets the time pass that a dead process holds its work for. Called while none lives. */
  lapseLeases(): Promise<void>;
};

type EventRow = { token: string; eventId: string; body: Buffer; status: string };

const EVENTS = `SELECT l.token, i.event_id AS "eventId", b.body, i.status FROM inbox i
  JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key`;

/** Kills the process over and over under load, then expects what it acknowledged in its store, settled once. */
export async function killOverAndOver(store: KilledStore, cycles: number): Promise<void> {
  console.log(`kill -9: seed ${SEED} (KILL_SEED=${SEED} repeats it)`);
  const supervisor = new Supervisor(store, chanceOf(SEED));
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
  readonly #chance: Chance;

  constructor(store: KilledStore, chance: Chance) {
    this.#store = store;
    this.#chance = chance;
  }

  async cycle(): Promise<void> {
    const process = spawnSettled(['serve'], this.#store.environment);
    // Not the first life: the end counts what kills under load interrupted.
    if (this.acknowledged > 0 && this.#chance.oneIn(10)) {
      await after(this.#chance.below(500));
      await process.end('SIGKILL');
      return;
    }
    const serving = await whenServing(process);
    await this.#checkLately();
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const target = this.acknowledged + this.#chance.between(1, ACKNOWLEDGEMENTS_MAX);
    const enough = Promise.withResolvers<void>();
    let killed = false;
    const load = Array.from({ length: CONNECTIONS }, async () => {
      while (!killed) {
        await this.#step(serving, agent);
        if (this.acknowledged >= target) enough.resolve();
      }
    });
    await Promise.race([enough.promise, after(LIFE_MS_MAX)]);
    await after(this.#chance.below(JITTER_MS_MAX));
    const end = process.end('SIGKILL');
    killed = true;
    await Promise.all(load);
    await end;
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
    expect((await serving.end('SIGTERM')).code).toBe(0);
  }

  async #step(serving: Serving, agent: Agent): Promise<void> {
    if (this.#waiting.length < CONNECTIONS) await this.#open(serving);
    const [delivery] = this.#waiting.splice(this.#chance.below(this.#waiting.length), 1);
    if (delivery !== undefined) await this.#deliver(serving, agent, delivery);
  }

  async #open(serving: Serving): Promise<void> {
    const reference = `order-${++this.#lastOrder}`;
    this.askedReferences.add(reference);
    const answer = await serving.ask('/v1/links', { reference, amount: AMOUNT });
    if (answer === null) this.interrupted++;
    else if (answer.status !== 201) this.surprises.push(`registering answered ${answer.status}`);
    else {
      const link = readReserved(answer.body);
      this.links.set(reference, link);
      this.#waiting.push(...this.#planned(link));
    }
  }

  /** A COMPLETED event, and some of what else the service may send: copies, a conflict, a stale one, a PENDING. */
  #planned(link: Reserved): Delivery[] {
    const { reference } = link;
    const make = (eventId: string, status: string, suffix = ''): Delivery => {
      return { link, eventId, body: eventOf(link, eventId, status) + suffix, stale: false };
    };
    const completed = make(`evt_${reference}`, 'COMPLETED');
    const planned = [completed];
    if (this.#chance.oneIn(4)) planned.push(completed, completed);
    if (this.#chance.oneIn(7)) planned.push(make(`evt_${reference}`, 'COMPLETED', '\n'));
    if (this.#chance.oneIn(4)) planned.push({ ...make(`evt_${reference}_s`, 'COMPLETED'), stale: true });
    if (this.#chance.oneIn(7)) planned.push(make(`evt_${reference}_p`, 'PENDING'));
    return planned;
  }

  async #deliver(serving: Serving, agent: Agent, delivery: Delivery): Promise<void> {
    const { link, body, stale } = delivery;
    const key = keyOf({ token: tokenOf(link), body });
    if (!stale) this.sent.set(key, delivery);
    const outcome = await outcomeOf(serving.hooksPort, link, body, { agent, ageMs: stale ? STALE_BY_MS : 0 });
    if (['503', 'refused', 'broken'].includes(outcome)) {
      if (outcome !== '503') this.interrupted++;
      this.#waiting.push(delivery);
    } else if (outcome === (stale ? '400' : '200')) {
      this.acknowledged++;
      (stale ? this.hints : this.stored).set(key, delivery);
      if (!stale) this.#lately.push(delivery);
    } else this.surprises.push(`a delivery was answered ${outcome}`);
  }

  /** What was acknowledged since the last look is there, before anything more is sent. */
  async #checkLately(): Promise<void> {
    const rows = (await this.#store.query(EVENTS)) as EventRow[];
    const stored = new Set(rows.map(({ eventId, ...row }) => `${eventId} ${keyOf(row)}`));
    for (const { eventId, link, body } of this.#lately) {
      const isStored = stored.has(`${eventId} ${keyOf({ token: tokenOf(link), body })}`);
      if (!isStored) this.surprises.push(`acknowledged, then lost: ${eventId}`);
    }
    this.#lately = [];
  }
}

function keyOf({ token, body }: { token: string; body: string | Buffer }): string {
  return `${token} ${createHash('sha256').update(body).digest('hex')}`;
}

function tokenOf(link: Reserved): string {
  return link.path.slice('/hooks/'.length);
}

/** Holds what all those lives left against the supervisor's book. */
async function checkStore(store: KilledStore, supervisor: Supervisor): Promise<void> {
  const inbox = (await store.query(EVENTS)) as EventRow[];
  const rows = new Map(inbox.map((row) => [keyOf(row), row]));
  expect(rows.size, 'each event is stored once').toBe(inbox.length);
  const lost = [...supervisor.stored].filter(([key, sent]) => rows.get(key)?.eventId !== sent.eventId);
  expect(lost.map(([, { eventId }]) => eventId)).toEqual([]);
  const unsent = [...rows].filter(([key]) => !supervisor.sent.has(key));
  expect(unsent.map(([, { eventId }]) => eventId)).toEqual([]);
  expect(inbox.filter(({ status }) => status !== 'done').map(({ eventId }) => eventId)).toEqual([]);

  const hints = new Set(
    ((await store.query('SELECT event_id AS id FROM hint')) as { id: string }[]).map(({ id }) => id),
  );
  const kept = [...supervisor.hints.values()].map(({ eventId }) => eventId);
  expect(kept.filter((eventId) => !hints.has(eventId))).toEqual([]);

  checkOrders((await store.query(ORDERS)) as OrderRow[], supervisor);
}

function checkOrders(orders: readonly OrderRow[], { askedReferences, links }: Supervisor): void {
  expect(orders.filter(({ reference }) => !askedReferences.has(reference))).toEqual([]);
  const found = new Map(orders.map((order) => [order.reference, order]));
  const expected = [...links.keys()].map((reference) => paidOnce(reference, AMOUNT_MINOR));
  expect(expected.map(({ reference }) => found.get(reference))).toEqual(expected);
  const unanswered = orders.filter(({ reference }) => !links.has(reference));
  expect(unanswered.filter(({ state }) => state !== 'awaiting_payment')).toEqual([]);
}
