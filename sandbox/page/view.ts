import { aggregateStatus, type Environment, type Link, type Payment } from '../model.ts';

/** What a link's page is drawn from. */
export type View = {
  link: Link;
  payments: readonly Payment[];
  /** The payment that this visit is about: the one named in the address. */
  payment: Payment | null;
  environment: Environment;
  merchantName: string;
  /** Why the last attempt was refused. */
  problem: string | null;
};

/**
 * - `quote`: may be paid
 * - `pending`: this visit's payment is on its way
 * - `receipt`: this visit's payment is complete
 * - `paid`: another payment has completed, or this one was reversed
 * - `expired`, `closed`: may not be paid any more
 */
type PageState = 'quote' | 'pending' | 'receipt' | 'paid' | 'expired' | 'closed';

export function pageState({ link, payments, payment }: Pick<View, 'link' | 'payments' | 'payment'>): PageState {
  if (payment?.status === 'COMPLETED') return 'receipt';
  if (link.status === 'ACTIVE') return payment?.status === 'PENDING' ? 'pending' : 'quote';
  if (aggregateStatus(payments) === 'COMPLETED') return 'paid';
  return link.status === 'EXPIRED' ? 'expired' : 'closed';
}
