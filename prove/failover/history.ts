import { kindOf, type SeenNotice, toldUnderTwoIds } from '../harness/shop.ts';

/**
 * What the client, the shop and a reader of the feed saw while servers failed, and what in it breaks a promise of settled.
 * Nothing here looks into settled's tables: what a failover lost is missing there as well.
 */

export type SentEvent = {
  id: string;
  reference: string;
  /** The notice that tells the shop of it. */
  type: 'order.paid' | 'order.refunded';
  isAcknowledged: boolean;
};

export type History = {
  events: readonly SentEvent[];
  /** In the order in which the shop took them, with repetitions. */
  told: readonly SeenNotice[];
  /** In the order of the feed. */
  feed: readonly SeenNotice[];
};

/** Everything that breaks a promise, in words. */
export function findBroken({ events, told, feed }: History): string[] {
  return [
    ...lostEvents(events, told),
    ...unfounded(events, told),
    ...toldUnderTwoIds(told, kindOf),
    ...outOfOrder(firstOfEach(told), 'the shop'),
    ...outOfOrder(feed, 'the feed'),
    ...differences(told, feed),
  ];
}

function lostEvents(events: readonly SentEvent[], told: readonly SeenNotice[]): string[] {
  const known = new Set(told.map(kindOf));
  return events
    .filter((event) => event.isAcknowledged && !known.has(kindOf(event)))
    .map((event) => `${event.id} was acknowledged, and the shop was never told ${kindOf(event)}`);
}

/** Money that nobody reported. */
function unfounded(events: readonly SentEvent[], told: readonly SeenNotice[]): string[] {
  const sent = new Set(events.map(kindOf));
  const types = new Set<string>(['order.paid', 'order.refunded'] satisfies SentEvent['type'][]);
  return firstOfEach(told)
    .filter((notice) => types.has(notice.type) && !sent.has(kindOf(notice)))
    .map((notice) => `${notice.id} tells ${kindOf(notice)}, of which no event was sent`);
}

/** Of one order a later version comes later. */
function outOfOrder(notices: readonly SeenNotice[], where: string): string[] {
  const latest = new Map<string, number>();
  return notices.flatMap(({ id, reference, version }) => {
    const before = latest.get(reference) ?? 0;
    latest.set(reference, Math.max(before, version));
    return version > before ? [] : [`${where} got ${id}, version ${version} of ${reference}, after version ${before}`];
  });
}

function differences(told: readonly SeenNotice[], feed: readonly SeenNotice[]): string[] {
  const atShop = new Set(told.map(({ id }) => id));
  const inFeed = new Set(feed.map(({ id }) => id));
  return [
    ...(inFeed.size < feed.length ? [`the feed has ${feed.length - inFeed.size} notices more than once`] : []),
    ...[...atShop].filter((id) => !inFeed.has(id)).map((id) => `${id} reached the shop and is not in the feed`),
    ...[...inFeed].filter((id) => !atShop.has(id)).map((id) => `${id} is in the feed and never reached the shop`),
  ];
}

/** Repetitions of a notice are allowed: the answer to the first may have been lost. */
function firstOfEach(notices: readonly SeenNotice[]): SeenNotice[] {
  const seen = new Set<string>();
  return notices.filter(({ id }) => !seen.has(id) && seen.add(id));
}
