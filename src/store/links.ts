import { isOpen } from '../domain/order.ts';
import type { LoadedOrder } from './orders.ts';
import type { Registered, Registration, SealedSecret } from './store.ts';

/** The newest link of an order that is there, as a registration is compared with it. */
export type KnownLink = {
  linkKey: number;
  linkId: string | null;
  token: string;
  keyId: string;
  fingerprint: Buffer;
  opened: boolean;
};

/** What a registration adds to a link that is there, or corrects of it. */
export type Change = { binds: boolean; correctsId: boolean; correctsSecret: boolean };

type Changed = 'same' | 'bound' | 'corrected';
type Refusal = Exclude<Registered['outcome'], 'created' | Changed>;

/** @param isTaken whether another order's link has the id that is given */
export function compareRegistration(
  { order }: LoadedOrder,
  link: KnownLink,
  { amount, linkId, secret, mayCorrect }: Registration,
  isTaken: boolean,
): Change | Refusal {
  // The link of an order that settled opens is made by settled, with a secret of its own.
  if (link.opened) return 'opened_by_settled';
  if (order.amount.amountMinor !== amount.amountMinor || order.amount.currency !== amount.currency) {
    return 'reference_conflict';
  }
  const correctsId = linkId !== null && link.linkId !== null && link.linkId !== linkId;
  // An open order has no ledger: no money was counted by the id that it has.
  if (correctsId && !isOpen(order.state)) return 'link_id_conflict';
  if (isTaken) return 'link_id_taken';
  const correctsSecret = secret !== null && !isSecretOf(link, secret);
  if ((correctsId || correctsSecret) && !mayCorrect) return 'correction_forbidden';
  return { binds: linkId !== null && link.linkId === null, correctsId, correctsSecret };
}

/** Fingerprints can be compared under one key only; of a secret whose key is not known nobody can say. */
function isSecretOf(link: KnownLink, { olderFingerprints = [], ...current }: SealedSecret): boolean {
  return [current, ...olderFingerprints].some(
    ({ keyId, fingerprint }) => keyId === link.keyId && link.fingerprint.equals(fingerprint),
  );
}

export function changedOutcome({ binds, correctsId, correctsSecret }: Change): Changed {
  if (correctsId || correctsSecret) return 'corrected';
  return binds ? 'bound' : 'same';
}

/** What the order's history says of a new link. */
export function createdNote({ linkId }: Registration): string {
  return linkId === null ? 'link reserved' : `link ${linkId} registered`;
}

/** What the order's history says of a change. */
export function changeNotes(
  { binds, correctsId, correctsSecret }: Change,
  link: KnownLink,
  { linkId }: Registration,
): string[] {
  return [
    ...(binds ? [`link ${linkId} bound`] : []),
    ...(correctsId ? [`link id corrected from ${link.linkId} to ${linkId}`] : []),
    ...(correctsSecret ? ['signing secret corrected'] : []),
  ];
}
