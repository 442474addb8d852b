import { isSameMoney, type Money } from './money.ts';
import { isOpen, isOtherCustomer, type Order } from './order.ts';
import type { Customer } from './payment_details.ts';

/** What a shop registers or corrects: an order's money, its link's id and its signing secret. */
export type RegisteredLink = {
  amount: Money;
  customer?: Customer | null;
  linkId: string | null;
  secret: (KeyedFingerprint & { olderFingerprints?: readonly KeyedFingerprint[] }) | null;
  /** Whether the caller may replace the signing secret of a link, or the id of an open order's link. */
  mayCorrect: boolean;
};

/** Equal secrets have equal fingerprints under the same key. */
type KeyedFingerprint = { keyId: string; fingerprint: Uint8Array };

/** The newest link of an order, for comparison with a registration. */
export type KnownLink = {
  linkKey: number;
  linkId: string | null;
  token: string;
  keyId: string;
  fingerprint: Buffer;
  isOpened: boolean;
};

/** What a registration adds to an existing link, or corrects. */
export type LinkChange = { binds: boolean; correctsId: boolean; correctsSecret: boolean };

export type RegistrationRefusal =
  | 'opened_by_settled'
  | 'reference_conflict'
  | 'link_id_conflict'
  | 'link_id_taken'
  | 'correction_forbidden';

/**
 * What registering an existing link changes, or why that is refused.
 * @param isTaken whether another order's link has the given id
 */
export function compareRegistration(
  order: Order,
  link: KnownLink,
  { amount, customer = null, linkId, secret, mayCorrect }: RegisteredLink,
  isTaken: boolean,
): LinkChange | RegistrationRefusal {
  // When settled opens an order, it makes the link and its secret itself.
  if (link.isOpened) return 'opened_by_settled';
  if (!isSameMoney(order.amount, amount) || isOtherCustomer(order, customer)) return 'reference_conflict';
  const correctsId = linkId !== null && link.linkId !== null && link.linkId !== linkId;
  // An open order has no ledger: no money was counted under its present id.
  if (correctsId && !isOpen(order.state)) return 'link_id_conflict';
  if (isTaken) return 'link_id_taken';
  const correctsSecret = secret !== null && !isSecretOf(link, secret);
  if ((correctsId || correctsSecret) && !mayCorrect) return 'correction_forbidden';
  return { binds: linkId !== null && link.linkId === null, correctsId, correctsSecret };
}

/** Fingerprints compare only under the same key. A secret under an unknown key counts as another one. */
function isSecretOf(
  link: KnownLink,
  { olderFingerprints = [], ...current }: NonNullable<RegisteredLink['secret']>,
): boolean {
  return [current, ...olderFingerprints].some(
    ({ keyId, fingerprint }) => keyId === link.keyId && link.fingerprint.equals(fingerprint),
  );
}

export function changedOutcome({ binds, correctsId, correctsSecret }: LinkChange): 'same' | 'bound' | 'corrected' {
  if (correctsId || correctsSecret) return 'corrected';
  return binds ? 'bound' : 'same';
}

/** The line about a new link in the order's history. */
export function createdNote({ linkId }: RegisteredLink): string {
  return linkId === null ? 'link reserved' : `link ${linkId} registered`;
}

/** The lines about a change in the order's history. */
export function changeNotes(
  { binds, correctsId, correctsSecret }: LinkChange,
  link: KnownLink,
  { linkId }: RegisteredLink,
): string[] {
  return [
    ...(binds ? [`link ${linkId} bound`] : []),
    ...(correctsId ? [`link id corrected from ${link.linkId} to ${linkId}`] : []),
    ...(correctsSecret ? ['signing secret corrected'] : []),
  ];
}
