import { z } from 'zod';
import { CONCERNS, type Concern, MATTER_KINDS } from '../../../domain/matter.ts';
import { words } from '../../words.ts';
import { rowId } from './event.ts';
import { holdReason, order } from './order.ts';
import { amount, count, names, nextCursor, reference, statedCurrency, time, timeOrNull } from './values.ts';

const MEANINGS: Readonly<Record<Concern, string>> = {
  money: 'money is in a wrong state, or may be',
  unsettled: 'something authentic came and was not counted; it may have told of money',
  shop: 'the shop does not know how its orders stand',
  service: 'the service cannot be asked or heard as it should be',
  link: 'an order has no link at which it can be paid',
};

const kind = names('MatterKind', MATTER_KINDS, words.matter);
const concern = names('Concern', CONCERNS, (name) => MEANINGS[name]);
const reason = holdReason.nullable().describe('Of a hold: why, for the oldest hold of its order.');

const sums = z.array(
  z
    .strictObject({
      currency: statedCurrency,
      asked: amount.describe('What the orders ask in this currency.'),
      balance: amount.describe('What was captured on them and has not gone back.'),
    })
    .meta({ id: 'MatterSum' }),
);

const summary = z
  .strictObject({
    sentence: z.string().describe('The answer for a person. "Nothing needs a person." is said only if that is so.'),
    matters: count.describe('That the filters let through.'),
    oldestAt: timeOrNull,
    money: z
      .strictObject({
        orders: count.describe('Orders whose money needs a person, each once.'),
        sums,
        isWhole: z
          .boolean()
          .describe('False if there are more than 10 000 such matters: then orders and sums are of 10 000 of them.'),
      })
      .describe('Over the matters of the concern `money`.'),
  })
  .meta({ id: 'MatterSummary' });

const group = z
  .strictObject({
    kind,
    reason,
    concern: concern.nullable(),
    meaning: z.string().describe('What it means, for a person.'),
    count,
    oldestAt: time.describe('Since when the oldest of them has waited.'),
    sums: sums.describe('Of their orders, if they are about money.'),
  })
  .meta({ id: 'MatterGroup', description: 'Matters that are alike: of one kind and, for holds, of one reason.' });

const matter = z
  .strictObject({
    id: rowId
      .nullable()
      .describe('Ends it: `POST /v1/attention/{id}/end`. Null for a hold, which ends when it is decided.'),
    kind,
    reason,
    concern: concern.nullable(),
    subject: z.string().describe('What it is about: with the kind it names the matter.'),
    reference: reference.nullable(),
    detail: z.string().describe('What happened, and what to do.'),
    count: count.describe('How often it was raised; of a hold, how many of its order are open.'),
    openedAt: time,
    lastAt: time,
    order: order.nullable().describe('Its order as it stands now.'),
  })
  .meta({ id: 'Matter', description: 'Something that needs a person.' });

export const attentionPage = z.strictObject({
  summary,
  groups: z.array(group).describe('All that the filters let through, money first.'),
  attention: z.array(matter).describe('A page of them: money first, then the oldest first.'),
  nextCursor,
});

export const endAnswer = z.strictObject({ attention: z.strictObject({ id: rowId, endedAt: time }) });
