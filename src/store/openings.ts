import type { AttentionKind, OrderState } from '../domain/order.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { ServiceLink } from './contract_inbox.ts';
import type { ClaimedOpening, OpeningState } from './contract_links.ts';

/** An opening that could not be closed, because the service has its link, is tried again after this time. */
export const KEPT_AGAIN_MS = 60_000;

/** Matters of an order's link that are over once nobody is to pay there. */
export const ENDED_BY_CANCEL: readonly AttentionKind[] = ['link_not_opened', 'link_withheld', 'reference_taken'];
/** And once a person named its link. */
export const ENDED_BY_ADOPTION: readonly AttentionKind[] = ['reference_taken', 'link_not_opened'];

/** An opening with its order, as a verb finds it. */
export type FoundOpening = {
  linkKey: number;
  orderKey: number;
  reference: string;
  state: OrderState;
  linkId: string | null;
  status: OpeningState['status'];
};

export type OpeningColumns = {
  status: OpeningState['status'];
  withheld: string | null;
  faultCode: string | null;
  faultMessage: string | null;
  foreignId: string | null;
  isIdNeeded: boolean;
};

export function openingState(row: OpeningColumns): OpeningState {
  const { status, withheld, faultCode, faultMessage } = row;
  const fault = faultCode === null ? null : { code: faultCode, message: faultMessage ?? '' };
  const foreignId = status === 'taken' ? (row.foreignId ?? readForeign(faultMessage ?? '')) : null;
  const needsId = fault !== null && status !== 'taken' && row.isIdNeeded;
  return { status, withheld, fault, foreignId, needsId };
}

const FOREIGN = /^The service has a link (.+) of this reference that settled did not make\.$/;

/** The link's id in the message of an opening that an older version parked; null if it says something else. */
function readForeign(message: string): string | null {
  return FOREIGN.exec(message)?.[1] ?? null;
}

/** A claimed opening, as a row has it. */
export type OpeningRow = Omit<ClaimedOpening, 'amount'> & ClaimedOpening['amount'];

export function claimedOpening({ amountMinor, currency, ...row }: OpeningRow): ClaimedOpening {
  return { ...row, amount: { amountMinor, currency } };
}

/**
 * Whether a person may name the link of an order: it is parked, or the service may have a link of it that nobody found.
 * References are unique there, so an attempt under way makes no second link.
 */
export function isAdoptable({ status }: FoundOpening, mayExist: boolean): boolean {
  return status === 'taken' || (status !== 'done' && mayExist);
}

/** Why an order's link cannot be the one that the service names; null where it can. `owner` has that one here. */
export function bindingRefusal(
  { linkId }: FoundOpening,
  { id }: ServiceLink,
  owner: string | undefined,
): string | null {
  if (linkId !== null && linkId !== id) return `authentic events named link ${linkId}`;
  return linkId === null && owner !== undefined ? `it belongs to order ${owner} here` : null;
}

/** The fault of an opening whose order cannot have the link that the service made. */
export function notItsLink({ reference }: FoundOpening, { id }: ServiceLink, why: string): FaultNote {
  const message = `The service's link ${id} of the reference ${reference} is not the order's: ${why}.`;
  return { code: 'service_conflict', message };
}

/** What the history says of the secret that the service named for a link, and no more of it than that. */
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

/** The subject of the matter that the service names secrets that cannot be used: one stands for all links. */
export const SECRET_SUBJECT = 'webhookSecret';

/**
 * What the cancelling of its order does to an opening. `ends`: no request for the link can have reached the service.
 * `stays`: it has ended, or its link is known, and goes on being asked about. `waits`: the link may be there.
 *
 * @param isHeard whether an authentic delivery came for the link
 */
export function openingAtCancel(
  opening: Pick<FoundOpening, 'linkId' | 'status'> | undefined,
  mayExist: boolean,
  isHeard: boolean,
): 'ends' | 'stays' | 'waits' {
  if (opening === undefined || opening.linkId !== null) return 'stays';
  const { status } = opening;
  if (status === 'done' || status === 'taken') return 'stays';
  return status === 'leased' || mayExist || isHeard ? 'waits' : 'ends';
}
