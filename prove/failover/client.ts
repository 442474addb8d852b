import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { paymentEvent, signedHeaders } from '../../test/support/deliveries.ts';
import type { Chance } from '../chance.ts';
import type { Fleet } from '../replicas/fleet.ts';
import type { SeenNotice, SentEvent } from './history.ts';

/** The shop that registers links and the service that delivers their events, at random replicas, until each is acknowledged. */

const AMOUNT = '100.00';
const WORKERS = 16;
/** One order in so many is refunded as well. */
const REFUND_EVERY = 4;
const AGAIN_MS = { min: 5, max: 50 } as const;
const ANSWER_MS = 20_000;

export type Client = {
  events: readonly SentEvent[];
  /** How many deliveries had each answer. */
  statuses: ReadonlyMap<string, number>;
  acknowledged(): number;
  /** Resolves when the next delivery that begins now is acknowledged. */
  nextAcknowledgement(): Promise<void>;
  /** Orders whose link was acknowledged and is not known any more. */
  lostLinks: ReadonlySet<string>;
  /** How long deliveries were answered 401 that were acknowledged in the end. */
  unknownMs: readonly number[];
  /** Begins no more orders, and resolves when each event that was begun is acknowledged or its link is lost. */
  end(): Promise<void>;
};

/** @param patienceMs how long a delivery that is answered 401 is tried again, before its link counts as lost */
export function startClient(fleet: Fleet, chance: Chance, patienceMs: number): Client {
  const events: SentEvent[] = [];
  const statuses = new Map<string, number>();
  const lostLinks = new Set<string>();
  const unknownMs: number[] = [];
  let waiting: { sinceMs: number; resolve: () => void }[] = [];
  let acknowledged = 0;
  let orders = 0;
  let isOver = false;

  async function work(): Promise<void> {
    while (!isOver) {
      const reference = `order-${++orders}`;
      const link = await register(reference);
      await deliver(reference, link, 'order.paid', 'COMPLETED');
      if (chance.oneIn(REFUND_EVERY)) await deliver(reference, link, 'order.refunded', 'REFUNDED');
    }
  }

  async function register(reference: string): Promise<Link> {
    const secret = `secret-of-the-link-of-${reference}`;
    const given = { reference, amount: AMOUNT, id: `pl_${reference}`, webhookSecret: secret };
    for (;;) {
      fleet.expectAlive();
      const answer = await fleet.any(chance)?.api('/v1/links', given);
      if (answer?.status === 200 || answer?.status === 201) {
        return { path: new URL(answer.body.link.webhookUrl).pathname, secret };
      }
      await pause();
    }
  }

  async function deliver(reference: string, link: Link, type: SentEvent['type'], status: string): Promise<void> {
    const event: SentEvent = { id: `evt_${reference}_${status}`, reference, type, isAcknowledged: false };
    events.push(event);
    const paid = { linkId: `pl_${reference}`, paymentId: `pay_${reference}`, amount: AMOUNT };
    const body = paymentEvent({ id: event.id, status, ...paid });
    let unknownSinceMs: number | null = null;
    for (;;) {
      fleet.expectAlive();
      const sinceMs = performance.now();
      const outcome = await send(fleet.any(chance)?.hooksPort, link, body);
      statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
      if (outcome === '200') {
        if (unknownSinceMs !== null) unknownMs.push(performance.now() - unknownSinceMs);
        event.isAcknowledged = true;
        acknowledged++;
        for (const one of waiting) if (sinceMs >= one.sinceMs) one.resolve();
        waiting = waiting.filter((one) => sinceMs < one.sinceMs);
        return;
      }
      if (outcome === '401') {
        unknownSinceMs ??= sinceMs;
        if (performance.now() - unknownSinceMs >= patienceMs) {
          lostLinks.add(reference);
          return;
        }
      }
      await pause();
    }
  }

  const pause = () => after(chance.between(AGAIN_MS.min, AGAIN_MS.max));
  const working = Array.from({ length: WORKERS }, work);
  // It is awaited at the end.
  for (const one of working) one.catch(() => {});
  return {
    events,
    statuses,
    lostLinks,
    unknownMs,
    acknowledged: () => acknowledged,
    nextAcknowledgement: () => {
      const next = new Promise<void>((resolve) => waiting.push({ sinceMs: performance.now(), resolve }));
      // A worker that fails fails the proof.
      return Promise.race([next, Promise.all(working).then(() => next)]);
    },
    end: async () => {
      isOver = true;
      await Promise.all(working);
    },
  };
}

type Link = { path: string; secret: string };

/** The status of the answer, or `none`. */
async function send(port: number | undefined, { path, secret }: Link, body: string): Promise<string> {
  if (port === undefined) return 'none';
  const headers = signedHeaders(secret, body);
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body, signal });
    await answer.arrayBuffer();
    return String(answer.status);
  } catch {
    return 'none';
  }
}

export type Shop = { environment: Record<string, string>; told: SeenNotice[]; close(): void };

/** The shop's callback: it takes every notice and notes it. */
export async function startShop(): Promise<Shop> {
  const told: SeenNotice[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    told.push(seen(String(request.headers['webhook-id']), JSON.parse(body)));
    response.writeHead(204).end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    environment: {
      SETTLED_SHOP_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/settled`,
      SETTLED_SHOP_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      SETTLED_SHOP_ALLOW_PRIVATE: 'true',
    },
    told,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

type NoticeBody = { type: string; data: { order: { reference: string }; version: number } };

function seen(id: string, { type, data: { order, version } }: NoticeBody): SeenNotice {
  return { id, reference: order.reference, type, version };
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Answer = { status: number; body: any } | null | undefined;

/** Everything that the feed has, from its beginning. */
export async function readFeed(fleet: Fleet, chance: Chance): Promise<SeenNotice[]> {
  const notices: SeenNotice[] = [];
  for (let cursor: string | null = null; ; ) {
    const answer: Answer = await fleet
      .any(chance)
      ?.api(`/v1/feed?limit=200${cursor === null ? '' : `&after=${cursor}`}`);
    if (answer?.status !== 200) throw new Error(`the feed answers ${answer?.status}`);
    for (const { id, ...notice } of answer.body.notices) notices.push(seen(id, notice));
    if (answer.body.notices.length === 0) return notices;
    ({ cursor } = answer.body);
  }
}
