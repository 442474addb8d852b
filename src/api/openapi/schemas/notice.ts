import { z } from 'zod';
import { NOTICE_TYPES } from '../../../domain/decision.ts';
import { words } from '../../words.ts';
import { fault, rowStatus } from './event.ts';
import { order } from './order.ts';
import { count, names, nextCursor, reference, time, timeOrNull } from './values.ts';

const type = names('NoticeType', NOTICE_TYPES, words.notice);
export const noticeId = z.string().meta({
  description:
    'The same over all attempts, and in the feed: do once what it asks for. It is the `webhook-id`.',
  examples: ['msg_17_8f14e45fceea167a'],
});
const version = z.int().min(1).describe('Of the order, when this happened.');
const cursor = z.string().meta({ examples: ['ZjEuMTc'] });

const said = {
  type,
  timestamp: time.describe('When it happened.'),
  data: z.strictObject({ order: order.describe('As it stood right after that.'), version }),
};

/** The body of a notice, as the shop gets it. */
export const notice = z
  .strictObject(said)
  .meta({ id: 'Notice', description: 'What happened to an order, as the shop is told.' });

const summary = {
  id: noticeId,
  reference,
  type,
  version,
  status: rowStatus,
  attempt: count.describe('How often it was begun to be sent.'),
  fault: fault.nullable(),
  answer: z
    .strictObject({ status: z.int(), body: z.string().describe('Its beginning.') })
    .nullable()
    .describe('What the shop answered last.'),
  createdAt: time,
  dueAt: timeOrNull.describe(
    'When it is tried next; null where another one of its order has its turn, and at the end.',
  ),
  endedAt: timeOrNull,
};

export const noticesPage = z.strictObject({
  notices: z.array(
    z.strictObject(summary).meta({ id: 'NoticeSummary', description: 'How the sending of a notice stands.' }),
  ),
  nextCursor,
});

export const noticeAnswer = z.strictObject({
  notice: z.strictObject({ ...summary, body: notice }).meta({
    id: 'NoticeWithBody',
    description: 'A notice with its body as it is sent. Never its signature.',
  }),
});

export const resendAnswer = z.strictObject({
  notice: z.strictObject({
    id: noticeId,
    status: z.literal('pending'),
    dueAt: timeOrNull.describe('When it is sent; null where another one of its order has its turn.'),
    waitsFor: noticeId.nullable().describe('The notice that has its turn; this one is sent after it.'),
  }),
});

export const feedPage = z.strictObject({
  notices: z
    .array(
      z
        .strictObject({ cursor: cursor.describe('The place right after this one.'), id: noticeId, ...said })
        .meta({ id: 'FeedNotice', description: 'A notice at its place in the feed.' }),
    )
    .describe('Oldest first.'),
  cursor: cursor.describe(
    'Give it back as `after`. Keep it in the transaction that does what the notices ask for.',
  ),
  more: z.boolean().describe('Whether there are notices behind it already.'),
});
