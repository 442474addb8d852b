import fc from 'fast-check';

/** The values of a link and its payments: few, so that they often coincide. */
const ids = fc.constantFrom('a', 'b', 'c', undefined, null, 'unnamed');
const amounts = fc.constantFrom(100, 100, 100, '100.00', 60, 112.4, 5000, 'NaN', true, undefined);
const currencies = fc.constantFrom('BRL', 'BRL', 'BRL', 'USD', undefined);
const statuses = fc.constantFrom('COMPLETED', 'COMPLETED', 'DISPUTED', 'REFUNDED', 'PENDING', 'FAILED', 7);
const quote = fc.oneof(
  fc.constant(undefined),
  fc.record({ amount: amounts, currency: currencies }),
  fc.constantFrom(null, 'none'),
);
const payment = fc.oneof(
  { weight: 12, arbitrary: fc.record({ id: ids, status: statuses, quote }) },
  fc.constant('a payment'),
);
/** A link's details as the API may answer them, with payments with and without ids, consistent or not. */
export const details = fc.record({
  id: fc.constant('pl_1'),
  status: fc.constantFrom('ACTIVE', 'INACTIVE', 'EXPIRED'),
  isExpired: fc.constantFrom(undefined, true),
  externalReference: fc.constantFrom('order-1', 'order-1', undefined, 'order-2'),
  amount: fc.oneof({ weight: 3, arbitrary: fc.constant(100) }, amounts),
  currency: fc.oneof({ weight: 3, arbitrary: fc.constant('BRL') }, currencies),
  paymentStatus: fc.constantFrom('COMPLETED', 'COMPLETED', 'PENDING', 'NOT_STARTED', 'REFUNDED', 'ODD', undefined),
  payments: fc.array(payment, { maxLength: 4 }),
});
