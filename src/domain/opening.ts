import type { AttentionKind } from './matter.ts';
import type { OrderState } from './order.ts';
import type { FaultNote } from './retry.ts';

/** How far settled is with opening a link itself. */
export type OpeningState = {
  status: 'pending' | 'leased' | 'done' | 'taken';
  /** Why the link is not shown, if it was not made as asked. */
  withheld: string | null;
  fault: FaultNote | null;
  /** Of a parked opening: the service's link of this reference, if settled did not make it. */
  foreignId: string | null;
  /** Whether the service may have made the link, and only a person can find its id. */
  needsId: boolean;
};

/** Matters of an order's link that are over once the order is cancelled. */
export const ENDED_BY_CANCEL: readonly AttentionKind[] = ['link_not_opened', 'link_withheld', 'reference_taken'];
/** And once a person named its link. */
export const ENDED_BY_ADOPTION: readonly AttentionKind[] = ['reference_taken', 'link_not_opened'];

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
 * Whether a person may name the link of an order: the opening is parked, or the service may have a link that settled did
 * not find. References are unique there, so an attempt under way makes no second link.
 */
export function isAdoptable({ status, mayExist }: FoundOpening): boolean {
  return status === 'taken' || (status !== 'done' && mayExist);
}

/**
 * Why an order's link cannot be the one that the service names; null if it can.
 *
 * @param id of the service's link
 * @param owner the reference of the order that has that link here
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

/** What the history says of the secret that the service named for a link: never the secret itself. */
export function secretNote(flaw: string | null): string {
  return flaw === null
    ? 'the service named a signing secret of its own: deliveries are verified with either'
    : `${UNUSABLE_SECRET}${flaw}`;
}

const UNUSABLE_SECRET = 'the service named a signing secret that cannot be used: ';

/** The flaw in that note, for a link whose row an older version wrote without it; null if the note says something else. */
export function readSecretFlaw(note: string): string | null {
  return note.startsWith(UNUSABLE_SECRET) ? note.slice(UNUSABLE_SECRET.length) : null;
}

/**
 * What cancelling its order does to an opening. `ends`: no request for the link can have reached the service. `stays`: the
 * opening has ended, or its link is known, and settled goes on asking about it. `waits`: the service may have the link.
 *
 * @param isHeard whether an authentic delivery came for the link
 */
export function openingAtCancel(
  { linkId, status, mayExist }: Pick<FoundOpening, 'linkId' | 'status' | 'mayExist'>,
  isHeard: boolean,
): 'ends' | 'stays' | 'waits' {
  if (linkId !== null || status === 'done' || status === 'taken') return 'stays';
  return status === 'leased' || mayExist || isHeard ? 'waits' : 'ends';
}
