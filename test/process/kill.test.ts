import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { spawnSettled } from '../support/process.ts';
import {
  exchange,
  OPERATOR_TOKEN,
  type Reserved,
  readReserved,
  type Serving,
  seededRandom,
  serveEnvironment,
  startServing,
  whenServing,
} from './serving.ts';

const CYCLES = Number(process.env.KILL_CYCLES ?? 50);
const SEED = Number(process.env.KILL_SEED ?? Date.now() % 2_147_483_647);
const CONNECTIONS = 24;
/** A life under load ends after so many acknowledgements, or so many milliseconds, at most. */
const ACKNOWLEDGEMENTS_MAX = 80;
const LIFE_MS_MAX = 600;
const JITTER_MS_MAX = 10;
const STALE_BY_MS = 3_600_000;

describe('a killed process', () => {
  it(`has stored and settled once whatever it acknowledged, over ${CYCLES} kills on one store`, async () => {
    console.log(`kill -9: seed ${SEED} (KILL_SEED=${SEED} repeats it)`);
    const storePath = join(testFolder(), 'settled.db');
    const supervisor = new Supervisor(storePath, seededRandom(SEED));
    for (let cycle = 1; cycle <= CYCLES; cycle++) await supervisor.cycle();
    await supervisor.finish();

    const { acknowledged, interrupted } = supervisor;
    console.log(`kill -9: ${acknowledged} acknowledged, ${interrupted} exchanges interrupted`);
    // Otherwise the kills missed the load, and the rest says nothing.
    expect(interrupted).toBeGreaterThan(CYCLES * 4);
    expect(acknowledged).toBeGreaterThan(CYCLES * 20);
    expect(supervisor.surprises).toEqual([]);
    checkStore(storePath, supervisor);
  }, 180_000);

  it('can be started again after a kill at any moment of its very first start', async () => {
    const random = seededRandom(SEED);
    for (let round = 0; round < 5; round++) {
      const environment = firstStart(join(testFolder(), 'settled.db'));
      const killed = spawnSettled(['serve'], environment);
      await after(random() * 500);
      killed.child.kill('SIGKILL');
      await killed.finished;
      const again = spawnSettled(['serve'], environment);
      await again.line(/"settled is serving"/);
      again.child.kill('SIGKILL');
      await again.finished;
    }
  }, 60_000);
});

/** With the operator's token and the secrets key still to be made. */
function firstStart(storePath: string): Record<string, string> {
  const { SETTLED_OPERATOR_TOKEN: _, ...environment } = serveEnvironment(storePath);
  return environment;
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
  readonly #storePath: string;
  readonly #random: () => number;

  constructor(storePath: string, random: () => number) {
    this.#storePath = storePath;
    this.#random = random;
  }

  async cycle(): Promise<void> {
    const process = spawnSettled(['serve'], serveEnvironment(this.#storePath));
    if (this.#random() < 0.1) {
      await after(this.#random() * 500);
      process.child.kill('SIGKILL');
      await process.finished;
      return;
    }
    const serving = await whenServing(process);
    this.#checkLately();
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
    const serving = await startServing(this.#storePath);
    this.#checkLately();
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const load = Array.from({ length: CONNECTIONS }, async () => {
      for (let next = this.#waiting.pop(); next; next = this.#waiting.pop())
        await this.#deliver(serving, agent, next);
    });
    await Promise.all(load);
    expect(this.#waiting).toEqual([]);
    await vi.waitFor(
      async () => {
        const { events } = (await serving.api('/v1/stats')).body.stats;
        expect(events).toMatchObject({ pending: 0, leased: 0 });
      },
      { timeout: 20_000 },
    );
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
  #checkLately(): void {
    const db = new Database(this.#storePath, { readonly: true });
    const find = db
      .prepare(
        `SELECT b.body FROM inbox i JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key
         WHERE l.token = ? AND i.event_id = ?`,
      )
      .pluck();
    for (const { link, eventId, body } of this.#lately) {
      const bodies = find.all(tokenOf(link), eventId) as Buffer[];
      if (!bodies.some((stored) => stored.equals(Buffer.from(body)))) {
        this.surprises.push(`acknowledged, then lost: ${eventId}`);
      }
    }
    db.close();
    this.#lately = [];
  }
}

function keyOf({ link, body }: Delivery): string {
  return `${tokenOf(link)} ${createHash('sha256').update(body).digest('hex')}`;
}

function tokenOf(link: Reserved): string {
  return link.path.slice('/hooks/'.length);
}

/** Reads the file that all those lives left, and holds it against the supervisor's book. */
function checkStore(storePath: string, supervisor: Supervisor): void {
  const db = new Database(storePath, { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(db.pragma('foreign_key_check')).toEqual([]);

  const inbox = db
    .prepare(
      `SELECT l.token, i.event_id, b.body, i.status FROM inbox i JOIN link l ON l.key = i.link_key
       JOIN inbox_body b ON b.inbox_key = i.key`,
    )
    .all() as { token: string; event_id: string; body: Buffer; status: string }[];
  const rows = new Map(inbox.map((row) => [`${row.token} ${digest(row.body)}`, row]));
  expect(rows.size, 'each event is stored once').toBe(inbox.length);
  const lost = [...supervisor.stored].filter(([key, sent]) => rows.get(key)?.event_id !== sent.eventId);
  expect(lost.map(([, { eventId }]) => eventId)).toEqual([]);
  const unsent = [...rows].filter(([key]) => !supervisor.sent.has(key));
  expect(unsent.map(([, { event_id }]) => event_id)).toEqual([]);
  expect(inbox.filter(({ status }) => status !== 'done').map(({ event_id }) => event_id)).toEqual([]);

  const hints = db.prepare('SELECT h.event_id FROM hint h').pluck().all();
  const kept = [...supervisor.hints.values()].map(({ eventId }) => eventId);
  expect(kept.filter((eventId) => !hints.includes(eventId))).toEqual([]);

  checkOrders(db, supervisor);
  db.close();
}

type OrderRow = {
  reference: string;
  state: string;
  settlements: number;
  entries: string | null;
  paidNotices: number;
};

function checkOrders(db: Database.Database, { askedReferences, links }: Supervisor): void {
  const orders = db
    .prepare(
      `SELECT o.reference, o.state,
         (SELECT count(*) FROM settlement s WHERE s.order_key = o.key) AS settlements,
         (SELECT group_concat(kind || ' ' || payment_key || ' ' || amount_minor) FROM ledger e
           WHERE e.order_key = o.key) AS entries,
         (SELECT count(*) FROM outbox n WHERE n.order_key = o.key AND n.type = 'order.paid') AS paidNotices
       FROM orders o`,
    )
    .all() as OrderRow[];
  expect(orders.filter(({ reference }) => !askedReferences.has(reference))).toEqual([]);
  const found = new Map(orders.map((order) => [order.reference, order]));
  const paidOnce = [...links.keys()].map((reference) => ({
    reference,
    state: 'paid',
    settlements: 1,
    entries: `captured pay_${reference} 10000`,
    paidNotices: 1,
  }));
  expect(paidOnce.length).toBeGreaterThan(CYCLES);
  expect(paidOnce.map(({ reference }) => found.get(reference))).toEqual(paidOnce);
  const unanswered = orders.filter(({ reference }) => !links.has(reference));
  expect(unanswered.filter(({ state }) => state !== 'awaiting_payment')).toEqual([]);
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
