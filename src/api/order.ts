import { z } from 'zod';
import { PAYMENTS_LISTED_MAX, type Payment } from '../domain/ledger.ts';
import { ATTENTION_KINDS } from '../domain/matter.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { FLAGS, HOLD_REASONS, LEARNED_BY, ORDER_STATES } from '../domain/order.ts';
import { matterWords } from '../explain/attention_sentences.ts';
import { words } from '../explain/glossary.ts';
import { STATE_WORDS } from '../vocabulary.ts';
import * as field from './fields.ts';

/** The order as every answer shows it. */

const customerPaid = z.strictObject({
  amount: field.anyText('As the service said it, in this currency.', '112.40'),
  currency: field.statedCurrency,
});

const stated = z.strictObject({
  amount: field.anyText('A decimal number, or what the service wrote in its place.', '30.00'),
  currency: field.statedCurrency,
});

const customer = z.strictObject({
  name: field.textOrNull('Null if it was not said.', 'Ana Souza'),
  email: field.textOrNull('Null if it was not said.', 'ana@example.com'),
});

const payment = field.component('Payment', 'A payment that was counted for an order.', {
  id: field.textOrNull("The service's id; null while it has not named one.", 'pay_8001'),
  status: z.enum(['completed', 'refunded', 'disputed']) satisfies z.ZodType<Payment['status']>,
  amount: field.amount
    .nullable()
    .describe("What counts of it for the order: the link's money. Null if settled cannot read what the service named."),
  currency: field.statedCurrency,
  customerPaid: customerPaid
    .nullable()
    .describe('What the customer paid if that differs: with interest, or in another currency. It is not owed back.'),
  stated: field.described(stated.nullable(), 'What the service named last, if that is not `amount`.', null),
  method: field.textOrNull('As the service calls it. This and what follows decide nothing.', 'CREDIT_CARD'),
  installments: z.int().min(1).nullable().describe('In how many instalments the customer pays.'),
  totalBRL: field.textOrNull('The total with interest in BRL. It counts for nothing.', '112.40'),
  customer: customer.nullable().describe('Who paid, as the service says; null after `SETTLED_KEEP_BODIES`.'),
  createdAt: field.timeOrNull.describe('When the customer began to pay.'),
  completedAt: field.timeOrNull.describe('When the service completed it. `paidAt` is when settled learned of it.'),
  availableAt: field.timeOrNull.describe('When the merchant can use the money.'),
});

const sum = z.strictObject({
  currency: field.statedCurrency,
  captured: field.amount.describe('What the service has collected, before refunds and disputes.'),
  balance: field.amount.describe('What is left of it after refunds and disputes.'),
});

const paymentsTotal = z.strictObject({
  count: field.count.meta({ description: 'The number of counted payments, listed or not.', examples: [1] }),
  sums: z.array(sum).describe('Their readable sums in each currency; the currency of the order is the first.'),
});

/** Fields of a link. */
export const link = {
  id: field.textOrNull("The service's id; null while it is not known.", 'pl_8001'),
  url: field.textOrNull('Where the customer pays; null while it is not known.', 'https://pay.example.com/pl_8001'),
  shortUrl: z.nullable(z.string()).meta({ examples: ['https://pay.example.com/s/8001'] }),
  status: field.textOrNull('`ACTIVE`, `INACTIVE` or `EXPIRED`; null while it is not known.', 'ACTIVE'),
  expiresAt: field.timeOrNull.describe('When it expires; null while that is not known.'),
};

export const holdReason = field.names('HoldReason', HOLD_REASONS, words.hold);

const hold = z.strictObject({ id: z.string(), reason: holdReason });

export const order = z
  .strictObject({
    reference: field.reference,
    state: field.names('OrderState', ORDER_STATES, (name) => STATE_WORDS[name]).meta({ examples: ['paid'] }),
    flags: field.described(z.array(field.names('Flag', FLAGS, words.flag)), 'What to know besides the state.', []),
    amount: field.amount.describe('What the order asks for.'),
    currency: field.described(z.string().min(3).max(12), 'ISO 4217, or one that `SETTLED_CURRENCY` names.', 'BRL'),
    title: field.textOrNull('As the shop gave it; null if the shop makes its link itself.', 'A chair'),
    metadata: field.described(z.looseObject({}).nullable(), 'The same; null if it gave none.', { cart: 'c-17' }),
    customer: customer.nullable().describe('Who buys, as the shop said; null after `SETTLED_KEEP_BODIES`.'),
    createdAt: field.time,
    paidAt: field.timeOrNull.describe('When settled learned that the order is paid. Never cleared.'),
    learnedBy: z.enum(LEARNED_BY).nullable().describe('How settled learned that it was paid.'),
    payment: payment.nullable().describe('The payment that paid the order, or else the first that settled counted.'),
    payments: z.array(payment).max(PAYMENTS_LISTED_MAX).describe('As counted; of more, `payment` and the newest.'),
    paymentsTotal: paymentsTotal.describe('All payments that were counted, exactly.'),
    holds: field.described(z.array(hold), 'What a person must decide, the oldest first.', []),
    hold: field.described(hold.pick({ reason: true }).nullable(), 'The oldest open hold.', null),
    link: field
      .component('Link', 'The payment link of an order.', link)
      .nullable()
      .describe('Null if it is not shown.'),
    version: z.int().min(1).describe('Grows with every change of the order that a shop can see.'),
  })
  .meta({
    id: 'Order',
    description: 'The claim of the shop to money. Notices carry it in the same form.',
  }) satisfies z.ZodType<OrderDocument>;

export const listedOrder = field.component('ListedOrder', 'An order, its open matters and holds.', {
  ...order.shape,
  attention: z.array(field.names('AttentionKind', ATTENTION_KINDS, matterWords)).describe('Of its open matters.'),
});

export type ListedOrderDocument = z.infer<typeof listedOrder>;
