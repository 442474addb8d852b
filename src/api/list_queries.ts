import { z } from 'zod';
import { MATTER_KINDS } from '../domain/matter.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { reference, text, time } from './requests.ts';

/** What can be asked of lists. */

/** Of a query: digits without a sign or leading zeros. */
function wholeNumber(min: number, max: number) {
  return z
    .string()
    .refine((digits) => /^(0|[1-9][0-9]{0,8})$/.test(digits) && Number(digits) >= min && Number(digits) <= max, {
      message: `must be a whole number from ${min} to ${max}`,
    })
    .transform(Number)
    .meta({ type: 'integer', minimum: min, maximum: max });
}

const LIMIT_MAX = 200;
const page = {
  limit: wholeNumber(1, LIMIT_MAX).default(50).describe('Rows of a page.'),
  cursor: z.string().optional().describe('The `nextCursor` of the page before, unchanged.'),
};
const ofOrder = { reference: reference.optional().describe('Only those of this order.') };
const ofStatus = { status: z.enum(ROW_STATUSES).optional().describe('Only those that stand so.') };
const since = { since: time.optional().describe('Only those since then.') };
export const ordersQuery = z.strictObject({
  ...page,
  state: z.enum(ORDER_STATES).optional().describe('Only those in this state.'),
  q: text(128).optional().describe('A part of the reference, or a whole link id or payment id.'),
  since: time.optional().describe('Only those created since then.'),
  until: time.optional().describe('Only those created until then.'),
});
export const eventsQuery = z.strictObject({ ...page, ...ofStatus, ...ofOrder, ...since });
export const rejectionsQuery = z.strictObject({ ...page, ...ofOrder });
export const noticesQuery = z.strictObject({ ...page, ...ofStatus, ...ofOrder, ...since });

const FEED_MAX = { limit: 1_000, waitSeconds: 30 } as const;
export const feedQuery = z.strictObject({
  after: z
    .string()
    .optional()
    .describe(
      'The `cursor` up to which everything was read. Without it: from the beginning. `now`: from here on; the answer has no ' +
        'notices, and the cursor to go on from.',
    ),
  limit: wholeNumber(1, FEED_MAX.limit).default(100).describe('Notices of a page.'),
  wait: wholeNumber(0, FEED_MAX.waitSeconds)
    .default(0)
    .describe('Where there is nothing, seconds to wait for something.'),
});
export const tailQuery = z.strictObject({ reference: reference.optional() });
export const attentionQuery = z.strictObject({
  ...page,
  kind: z.enum(MATTER_KINDS).optional().describe('Only those of this kind.'),
  state: z.enum(ORDER_STATES).optional().describe('Only those of orders in this state.'),
});
