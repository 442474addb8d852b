import { isSameMoney, type Money } from './money.ts';
import { isOpen, type Order } from './order.ts';

/** What a shop registers, or corrects: an order's money, its link's id and its signing secret. */
export type RegisteredLink = {
  amount: Money;
  linkId: string | null;
  secret: (KeyedFingerprint & { olderFingerprints?: readonly KeyedFingerprint[] }) | null;
  /** Whether the caller may replace the signing secret of a link, or the id of an open order's link. */
  mayCorrect: boolean;
};

/** Equal secrets have equal fingerprints under one key. */
type KeyedFingerprint = { keyId: string; fingerprint: Uint8Array };

/** The newest link of an order, as a registration is compared with it. */
export type KnownLink = {
  linkKey: number;
  linkId: string | null;
  token: string;
  keyId: string;
  fingerprint: Buffer;
  isOpened: boolean;
};

/** What a registration adds to a link that is there, or corrects of it. */
export type LinkChange = { binds: boolean; correctsId: boolean; correctsSecret: boolean };

export type RegistrationRefusal =
  | 'opened_by_settled'
  | 'reference_conflict'
  | 'link_id_conflict'
  | 'link_id_taken'
  | 'correction_forbidden';

/**
 * What registering an existing link changes, or why it may not change it.
 *
 * @param isTaken whether another order's link has the id that is given
 */
export function compareRegistration(
  order: Order,
  link: KnownLink,
  { amount, linkId, secret, mayCorrect }: RegisteredLink,
  isTaken: boolean,
): LinkChange | RegistrationRefusal {
  // If settled opens an order, settled makes its link and the link's secret.
  if (link.isOpened) return 'opened_by_settled';
  if (!isSameMoney(order.amount, amount)) return 'reference_conflict';
  const correctsId = linkId !== null && link.linkId !== null && link.linkId !== linkId;
  // An open order has no ledger: no money was counted by the id that it has.
  if (correctsId && !isOpen(order.state)) return 'link_id_conflict';
  if (isTaken) return 'link_id_taken';
  const correctsSecret = secret !== null && !isSecretOf(link, secret);
  if ((correctsId || correctsSecret) && !mayCorrect) return 'correction_forbidden';
  return { binds: linkId !== null && link.linkId === null, correctsId, correctsSecret };
}

/** Fingerprints can be compared only under the same key: a secret under an unknown key counts as another one. */
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

/** What the order's history says of a new link. */
export function createdNote({ linkId }: RegisteredLink): string {
  return linkId === null ? 'link reserved' : `link ${linkId} registered`;
}

/** What the order's history says of a change. */
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
