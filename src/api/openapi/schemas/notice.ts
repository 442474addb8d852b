import { z } from 'zod';
import { NOTICE_TYPES } from '../../../domain/decision.ts';
import { words } from '../../words.ts';
import { fault, rowStatus } from './event.ts';
import { order } from './order.ts';
import { count, names, nextCursor, reference, time, timeOrNull } from './values.ts';

const type = names('NoticeType', NOTICE_TYPES, words.notice);
export const noticeId = z
  .string()
  .meta({
    description: 'The same over all attempts, and in the feed: do once what it asks for. It is the `webhook-id`.',
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

const answer = z.strictObject({ status: z.int(), body: z.string().describe('Its beginning.') }).nullable();

const summary = {
  id: noticeId,
  reference,
  type,
  version,
  status: rowStatus,
  attempt: count.describe('How often it was begun to be sent.'),
  fault: fault.nullable(),
  answer: answer.describe('What the shop answered last.'),
  createdAt: time,
  dueAt: timeOrNull.describe(
    'When it is tried next; null while another one of its order has its turn, at the end, and if the shop has no callback.',
  ),
  endedAt: timeOrNull,
};

const shop = z
  .strictObject({
    url: z.string().describe('Scheme, host and port of `SETTLED_SHOP_URL`: its path may be a secret.'),
    failures: z
      .strictObject({
        attempts: count.describe('How many failed in a row, over all notices.'),
        since: time,
        lastAt: time,
        fault,
        answer: answer.describe('What the shop answered last; null if it gave no answer.'),
      })
      .nullable()
      .describe('Attempts that failed since the shop took a notice last; null if none did.'),
  })
  .nullable()
  .describe('Where notices are sent; null if the shop has no callback: then they are for the feed only.');

export const noticesPage = z.strictObject({
  notices: z.array(
    z.strictObject(summary).meta({ id: 'NoticeSummary', description: 'How the sending of a notice stands.' }),
  ),
  nextCursor,
  shop,
});

export const noticeAnswer = z.strictObject({
  notice: z
    .strictObject({ ...summary, body: notice })
    .meta({ id: 'NoticeWithBody', description: 'A notice with its body as it is sent. Never its signature.' }),
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
  cursor: cursor.describe('Give it back as `after`. Keep it in the transaction that does what the notices ask for.'),
  more: z.boolean().describe('Whether there are notices behind it already.'),
});
