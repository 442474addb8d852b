import type { OrderState } from './order.ts';
import type { FaultNote } from './retry.ts';

/** Statuses of links that settled has still to open; `taken`: the opening waits for a person. */
export const OPENING_STATUSES = ['pending', 'leased', 'taken'] as const;

/** The progress of a link that settled opens itself. */
export type OpeningState = {
  status: (typeof OPENING_STATUSES)[number] | 'done';
  /** Why settled does not show the link, if the service did not make it as asked. */
  withheld: string | null;
  fault: FaultNote | null;
  /** For a parked opening: the id of the service's link with this reference, if settled did not make that link. */
  foreignId: string | null;
  /** Whether the service may have made the link, and only a person can find its id. */
  needsId: boolean;
};

/** An opening with its order. `mayExist`: whether a request for the link may have reached the service. */
export type FoundOpening = {
  linkKey: number;
  orderKey: number;
  reference: string;
  state: OrderState;
  linkId: string | null;
  status: OpeningState['status'];
  mayExist: boolean;
};

/**
 * Whether a person may name the link of an order: its opening is parked, or the service may have a link that settled
 * did not find. The service keeps references unique, so an attempt under way makes no second link.
 */
export function isAdoptable({ status, mayExist }: FoundOpening): boolean {
  return status === 'taken' || (status !== 'done' && mayExist);
}

/**
 * Why the service's link cannot be this order's; null if it can.
 * @param id of the service's link
 * @param owner the reference of the order that has this link here
 */
export function bindingRefusal({ linkId }: FoundOpening, id: string, owner: string | undefined): string | null {
  if (linkId !== null && linkId !== id) return `authentic events named link ${linkId}`;
  return linkId === null && owner !== undefined ? `it belongs to order ${owner} here` : null;
}

/** The fault of an opening whose order cannot have the link that the service made. */
export function notItsLink({ reference }: FoundOpening, id: string, why: string): FaultNote {
  const message = `The service's link ${id} of the reference ${reference} is not the order's: ${why}.`;
  return { code: 'service_conflict', message };
}

/** The line in the order's history about a secret that the service named for a link. Never contains the secret. */
export function secretNote(flaw: string | null): string {
  return flaw === null
    ? 'the service named a signing secret of its own: deliveries are verified with either'
    : `the service named a signing secret that cannot be used: ${flaw}`;
}

/**
 * What cancelling the order does to its opening. `ends`: no request for the link can have reached the service. `stays`:
 * the opening has ended, or its link is known and settled goes on asking about it. `waits`: the service may have the
 * link.
 * @param isHeard whether an authentic delivery came for the link
 */
export function openingAtCancel(
  { linkId, status, mayExist }: Pick<FoundOpening, 'linkId' | 'status' | 'mayExist'>,
  isHeard: boolean,
): 'ends' | 'stays' | 'waits' {
  if (linkId !== null || status === 'done' || status === 'taken') return 'stays';
  return status === 'leased' || mayExist || isHeard ? 'waits' : 'ends';
}
