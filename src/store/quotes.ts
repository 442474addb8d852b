import type { Decision } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import { isOpen, type Order } from '../domain/order.ts';

/** So many quotes in a row that name less than their links, or cannot be read, are taken for misread, this one among them. */
export const DOUBTFUL_FROM = 3;

/** The subject of the matter: it is about no single order. */
export const QUOTES = 'quote';
export const DOUBTFUL_DETAIL =
  `The quotes of ${DOUBTFUL_FROM} payments in a row named less than their links, which named the orders', or nothing ` +
  "that can be read. Such quotes are left out until one agrees again. Compare a payment in the service's panel with what settled counted: " +
  'the orders before were held (settled orders list --state held).';

/** Whether a quote counts among those in a row: that of a completion by which its order was decided. */
export function isQuoteCounted({ state }: Order, { kind }: PaymentFact, { outcome }: Decision): boolean {
  return kind === 'completed' && isOpen(state) && (outcome === 'applied' || outcome === 'held');
}
