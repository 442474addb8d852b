import { setTimeout as after } from 'node:timers/promises';
import type { Chance } from '../harness/chance.ts';
import { AMOUNT, eventOf, outcomeOf, type Reserved } from '../harness/send.ts';
import type { Fleet } from '../replicas/fleet.ts';
import type { SentEvent } from './history.ts';

/** The shop that registers links and the service that delivers their events, at random replicas, until each is acknowledged. */

const WORKERS = 16;
/** One order in so many is refunded as well. */
const REFUND_EVERY = 4;
const AGAIN_MS = { min: 5, max: 50 } as const;

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
      await deliver(link, 'order.paid', 'COMPLETED');
      if (chance.oneIn(REFUND_EVERY)) await deliver(link, 'order.refunded', 'REFUNDED');
    }
  }

  async function register(reference: string): Promise<Reserved> {
    const secret = `secret-of-the-link-of-${reference}`;
    const given = { reference, amount: AMOUNT, id: `pl_${reference}`, webhookSecret: secret };
    const { body } = await fleet.make(chance, '/v1/links', given);
    return { reference, path: new URL(body.link.webhookUrl).pathname, secret };
  }

  async function deliver(link: Reserved, type: SentEvent['type'], status: string): Promise<void> {
    const { reference } = link;
    const event: SentEvent = { id: `evt_${reference}_${status}`, reference, type, isAcknowledged: false };
    events.push(event);
    const body = eventOf(link, event.id, status);
    let unknownSinceMs: number | null = null;
    for (;;) {
      fleet.expectAlive();
      const sinceMs = performance.now();
      const outcome = await outcomeOf(fleet.any(chance)?.hooksPort, link, body);
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
