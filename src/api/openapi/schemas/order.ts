import { z } from 'zod';
import { PAYMENTS_LISTED_MAX, type Payment } from '../../../domain/ledger.ts';
import type { OrderDocument } from '../../../domain/notice.ts';
import {
  ATTENTION_KINDS,
  FLAGS,
  HOLD_REASONS,
  type LearnedBy,
  ORDER_STATES,
  type OrderState,
} from '../../../domain/order.ts';
import { ENTRY_KINDS } from '../../chronicle.ts';
import { words } from '../../words.ts';
import { amount, currency, names, nextCursor, reference, statedCurrency, time, timeOrNull } from './values.ts';

const STATES: Readonly<Record<OrderState, string>> = {
  awaiting_payment: 'nobody has begun to pay',
  payment_pending: 'the customer has begun to pay',
  paid: 'its money is captured: deliver',
  held: 'money came that a person must decide about',
  expired: 'its link expired unpaid; a payment that comes all the same still pays it',
  cancelled: 'nobody is to pay for it',
  refunded: 'it was paid, and the money went back',
  disputed: "it was paid, and the customer's bank took the money back; it may return",
};

const state = names('OrderState', ORDER_STATES, (name) => STATES[name]);
const flag = names('Flag', FLAGS, words.flag);
export const holdReason = names('HoldReason', HOLD_REASONS, words.hold);

const payment = z
  .strictObject({
    id: z
      .string()
      .nullable()
      .meta({ description: "The service's id; null where it has not named one so far.", examples: ['pay_8001'] }),
    status: z.enum(['completed', 'refunded', 'disputed']) satisfies z.ZodType<Payment['status']>,
    amount: amount.describe("What counts of it for the order: the link's money."),
    currency: statedCurrency,
    customerPaid: z
      .strictObject({
        amount: z.string().meta({ description: 'As the service said it, in this currency.', examples: ['112.40'] }),
        currency: statedCurrency,
      })
      .nullable()
      .describe(
        'What the customer paid, if that is something else: more with instalment interest, or another currency that the ' +
          'service converted. It is not owed back. Null if the service said nothing else.',
      ),
  })
  .meta({ id: 'Payment', description: 'A payment that was counted for an order.' });

const EXAMPLE_PAYMENT = {
  id: 'pay_8001',
  status: 'completed',
  amount: '100.00',
  currency: 'BRL',
  customerPaid: { amount: '112.40', currency: 'BRL' },
} as const;

const link = {
  id: z
    .string()
    .nullable()
    .meta({ description: "The service's id; null while it is not known.", examples: ['pl_8001'] }),
  url: z
    .string()
    .nullable()
    .meta({
      description: 'Where the customer pays; null while it is not known.',
      examples: ['https://pay.example.com/pl_8001'],
    }),
  shortUrl: z
    .string()
    .nullable()
    .meta({ examples: ['https://pay.example.com/s/8001'] }),
  status: z
    .string()
    .nullable()
    .meta({
      description: 'As the service calls it: `ACTIVE`, `INACTIVE` or `EXPIRED`; null while it is not known.',
      examples: ['ACTIVE'],
    }),
};

const orderLink = z.strictObject(link).meta({ id: 'Link', description: 'The payment link of an order.' });

export const order = z
  .strictObject({
    reference,
    state,
    flags: z.array(flag).describe('What a person should know beside the state.'),
    amount: amount.describe('What the order costs.'),
    currency,
    createdAt: time,
    paidAt: timeOrNull.describe('When the order became paid. Never cleared.'),
    learnedBy: (z.enum(['webhook', 'reconciliation', 'person']) satisfies z.ZodType<LearnedBy>)
      .nullable()
      .describe('By which door settled learned that it was paid.'),
    payment: payment.nullable().describe('The payment by which the order became paid, or the first that was counted.'),
    payments: z
      .array(payment)
      .max(PAYMENTS_LISTED_MAX)
      .describe(
        `The payments that were counted, in the order in which they were. Of more than ${PAYMENTS_LISTED_MAX}, the one of ` +
          '`payment` and the newest.',
      ),
    paymentsTotal: z
      .strictObject({
        count: z.int().min(0).describe('How many were counted, listed or not.'),
        sums: z
          .array(
            z.strictObject({
              currency: statedCurrency,
              captured: amount.describe('What they brought.'),
              balance: amount.describe('What is left of it after refunds and disputes.'),
            }),
          )
          .describe('What they come to in each currency; the currency of the order is the first.'),
      })
      .describe('All payments that were counted, exactly.'),
    holds: z
      .array(z.strictObject({ id: z.string(), reason: holdReason }))
      .describe('What a person must decide, the oldest first.'),
    hold: z.strictObject({ reason: holdReason }).nullable().describe('The oldest open hold.'),
    link: orderLink.nullable().describe('Null while it is being opened, and where it is withheld.'),
    version: z.int().min(1).describe('Grows with every change of the order that a shop can see.'),
  })
  .meta({
    id: 'Order',
    description: 'The claim of the shop to money. Notices carry it in the same form.',
    examples: [
      {
        reference: 'order-8001',
        state: 'paid',
        flags: [],
        amount: '100.00',
        currency: 'BRL',
        createdAt: '2030-01-31T11:58:20.114Z',
        paidAt: '2030-01-31T12:00:00.000Z',
        learnedBy: 'webhook',
        payment: EXAMPLE_PAYMENT,
        payments: [EXAMPLE_PAYMENT],
        paymentsTotal: { count: 1, sums: [{ currency: 'BRL', captured: '100.00', balance: '100.00' }] },
        holds: [],
        hold: null,
        link: {
          id: 'pl_8001',
          url: 'https://pay.example.com/pl_8001',
          shortUrl: 'https://pay.example.com/s/8001',
          status: 'ACTIVE',
        },
        version: 2,
      },
    ],
  }) satisfies z.ZodType<OrderDocument>;

export const orderAnswer = z.strictObject({ order });

const listedOrder = z
  .strictObject({
    ...order.shape,
    attention: z
      .array(names('AttentionKind', ATTENTION_KINDS, words.attention))
      .describe('The kinds of its open matters, holds aside.'),
  })
  .meta({ id: 'ListedOrder', description: 'An order, and what of it needs a person.' });

export const ordersPage = z.strictObject({ orders: z.array(listedOrder), nextCursor });

export const openingAnswer = z.strictObject({
  order,
  opening: z.strictObject({
    detail: z.string().describe('Why the last attempt to open the link failed, and when the next one is.'),
    nextAttemptAt: timeOrNull.describe('Null while an attempt is under way.'),
  }),
});

export const checkAnswer = z.strictObject({
  order: order.describe('As it stands after what the service said.'),
  service: z.strictObject({
    linkStatus: link.status.unwrap(),
    paymentStatus: z
      .string()
      .nullable()
      .meta({
        description: '`NOT_STARTED`, `PENDING` or `COMPLETED`; null where the service named none.',
        examples: ['NOT_STARTED'],
      }),
  }),
});

export const adoptAnswer = z.strictObject({
  order,
  note: z.string().describe("Whether the link is settled's own, and what follows for its webhooks."),
});

export const linkAnswer = z.strictObject({
  link: z.strictObject({
    ...link,
    webhookUrl: z
      .string()
      .meta({
        description: 'Give it to the service as `webhookUrl`.',
        examples: ['https://hooks.example.com/hooks/Zm9vYmFyYmF6cXV4'],
      }),
    webhookSecret: z
      .string()
      .optional()
      .meta({
        description:
          'Give it to the service as `webhookSecret`. It is shown this once: in the answer that made the link, where the ' +
          'request brought none.',
        examples: ['c2VjcmV0IHRoYXQgc2V0dGxlZCBtYWRl'],
      }),
  }),
  order,
});

export const timelineAnswer = z.strictObject({
  order,
  answer: z.string().describe('A few sentences: whether the order is paid, and why or why not.'),
  entries: z
    .array(
      z
        .strictObject({ at: time, kind: z.enum(ENTRY_KINDS), summary: z.string(), details: z.array(z.string()) })
        .meta({ id: 'TimelineEntry', description: 'One thing that happened to an order.' }),
    )
    .describe('Everything known of the order, in order of time: at most 500 of a kind, the newest.'),
  next: z.array(z.string()).describe('What happens by itself from here on, and what a person should do.'),
});
