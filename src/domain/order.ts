import { FLAG_WORDS, HOLD_WORDS, namesOf, STATE_WORDS } from '../vocabulary.ts';
import type { LedgerEntry } from './ledger.ts';
import type { Money } from './money.ts';
import type { Customer, KnownDetails } from './payment_details.ts';

export type OrderState = keyof typeof STATE_WORDS;
export const ORDER_STATES = namesOf(STATE_WORDS);

/**
 * The states that may follow each state. A payment first reported as refunded or disputed passes through `paid` within
 * one decision, so open states lead to those two as well.
 */
export const TRANSITIONS: Readonly<Record<OrderState, readonly OrderState[]>> = {
  awaiting_payment: ['payment_pending', 'paid', 'held', 'expired', 'cancelled', 'refunded', 'disputed'],
  payment_pending: ['paid', 'held', 'expired', 'refunded', 'disputed'],
  paid: ['refunded', 'disputed'],
  held: ['paid', 'cancelled'],
  expired: ['paid', 'held', 'cancelled', 'refunded', 'disputed'],
  cancelled: ['held'],
  refunded: ['held'],
  disputed: ['paid', 'refunded', 'held'],
};

/** Throws if the transition table does not allow the move. */
export function assertTransition(from: OrderState, to: OrderState): void {
  if (from !== to && !TRANSITIONS[from].includes(to)) throw new Error(`no transition from ${from} to ${to}`);
}

export type Flag = keyof typeof FLAG_WORDS;
export const FLAGS = namesOf(FLAG_WORDS);

export type HoldReason = keyof typeof HOLD_WORDS;
export const HOLD_REASONS = namesOf(HOLD_WORDS);
export type Hold = { readonly id: string; readonly reason: HoldReason };

/** How settled learned that the order was paid. */
export const LEARNED_BY = ['webhook', 'reconciliation', 'person'] as const;
export type LearnedBy = (typeof LEARNED_BY)[number];

/** When the order became paid, and by which payment. Written once, never changed. */
export type Settlement = {
  readonly paidAtMs: number;
  readonly paymentKey: string | null;
  readonly learnedBy: LearnedBy;
};

/** The link that customers see; its token and signing secret are never part of an order. */
export type OrderLink = {
  readonly id: string | null;
  readonly url: string | null;
  readonly shortUrl: string | null;
  readonly status: string | null;
  readonly expiresAtMs: number | null;
};

/** A link as the service shows it. */
export type ServiceLink = OrderLink & { readonly id: string; readonly status: string };

/** The shop's claim to money, with all that a decision about it needs. */
export type Order = {
  readonly reference: string;
  readonly amount: Money;
  /** From the shop's request to open the order; null if the shop makes the link itself. */
  readonly title: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The customer as the shop named them; null if it did not, or once that is dropped. Decides nothing. */
  readonly customer: Customer | null;
  readonly state: OrderState;
  readonly flags: readonly Flag[];
  /** Rises with every change that a shop can see, by one for each notice and at least by one. A restore exceeds all. */
  readonly version: number;
  readonly createdAtMs: number;
  readonly settlement: Settlement | null;
  readonly entries: readonly LedgerEntry[];
  /** The id that a payment reported without one got later. */
  readonly adoptedPaymentId: string | null;
  /** Open holds, oldest first. */
  readonly holds: readonly Hold[];
  readonly resolution: 'accept' | 'reject' | null;
  /**
   * The highest number of an applied reading, or of the last request that left before an event changed the order.
   * Readings up to this number know nothing newer. The store raises it after all facts of a reading are decided.
   */
  readonly lastReading: number | null;
  readonly link: OrderLink | null;
  /** What the service says about payments besides status and money, counted or not. Decides nothing. */
  readonly details: readonly KnownDetails[];
};

/**
 * Whether a completion that no reading shows needs a person in this state. A person may have cancelled the order while
 * the API knew of no payment.
 */
export function mayBeUnconfirmed(state: OrderState): boolean {
  return isOpen(state) || state === 'cancelled';
}

/** Whether the order still waits for its money. */
export function isOpen(state: OrderState): boolean {
  return state === 'awaiting_payment' || state === 'payment_pending' || state === 'expired';
}

/**
 * Why no payment can begin at the order's link any more, although the order waits for its money; null if one can, or
 * if there is no link. An inactive link counts only before a payment began, because payments make links inactive too.
 */
export function linkEnd({ state, link }: Pick<Order, 'state' | 'link'>, nowMs: number): 'expired' | 'inactive' | null {
  if (!isOpen(state) || link === null) return null;
  const { status, expiresAtMs } = link;
  if (state === 'expired' || status === 'EXPIRED' || (expiresAtMs !== null && expiresAtMs <= nowMs)) return 'expired';
  return status === 'INACTIVE' && state === 'awaiting_payment' ? 'inactive' : null;
}

/** Whether the order's money was counted and needs no decision by a person. */
export function isSettled(state: OrderState): boolean {
  return state === 'paid' || state === 'refunded' || state === 'disputed';
}

/**
 * Whether a request names another customer than the order's. What one of the two leaves out, or settled has dropped,
 * differs from nothing.
 */
export function isOtherCustomer({ customer }: Pick<Order, 'customer'>, given: Customer | null): boolean {
  if (customer === null || given === null) return false;
  const differs = (known: string | null, other: string | null) => known !== null && other !== null && known !== other;
  return differs(customer.name, given.name) || differs(customer.email, given.email);
}

/**
 * The order after a person ended a matter. Ending a matter about a refund means that the refund was made, so the order
 * loses that flag. Null if the matter does not change the order.
 */
export function debtEnded(order: Order, kind: string): Order | null {
  if (kind !== 'refund_due' && kind !== 'duplicate_payment') return null;
  if (!order.flags.includes(kind)) return null;
  return { ...order, flags: order.flags.filter((flag) => flag !== kind), version: order.version + 1 };
}
