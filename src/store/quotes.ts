import type { Decision } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import { isOpen, type Order } from '../domain/order.ts';

/** So many quotes in a row that name less than their links, or cannot be read, are taken for misread, this one among them. */
export const DOUBTFUL_FROM = 3;

/** The subject of the matter: it is about no single order. */
export const QUOTES = 'quote';

/** Whether a quote counts among those in a row: that of a completion by which its order was decided. */
export function isQuoteCounted({ state }: Order, { kind }: PaymentFact, { outcome }: Decision): boolean {
  return kind === 'completed' && isOpen(state) && (outcome === 'applied' || outcome === 'held');
}
