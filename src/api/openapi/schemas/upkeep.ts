import { z } from 'zod';
import { MATTER_KINDS } from '../../../domain/matter.ts';
import { HOLD_REASONS, ORDER_STATES } from '../../../domain/order.ts';
import { ROW_STATUSES } from '../../../domain/retry.ts';
import { count, time, timeOrNull } from './values.ts';

const each = (keys: readonly string[]) => z.strictObject(Object.fromEntries(keys.map((key) => [key, count])));

export const statsAnswer = z.strictObject({
  stats: z
    .strictObject({
      orders: each(ORDER_STATES).describe('By state.'),
      events: each(ROW_STATUSES).describe('By status, readings among them.'),
      notices: each(ROW_STATUSES).describe('By status.'),
      matters: z
        .array(
          z.strictObject({
            kind: z.enum(MATTER_KINDS),
            reason: z.enum(HOLD_REASONS).nullable(),
            count,
            oldestAt: time,
          }),
        )
        .describe('What needs a person, as `/v1/attention` groups it.'),
      checks: count.describe('Links that wait to be asked about, their schedule aside.'),
      checksByClass: each(['confirm', 'hint', 'janitor']).describe('The same by the class of their requests.'),
      openings: each(['pending', 'leased', 'taken']).describe('Links that are being opened, by status.'),
      drift: count.describe('Where the service knew something else.'),
      api: z.strictObject({ slotsInUse: count.describe('Of the API budget.'), pausedUntil: timeOrNull }),
      rejections: count.describe('Deliveries that were refused as not authentic.'),
      lagSeconds: z.number().min(0).describe('How long the oldest event that is due has waited.'),
      noticesLagSeconds: z
        .number()
        .min(0)
        .nullable()
        .describe('For how long the shop should have had the oldest notice; null where it has no callback.'),
    })
    .meta({ id: 'Stats' }),
});

export const doctorAnswer = z.strictObject({
  store: z.string().describe('The database that this server works on.'),
  checks: z.array(
    z
      .strictObject({
        name: z.string().meta({ examples: ['disk'] }),
        status: z.enum(['ok', 'warning', 'failing']),
        detail: z.string().describe('What was found, and what to do about it.'),
      })
      .meta({ id: 'Check' }),
  ),
});

export const reconcileAnswer = z.strictObject({
  dryRun: z.boolean().describe('As it was asked: true says that nothing was done.'),
  links: count.describe('That can still be paid.'),
  requests: count.describe("What asking about them costs of the API's limit."),
  etaSeconds: z.number().min(0).describe('How long it takes at the most; 0 for one order.'),
});

export const backupAnswer = z.strictObject({
  backup: z.strictObject({
    path: z.string().meta({ examples: ['/data/backups/settled-2030-01-31T12-00-00-000Z.db'] }),
    bytes: count,
    notIncluded: z.string().describe('Where the secrets key is, without which the copy is of little use.'),
  }),
});

export const rotationAnswer = z.strictObject({
  rotation: z.strictObject({
    keyId: z.string().meta({ examples: ['0f3a5b7c9d1e2f40'] }),
    previousKeyId: z.string(),
    secrets: count.describe('Secrets that rest under the key now.'),
    resealed: count.describe('Those of them that rested under another key when this was asked for.'),
    keyPlace: z.string().describe('Where the key is kept: a file, or a setting.'),
    note: z.string().describe('What a person should know and do now.'),
  }),
});

export const live = z.strictObject({ live: z.literal(true) });
export const ready = z.strictObject({ ready: z.literal(true) });
export const notReady = z.strictObject({ ready: z.literal(false), reason: z.string() });
