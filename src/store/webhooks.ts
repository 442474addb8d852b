import { MONEY_CAME, type PaymentFact } from '../domain/fact.ts';
import type { LearnedBy } from '../domain/order.ts';
import type { LoadedOrder } from './orders.ts';

export type Heard = {
  /** The order before it. */
  before: LoadedOrder;
  isReading: boolean;
  facts: readonly PaymentFact[];
  learnedBy: LearnedBy | null;
};

/** Whether what was settled made its order paid before any webhook told of it, or is the webhook that tells of it now. */
export function webhookIs({ before, isReading, facts, learnedBy }: Heard): 'missing' | 'found' | null {
  if (learnedBy === 'reconciliation') return 'missing';
  if (isReading || before.order.settlement?.learnedBy !== 'reconciliation') return null;
  return facts.some(({ kind }) => MONEY_CAME.has(kind)) ? 'found' : null;
}
