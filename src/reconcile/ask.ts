import type { RequestClass } from '../domain/budget.ts';
import type { AskReason, WatchedLink } from '../domain/check_queue.ts';
import { carriesToken, type LinkSeen, type Service } from '../paylink/service.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedEvent } from '../store/contract_inbox.ts';
import type { Clock } from '../work/clock.ts';

/** Longer than a settlement takes. A reading that is not settled by then is settled like any other row. */
const LEASE_MS = 30_000;

export type AskOptions = {
  service: Service;
  store: Pick<Store, 'recordReading'>;
  clock: Clock;
  /** Settles a recorded reading, by the same path as an event. */
  settleNow: (reading: ClaimedEvent) => Promise<void>;
};

/** What the service said when it was asked about an order's link. */
export type AskResult =
  /** Its answer was recorded, and settled. */
  | { outcome: 'read'; link: LinkSeen }
  /** It has no link of this order. */
  | { outcome: 'no_link' }
  /** It has a link of this reference that is not the order's: nothing of the answer counts for the order. */
  | { outcome: 'foreign'; link: LinkSeen };

/** Asks the service about one link, records its answer, and settles that. Throws a `ServiceFault` if it cannot be asked. */
export async function ask(
  options: AskOptions,
  watched: WatchedLink,
  { as, reason }: { as: RequestClass; reason: AskReason },
): Promise<AskResult> {
  const { service, store, clock, settleNow } = options;
  const { linkKey, linkId, reference, token } = watched;
  const id = linkId ?? (await findId(service, reference, as));
  if (id === null) return { outcome: 'no_link' };
  const { number, value: link, body } = await service.showLink(id, as);
  if (linkId === null && !carriesToken(link, token)) return { outcome: 'foreign', link };
  const reading = await store.recordReading({
    number,
    linkKey,
    linkId: link.id,
    reason,
    body,
    nowMs: clock.nowMs(),
    leaseMs: LEASE_MS,
  });
  if (reading === null) return { outcome: 'foreign', link };
  await settleNow(reading);
  return { outcome: 'read', link };
}

/** The id of the link that has this reference; references are unique at the service (spec §2). */
async function findId(service: Service, reference: string, as: RequestClass): Promise<string | null> {
  const { value: listed } = await service.findLinks(reference, as);
  return listed[0]?.id ?? null;
}
