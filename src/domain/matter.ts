import type { AttentionKind, HoldReason } from './order.ts';

/** What needs a person: an order that is held for a decision about its money, or an open matter of attention. */
export type MatterKind = 'hold' | AttentionKind;

/**
 * What a matter may mean, the most urgent first.
 *
 * - `money`: money is in a wrong state, or may be
 * - `unsettled`: something authentic, which may be about money, came and was not counted
 * - `shop`: the shop does not know the state of its orders
 * - `service`: the service cannot be asked or heard as it should be
 * - `link`: an order has no link that can be paid
 */
export const CONCERNS = ['money', 'unsettled', 'shop', 'service', 'link'] as const;
export type Concern = (typeof CONCERNS)[number];

const CONCERN_OF: Readonly<Record<MatterKind, Concern>> = {
  hold: 'money',
  refund_due: 'money',
  duplicate_payment: 'money',
  service_disagrees: 'money',
  amount_mismatch: 'money',
  status_unclear: 'money',
  money_unnamed: 'money',
  event_dead: 'unsettled',
  event_not_understood: 'unsettled',
  link_mismatch: 'unsettled',
  event_conflict: 'unsettled',
  shop_refuses_notices: 'shop',
  notices_dead: 'shop',
  api_key_refused: 'service',
  merchant_inactive: 'service',
  deliveries_refused: 'service',
  secret_unusable: 'service',
  quote_reading_doubtful: 'service',
  link_not_known: 'link',
  link_withheld: 'link',
  reference_taken: 'link',
  link_not_opened: 'link',
  link_missing: 'link',
  link_disabled: 'link',
};

/** Every kind, in the order in which lists show them. */
export const MATTER_KINDS = Object.keys(CONCERN_OF) as readonly MatterKind[];

/** Kinds about money: what was captured on their orders is summed. */
export const MONEY_KINDS = MATTER_KINDS.filter((kind) => CONCERN_OF[kind] === 'money');

/** Undefined for a kind that a later version wrote. */
export function concernOf(kind: string): Concern | undefined {
  return Object.hasOwn(CONCERN_OF, kind) ? CONCERN_OF[kind as MatterKind] : undefined;
}

/** Matters that are alike: of one kind and, for holds, of one reason (that of the order's oldest hold). */
export type MatterGroup = {
  readonly kind: MatterKind;
  readonly reason: HoldReason | null;
  readonly count: number;
  /** When the oldest of them began to wait. */
  readonly oldestAtMs: number;
  /** What their orders ask and hold if they are about money; empty otherwise. */
  readonly sums: readonly MoneySum[];
};

/** The order of kinds in lists. A kind that a later version wrote comes last. */
export function compareKinds(a: MatterKind, b: MatterKind): number {
  const rank = (kind: MatterKind) => MATTER_KINDS.indexOf(kind) + 1 || MATTER_KINDS.length + 1;
  return rank(a) - rank(b) || (a < b ? -1 : Number(a > b));
}

/** Sorted as lists show them: by kind, then the oldest first. */
export function inOrder<G extends Pick<MatterGroup, 'kind' | 'oldestAtMs'>>(groups: readonly G[]): G[] {
  return groups.toSorted((a, b) => compareKinds(a.kind, b.kind) || a.oldestAtMs - b.oldestAtMs);
}

/** What orders ask in one currency, and what was captured on them and has not gone back. */
export type MoneySum = { readonly currency: string; readonly asked: bigint; readonly balance: bigint };

/** Orders whose money needs a person. */
export type MatterMoney = {
  readonly orders: number;
  readonly sums: readonly MoneySum[];
  /** Whether `sums` covers all these orders, or only the oldest because there are too many to read. */
  readonly isWhole: boolean;
};
