import type { Outage } from './budget.ts';
import type { SaidReturn } from './decision.ts';
import type { Payment } from './ledger.ts';
import type { Money } from './money.ts';
import type { ShopFailures } from './notice.ts';
import type { HoldReason } from './order.ts';

/**
 * What matters are about, most urgent first. The kinds of each are in the order in which lists show them.
 * - `money`: money is in a wrong state, or may be
 * - `unsettled`: something authentic came that may be about money, and was not counted
 * - `shop`: the shop does not know the state of its orders
 * - `service`: settled cannot ask or hear the service as it should
 * - `link`: an order has no link that can be paid
 */
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
} as const;

export type Concern = keyof typeof KINDS_OF;

/** Something that needs a person: an order held for a decision about its money, or an open matter of attention. */
export type MatterKind = (typeof KINDS_OF)[Concern][number];

/** Matters for a person that do not change an order's state. docs/states.md explains each. */
export type AttentionKind = Exclude<MatterKind, 'hold'>;

export const CONCERNS = Object.keys(KINDS_OF) as readonly Concern[];
export const MATTER_KINDS: readonly MatterKind[] = Object.values(KINDS_OF).flat();
export const ATTENTION_KINDS = MATTER_KINDS.filter((kind) => kind !== 'hold').toSorted();

/** Kinds about money. settled sums what was captured on their orders. */
export const MONEY_KINDS: readonly MatterKind[] = KINDS_OF.money;

/** Matters that end when a newer reading does not raise them again. */
export const ENDED_BY_READINGS = ['event_not_understood', 'link_disabled', 'service_disagrees'] as const;

/** The concern of a kind; undefined for a kind that a later version wrote. */
export function concernOf(kind: string): Concern | undefined {
  return CONCERNS.find((concern) => KINDS_OF[concern].some((known) => known === kind));
}

/** Matters of one kind and, for holds, one reason: that of the order's oldest hold. */
export type MatterGroup = {
  readonly kind: MatterKind;
  readonly reason: HoldReason | null;
  readonly count: number;
  /** When the oldest of them was raised. */
  readonly oldestAtMs: number;
  /** What their orders ask for and hold, for kinds about money; otherwise empty. */
  readonly sums: readonly MoneySum[];
};

/** A group of matters before its money is summed. */
export type CountedMatters = Omit<MatterGroup, 'sums'>;

/** Compares kinds for lists. A kind that a later version wrote comes last. */
export function compareKinds(a: MatterKind, b: MatterKind): number {
  const rank = (kind: MatterKind) => MATTER_KINDS.indexOf(kind) + 1 || MATTER_KINDS.length + 1;
  return rank(a) - rank(b) || (a < b ? -1 : Number(a > b));
}

/** Sorts groups as lists show them: by kind, then oldest first. */
export function inOrder<G extends Pick<MatterGroup, 'kind' | 'oldestAtMs'>>(groups: readonly G[]): G[] {
  return groups.toSorted((a, b) => compareKinds(a.kind, b.kind) || a.oldestAtMs - b.oldestAtMs);
}

/**
 * What orders ask for in one currency, and their balance: what was captured on them less what went back. Null if none of
 * it is readable.
 */
export type MoneySum = {
  readonly currency: string;
  readonly asked: bigint;
  readonly balance: bigint | null;
  /** What webhooks reported that the service did not confirm, so that it is in no balance. */
  readonly reported: bigint;
};

/** The money of orders that need a person for it. */
export type MatterMoney = {
  readonly orders: number;
  /** Orders of which at least one currency has a balance. */
  readonly withBalance: number;
  readonly sums: readonly MoneySum[];
  /** False if there are too many orders to read; `sums` then covers only the oldest. */
  readonly isWhole: boolean;
  /** Whether `sums` leave out money of held orders that is more than they ask for, and so cannot be right. */
  readonly hasMisread: boolean;
  /** Whether `sums` leave out captured money that is not readable. */
  readonly hasUnreadable: boolean;
};

/** Sums cover at most this many held orders, and as many matters about money. Reading more would take too long. */
export const SUMMED_MAX = 10_000;

/**
 * What orders of one kind and reason ask for and hold in one currency. Rows with `isFirst` have each order once, even
 * if several matters are about it. Each sum has two parts, millions of minor units and the rest, so that each part is
 * exact. Null if nothing was added.
 */
export type SummedMoney = {
  kind: MatterKind;
  reason: HoldReason | null;
  isFirst: boolean;
  currency: string;
  /** Orders that ask in this currency. */
  orders: number;
  askedMillions: number | null;
  askedRest: number | null;
  balanceMillions: number | null;
  balanceRest: number | null;
  /** Entries that the balance leaves out. */
  misread: number;
  /** Entries of payments that are not readable. */
  unread: number;
  reportedMillions: number | null;
  reportedRest: number | null;
  /** Orders with a balance, of all rows together. */
  withBalance: number;
};

/** Adds to each group what its orders ask for and hold. */
export function withSums(groups: readonly CountedMatters[], rows: readonly SummedMoney[]): MatterGroup[] {
  return groups.map((group) => {
    const own = rows.filter(({ kind, reason }) => kind === group.kind && reason === group.reason);
    return { ...group, sums: addUp(own) };
  });
}

/** The total money of all orders that need a person for it. */
export function totalMoney(groups: readonly CountedMatters[], rows: readonly SummedMoney[]): MatterMoney {
  const all = rows.filter(({ isFirst }) => isFirst);
  const count = (isCounted: (kind: MatterKind) => boolean) =>
    groups.reduce((sum, { kind, count }) => (isCounted(kind) ? sum + count : sum), 0);
  return {
    orders: all.reduce((sum, { orders }) => sum + orders, 0),
    withBalance: rows[0]?.withBalance ?? 0,
    sums: addUp(all),
    hasMisread: all.some(({ misread }) => misread > 0),
    hasUnreadable: all.some(({ unread }) => unread > 0),
    isWhole:
      count((kind) => kind === 'hold') <= SUMMED_MAX &&
      count((kind) => kind !== 'hold' && MONEY_KINDS.includes(kind)) <= SUMMED_MAX,
  };
}

/** One sum for each currency. */
function addUp(rows: readonly SummedMoney[]): MoneySum[] {
  const ofCurrencies = Map.groupBy(rows, ({ currency }) => currency);
  return [...ofCurrencies].map(([currency, own]) => {
    const asked = own.reduce((sum, row) => sum + whole(row.askedMillions, row.askedRest), 0n);
    const balance = own.reduce((sum, row) => sum + whole(row.balanceMillions, row.balanceRest), 0n);
    const reported = own.reduce((sum, row) => sum + whole(row.reportedMillions, row.reportedRest), 0n);
    return {
      currency,
      asked,
      balance: balance === 0n && own.some(({ unread }) => unread > 0) ? null : balance,
      reported,
    };
  });
}

function whole(millions: number | null, rest: number | null): bigint {
  return BigInt(millions ?? 0) * 1_000_000n + BigInt(rest ?? 0);
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
export type RefundOwed = { readonly isHeld: boolean; readonly owed: PaymentList; readonly kept: PaymentList | null };

/** `event` is null if an older version wrote the row; its sentence is then in `attention.detail`. */
type NotUnderstood = {
  readonly event: {
    readonly key: number;
    /** Null if the event is not JSON that settled can read. */
    readonly why: string | null;
    /** Whether settled asked the service about the link, and its answer did not help. */
    readonly isUnanswered: boolean;
  } | null;
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

/**
 * Whether a row's `detail` is a whole sentence that an older version stored. It then replaces the params. A detail that
 * begins with a space only adds to them.
 */
export function isWholeSentence(detail: string): boolean {
  return detail !== '' && !detail.startsWith(' ');
}

/** The subject of the matter that settled cannot search for links made since a restored copy. */
export function searchSubject(restoredFromMs: number): string {
  return `since ${new Date(restoredFromMs).toISOString()}`;
}

/** Reads the time from that subject, for a row that an older version wrote without params. NaN for another subject. */
export function readSearchSubject(subject: string): number {
  return Date.parse(subject.replace(/^since /, ''));
}
