import type { z } from 'zod';
import type { orderAnswer } from '../schemas/order.ts';
import { order } from '../schemas/order.ts';
import type { Samples } from './samples.ts';

type Order = z.infer<typeof orderAnswer>['order'];

const [example] = (order.meta()?.examples ?? []) as Order[];
/** The order of all samples, once it is paid. */
export const PAID = example as Order;
/** The order that stands in the paths of the sample calls. */
export const { reference: REFERENCE } = PAID;

const OPEN: Order = {
  ...PAID,
  state: 'awaiting_payment',
  paidAt: null,
  learnedBy: null,
  payment: null,
  payments: [],
  paymentsTotal: { count: 0, sums: [] },
  version: 1,
};
const UNKNOWN_LINK = { id: null, url: null, shortUrl: null, status: null };
const RESERVED: Order = { ...OPEN, reference: 'order-8101', link: UNKNOWN_LINK };
const RESERVED_LINK = {
  ...UNKNOWN_LINK,
  webhookUrl: 'https://hooks.example.com/hooks/Zm9vYmFyYmF6cXV4Y29ycGdlZ2FycGx5',
};
const SMALL = { id: 'pay_8001', status: 'completed', amount: '60.00', currency: 'BRL', customerPaid: null } as const;
const ACCEPTED: Order = {
  ...PAID,
  flags: ['underpaid'],
  learnedBy: 'person',
  payment: SMALL,
  payments: [SMALL],
  paymentsTotal: { count: 1, sums: [{ currency: 'BRL', captured: '60.00', balance: '60.00' }] },
  version: 3,
};
/** What came is less than the order asks. */
export const HELD: Order = {
  ...ACCEPTED,
  state: 'held',
  flags: [],
  paidAt: null,
  learnedBy: null,
  holds: [{ id: 'hold_2', reason: 'amount_mismatch' }],
  hold: { reason: 'amount_mismatch' },
  version: 2,
};

const TIMELINE = {
  order: PAID,
  answer:
    `Order ${REFERENCE} (100.00 BRL) is paid. The service reported 100.00 BRL in an authentic webhook; settled marked it ` +
    'paid at 2030-01-31T12:00:00.000Z.',
  entries: [
    { at: '2030-01-31T11:58:20.131Z', kind: 'registration', summary: 'link pl_8001 opened', details: [] },
    {
      at: '2030-01-31T11:59:59.992Z',
      kind: 'delivery',
      summary: 'authentic, payment_link.payment_status_changed: done, applied (rule paid)',
      details: ["event 17, the service's id evt_8001"],
    },
    {
      at: '2030-01-31T12:00:00.000Z',
      kind: 'decision',
      summary: 'awaiting_payment → paid: the payment is completed and agrees with the order (rule paid)',
      details: [
        'by event 17',
        'ledger: captured 100.00 BRL, payment pay_8001',
        'became paid; this is written once, whatever follows',
        'notice order.paid',
      ],
    },
  ],
  next: [
    'The service is asked at 2030-02-01T12:00:00.000Z, in 1 d, as the schedule has it: refunds, disputes and second ' +
      'payments have no webhook.',
  ],
};

/** What a delivery turned out to be that was signed with another secret. */
export const DIAGNOSIS = {
  code: 'wrong_secret_or_altered_body',
  details: { clockAheadMs: 4 },
  answer: 'The signature matches neither this body under this secret nor any of the usual mistakes with them.',
  advice: ['Either the secret is of another link, or the body was changed by more than a character.'],
};

export const ORDER_SAMPLES = {
  openOrder: {
    201: { order: OPEN },
    200: { order: OPEN },
    202: {
      order: { ...OPEN, link: null },
      opening: {
        detail: 'The service answered 503. The next attempt to open it is at 2030-01-31T11:58:25.000Z.',
        nextAttemptAt: '2030-01-31T11:58:25.000Z',
      },
    },
  },
  registerLink: {
    201: { link: { ...RESERVED_LINK, webhookSecret: 'c2VjcmV0IHRoYXQgc2V0dGxlZCBtYWRlIGZvciB0aGlz' }, order: RESERVED },
    200: { link: RESERVED_LINK, order: RESERVED },
  },
  listOrders: { 200: { orders: [{ ...OPEN, attention: [] }], nextCursor: 'azEyMw' } },
  showOrder: { 200: { order: PAID } },
  showTimeline: { 200: TIMELINE },
  checkOrder: { 200: { order: OPEN, service: { linkStatus: 'ACTIVE', paymentStatus: 'NOT_STARTED' } } },
  cancelOrder: { 200: { order: { ...OPEN, state: 'cancelled', version: 2 } } },
  adoptLink: {
    200: {
      order: OPEN,
      note: 'settled asked for this link itself, and its answer was lost: its webhooks are taken as of any other.',
    },
  },
  verifyDelivery: { 200: { verdict: { ...DIAGNOSIS, authentic: false } } },
  resolveOrder: { 200: { order: ACCEPTED } },
} satisfies Samples;
