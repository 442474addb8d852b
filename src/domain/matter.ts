import { CONCERN_WORDS, namesOf } from '../vocabulary.ts';
import type { Outage } from './budget.ts';
import {
  covers,
  listed,
  mayBeThere,
  PAYMENTS_LISTED_MAX,
  type Payment,
  payments,
  type Stated,
  sums,
} from './ledger.ts';
import type { Money } from './money.ts';
import type { ShopFailures } from './notice.ts';
import type { Order } from './order.ts';

/** What matters are about, most urgent first. The kinds of each are in the order in which lists show them. */
const KINDS_OF = {
  money: [
    'hold',
    'refund_due',
    'duplicate_payment',
    'service_disagrees',
    'amount_mismatch',
    'status_unclear',
    'money_unnamed',
  ],
  unsettled: ['event_dead', 'event_not_understood', 'link_mismatch', 'event_conflict'],
  shop: ['shop_refuses_notices', 'money_untold', 'notices_dead'],
  service: [
    'service_unanswered',
    'api_key_refused',
    'merchant_inactive',
    'deliveries_refused',
    'secret_unusable',
    'webhook_address_changed',
    'quote_reading_doubtful',
  ],
  link: ['link_not_known', 'link_withheld', 'reference_taken', 'link_not_opened', 'link_missing', 'link_disabled'],
} as const satisfies Readonly<Record<keyof typeof CONCERN_WORDS, readonly string[]>>;

export type Concern = keyof typeof CONCERN_WORDS;

/** Something that needs a person: an order held for a decision about its money, or an open matter of attention. */
export type MatterKind = (typeof KINDS_OF)[Concern][number];

/** Matters for a person that do not change an order's state. docs/states.md explains each. */
export type AttentionKind = Exclude<MatterKind, 'hold'>;

export const CONCERNS = namesOf(CONCERN_WORDS);
export const MATTER_KINDS: readonly MatterKind[] = Object.values(KINDS_OF).flat();
export const ATTENTION_KINDS = MATTER_KINDS.filter((kind) => kind !== 'hold').toSorted();

/** Kinds about money. settled sums what was captured on their orders. */
export const MONEY_KINDS: readonly MatterKind[] = KINDS_OF.money;

/**
 * The kinds of an order's matters that end when a person names its link (`adoption`) or cancels it (`cancel`), when it
 * is paid or a person decides about its money (`money`), and when a newer reading does not raise them again (`reading`).
 * Whatever else ends a matter is the rule or the store's verb that sees its cause gone.
 */
export const ENDED_BY = {
  adoption: ['reference_taken', 'link_not_opened'],
  cancel: ['link_not_opened', 'link_withheld', 'reference_taken'],
  money: ['link_withheld'],
  reading: ['event_not_understood', 'link_disabled', 'link_missing', 'service_disagrees'],
} as const satisfies Record<string, readonly AttentionKind[]>;

/** Reasons that come from one setting for all links. An authentic delivery of any link ends their `deliveries_refused`. */
export const ENDED_BY_ANY_LINK: readonly string[] = ['signature_missing', 'timestamp_missing'];

/** Rejections of several links for one reason count together if they came within this time. */
export const REFUSED_WITHIN_MS = 3_600_000;

/** The concern of a kind; undefined for a kind that a later version wrote. */
export function concernOf(kind: string): Concern | undefined {
  return CONCERNS.find((concern) => KINDS_OF[concern].some((known) => known === kind));
}

/** Compares kinds for lists. A kind that a later version wrote comes last. */
export function compareKinds(a: MatterKind, b: MatterKind): number {
  const rank = (kind: MatterKind) => MATTER_KINDS.indexOf(kind) + 1 || MATTER_KINDS.length + 1;
  return rank(a) - rank(b) || (a < b ? -1 : Number(a > b));
}

/**
 * What a matter of attention keeps besides its subject, by kind: plain JSON, never a sentence. src/explain writes the
 * sentence when a person reads the matter. Stored rows keep their form, so a field may be added, but none may change
 * its meaning.
 */
export type AttentionParams = {
  /** `said`: if a refund or dispute names another sum than was counted. */
  amount_mismatch: { readonly payments: PaymentList; readonly said?: SaidReturn };
  api_key_refused: Nothing;
  /** `diagnosis`: of the last delivery that settled examined, in the form of src/receive. The subject is the reason. */
  deliveries_refused: { readonly diagnosis: object | null };
  duplicate_payment: RefundOwed;
  /** Two events with one id and different contents. */
  event_conflict: { readonly eventId: string; readonly beforeKey: number; readonly eventKey: number };
  event_dead: NotedFault;
  event_not_understood: NotUnderstood;
  link_disabled: Nothing;
  link_mismatch: NotedFault;
  link_missing: Nothing;
  link_not_known: UnknownLink | UnreadableList;
  /** `needsId`: the service may have made the link, and only a person can find its id. */
  link_not_opened: NotedFault & { readonly needsId: boolean };
  /** `why`: how the link differs from what settled asked for. */
  link_withheld: { readonly linkId: string; readonly why: string };
  merchant_inactive: Nothing;
  money_unnamed: { readonly amount: Money };
  money_untold: { readonly notice: string; readonly reference: string; readonly sinceMs: number };
  /** The notice that was given up last. */
  notices_dead: { readonly notice: string; readonly message: string };
  /** `count`: misread quotes in a row. */
  quote_reading_doubtful: { readonly count: number };
  reference_taken: NotedFault & { readonly foreignId: string | null };
  refund_due: { readonly payments: PaymentList };
  secret_unusable: { readonly reference: string; readonly flaw: string };
  service_disagrees: { readonly payments: PaymentList };
  service_unanswered: Outage;
  shop_refuses_notices: ShopFailures;
  status_unclear: { readonly payments: PaymentList };
  /** `address`: where the service says it delivers for the order's link, without the token. */
  webhook_address_changed: { readonly reference: string; readonly address: string };
};

/** A refund or dispute that names another sum than was counted; see `Payment`. Rows of earlier versions have no `counted`. */
export type SaidReturn = Stated & {
  readonly kind: 'refunded' | 'disputed';
  readonly paymentId: string | null;
} & Partial<{ readonly counted: Money; readonly isBeside: boolean }>;

type Nothing = Readonly<Record<string, never>>;
type NotedFault = { readonly code: string; readonly message: string };

/** Payments to list. Of too many: the newest, with the count and exact sums of all (minor units, as digits). */
export type PaymentList = {
  readonly named: readonly NamedPayment[];
  readonly count: number;
  readonly sums: readonly { readonly amountMinor: string; readonly currency: string }[];
};
/** `stated` and `isBeside` are absent in rows of earlier versions. */
export type NamedPayment = Pick<Payment, 'id' | 'status' | 'captured'> & Partial<Pick<Payment, 'stated' | 'isBeside'>>;

/** `kept`: the payment that pays the order. While the order is held, `owed` lists all, and a person decides first. */
type RefundOwed = { readonly isHeld: boolean; readonly owed: PaymentList; readonly kept: PaymentList | null };

type NotUnderstood = {
  readonly event: {
    readonly key: number;
    /** Null if the event is not JSON that settled can read. */
    readonly why: string | null;
    /** Whether settled asked the service about the link, and its answer did not help. */
    readonly isUnanswered: boolean;
  };
  /** The event that has made the order paid since; null if none has. */
  readonly paidByEvent: number | null;
};

/** A link that the service lists and a restored store does not know. The subject is its id; `otherId`: its order's. */
type UnknownLink = {
  readonly reference: string | null;
  /** A decimal number, as the service wrote it. */
  readonly amount: string | null;
  readonly currency: string | null;
  readonly createdAtMs: number | null;
  readonly otherId: string | null;
};

/** Links made since the copy would be in the service's list, and settled cannot read that list. */
export type UnreadableList = { readonly restoredFromMs: number; readonly why: string };

/** The params of a matter that a decision raised. `order` is the order after the decision. */
export function decidedParams<K extends DecidedAttention>(
  kind: K,
  order: Order,
  said?: SaidReturn,
): AttentionParams[K] {
  const made: { readonly [K in DecidedAttention]: ParamsMaker<K> } = DECIDED;
  return made[kind](order, said);
}

const ofAll = (order: Order) => ({ payments: listPayments(payments(order)) });

const DECIDED = {
  amount_mismatch: (order, said) => ({ ...ofAll(order), ...(said && { said }) }),
  duplicate_payment: refundOwed,
  link_disabled: () => ({}),
  money_unnamed: ({ amount }) => ({ amount }),
  refund_due: (order) => ({ payments: listOwed(order, stillThere(order)) }),
  service_disagrees: ofAll,
  status_unclear: ofAll,
} satisfies { readonly [K in AttentionKind]?: ParamsMaker<K> };

/** Kinds of attention that decisions raise, and the only ones that they end. */
export type DecidedAttention = keyof typeof DECIDED;
type ParamsMaker<K extends AttentionKind> = (order: Order, said?: SaidReturn) => AttentionParams[K];

function refundOwed(order: Order): RefundOwed {
  if (order.state === 'held') return { isHeld: true, owed: listOwed(order, stillThere(order)), kept: null };
  const { owed, kept } = owedBack(order);
  return { isHeld: false, owed: listOwed(order, owed), kept: kept === undefined ? null : listPayments([kept]) };
}

/** Payments that are owed back, and those that went back and may be parts of them. */
export function listOwed(order: Order, owed: readonly Payment[]): PaymentList {
  return listPayments([...owed, ...payments(order).filter(({ isBeside }) => isBeside)]);
}

/**
 * The payments of which money is there, or may be. On a refunded or disputed order, what may be left of the payment that
 * paid it is not owed: perhaps no more was to go back.
 */
export function stillThere(order: Order): Payment[] {
  const isBack = order.state === 'refunded' || order.state === 'disputed';
  const isPayer = ({ key }: Payment) => key === order.settlement?.paymentKey;
  return payments(order).filter((one) => mayBeThere(one) && !(isBack && one.mayBeLeft && isPayer(one)));
}

/** The payment that pays a paid order is kept, and every other that is there is owed back. */
export function owedBack(order: Order): { owed: Payment[]; kept: Payment | undefined } {
  const there = stillThere(order);
  const whole = there.filter(({ status }) => status === 'completed');
  const pays = whole.find(({ key }) => key === order.settlement?.paymentKey);
  const covering = pays ?? whole.find((payment) => covers(payment, order)) ?? whole[0];
  const kept = order.state === 'paid' ? covering : undefined;
  return { owed: there.filter((payment) => payment !== kept), kept };
}

/** The most currencies whose sums a list keeps. */
const CURRENCIES_MAX = 5;

export function listPayments(counted: readonly Payment[]): PaymentList {
  const all = counted.length > PAYMENTS_LISTED_MAX ? sums(counted, '').slice(0, CURRENCIES_MAX) : [];
  return {
    named: listed(counted).map(({ id, status, captured, stated, isBeside }) => ({
      id,
      status,
      captured,
      ...(stated && { stated }),
      ...(isBeside && { isBeside }),
    })),
    count: counted.length,
    sums: all.map(({ captured, currency }) => ({ amountMinor: String(captured), currency })),
  };
}

/** The subject of the matter that settled cannot search for links made since a restored copy. */
export function searchSubject(restoredFromMs: number): string {
  return `since ${new Date(restoredFromMs).toISOString()}`;
}
