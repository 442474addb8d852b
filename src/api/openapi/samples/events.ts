import { createHash } from 'node:crypto';
import { words } from '../../words.ts';
import { DIAGNOSIS, HELD, PAID, REFERENCE } from './orders.ts';
import type { Samples } from './samples.ts';

const AT = '2030-01-31T12:00:00.000Z';
const BODY = Buffer.from(
  '{"id":"evt_8001","type":"payment_link.payment_status_changed","data":{"paymentLink":{"id":"pl_8001","amount":100.00,' +
    '"currency":"BRL"},"paymentStatus":"COMPLETED","latestPayment":{"id":"pay_8001","status":"COMPLETED"}}}',
);

const EVENT = {
  id: '17',
  eventId: 'evt_8001',
  type: 'payment_link.payment_status_changed',
  reference: REFERENCE,
  linkId: 'pl_8001',
  status: 'done',
  outcome: 'applied',
  rule: 'paid',
  attempt: 1,
  conflict: false,
  duplicates: 0,
  fault: null,
  reading: null,
  receivedAt: '2030-01-31T11:59:59.992Z',
  dueAt: null,
  endedAt: AT,
};

const DEAD_EVENT = {
  ...EVENT,
  eventId: 'sha256:62b8125a6f6d924ec53345b5fcd58ca3ed3f5e7d51e2e146e5f1346508acce69',
  type: null,
  status: 'dead',
  outcome: null,
  rule: null,
  fault: {
    code: 'unreadable_event',
    message:
      'Event 17 is authentic but not JSON that can be read. Look at its body, and at the payment in the ' +
      "service's panel.",
  },
};

/** What the held order asks, and what came. */
const HELD_SUM = { currency: 'BRL', asked: '100.00', balance: '60.00' };

const NOTICE_ID = 'msg_17_8f14e45fceea167a';
const NOTICE = {
  id: NOTICE_ID,
  reference: REFERENCE,
  type: 'order.paid',
  version: PAID.version,
  status: 'done',
  attempt: 1,
  fault: null,
  answer: { status: 204, body: '' },
  createdAt: AT,
  dueAt: null,
  endedAt: '2030-01-31T12:00:00.020Z',
};
const DEAD_NOTICE = {
  ...NOTICE,
  status: 'dead',
  attempt: 173,
  fault: {
    code: 'shop_refused',
    message: "The shop answered 500; only 2xx takes a notice. Look at the shop's own log.",
  },
  answer: { status: 500, body: 'the database is down' },
  endedAt: '2030-02-07T12:00:00.000Z',
};
const TOLD = { type: 'order.paid', timestamp: AT, data: { order: PAID, version: PAID.version } };

export const EVENT_SAMPLES = {
  listEvents: { 200: { events: [DEAD_EVENT], nextCursor: null } },
  showEvent: {
    200: {
      event: {
        ...EVENT,
        timestamp: '1896091199988',
        bodySha256: createHash('sha256').update(BODY).digest('hex'),
        bodyBase64: BODY.toString('base64'),
        bodyText: BODY.toString(),
        bodyDropped: false,
      },
    },
  },
  replayEvent: { 202: { event: { id: EVENT.id, status: 'pending' } } },
  listRejections: {
    200: {
      rejections: [
        {
          id: '17',
          reference: REFERENCE,
          reason: 'signature_wrong',
          count: 2,
          diagnosis: DIAGNOSIS,
          firstAt: AT,
          lastAt: '2030-01-31T12:05:00.000Z',
        },
      ],
      nextCursor: null,
    },
  },
  listAttention: {
    200: {
      summary: {
        sentence: '1 matter needs a person; the oldest has waited 2 h 10 min. Money: BRL 60.00 captured on 1 order.',
        matters: 1,
        oldestAt: AT,
        money: { orders: 1, sums: [HELD_SUM], isWhole: true },
      },
      groups: [
        {
          kind: 'hold',
          reason: 'amount_mismatch',
          concern: 'money',
          meaning: words.holdReason('amount_mismatch'),
          count: 1,
          oldestAt: AT,
          sums: [HELD_SUM],
        },
      ],
      attention: [
        {
          id: null,
          kind: 'hold',
          reason: 'amount_mismatch',
          concern: 'money',
          subject: REFERENCE,
          reference: REFERENCE,
          detail:
            'Order order-8001 (100.00 BRL) is held: a person must decide about its money, because the payment is of 60.00 BRL, ' +
            'less than the 100.00 that the order asks (amount_mismatch). Reported as paid: 60.00 BRL. See settled why ' +
            'order-8001, then decide: settled orders resolve order-8001',
          count: 1,
          openedAt: AT,
          lastAt: AT,
          order: HELD,
        },
      ],
      nextCursor: null,
    },
  },
  endAttention: { 200: { attention: { id: '17', endedAt: AT } } },
} satisfies Samples;

export const NOTICE_SAMPLES = {
  readFeed: { 200: { notices: [{ cursor: 'ZjEuMTc', id: NOTICE_ID, ...TOLD }], cursor: 'ZjEuMTc', more: false } },
  listNotices: {
    200: {
      notices: [DEAD_NOTICE],
      nextCursor: null,
      shop: { url: 'https://shop.example.com/settled', failures: null },
    },
  },
  showNotice: { 200: { notice: { ...NOTICE, body: TOLD } } },
  resendNotice: { 202: { notice: { id: NOTICE_ID, status: 'pending', dueAt: AT, waitsFor: null } } },
} satisfies Samples;
