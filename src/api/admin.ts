import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { CHECK_CLASSES } from '../domain/check_queue.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { OPENING_STATUSES } from '../domain/opening.ts';
import { HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { iso } from '../explain/glossary.ts';
import { transientFault } from '../fault.ts';
import type { Stats } from '../store/verbs/stats.ts';
import { count, isoOrNull, time, timeOrNull, withTimes } from './fields.ts';
import { apiNotConfigured } from './orders.ts';
import { problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation, recordAction } from './route.ts';

const each = (keys: readonly string[]) => z.strictObject(Object.fromEntries(keys.map((key) => [key, count])));
const seconds = (keys: readonly string[]) =>
  z.strictObject(Object.fromEntries(keys.map((key) => [key, z.number().min(0)])));
const slots = count.describe('Requests a minute that settled may send.');
const none = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, 0]));

const CLASSES = CHECK_CLASSES.map((one) => one.class);

const reason = z.enum(HOLD_REASONS).nullable();
const group = z.strictObject({ kind: z.enum(MATTER_KINDS), reason, count, oldestAt: time });

const stats = z
  .strictObject({
    orders: each(ORDER_STATES).describe('By state.'),
    events: each(ROW_STATUSES).describe('By status, readings among them.'),
    notices: each(ROW_STATUSES).describe('By status.'),
    matters: z.array(group).describe('What needs attention, grouped as in `/v1/attention`.'),
    checks: count.describe('Links that settled will ask about, except by the schedule.'),
    checksByClass: each(CLASSES).describe('The same by the class of their requests.'),
    checksLagSeconds: seconds(CLASSES).describe('Of the oldest due check; scheduled ones are in `janitor`.'),
    openings: each(OPENING_STATUSES).describe('Links that settled is opening, by status.'),
    drift: count.describe('Differences found between the service and settled.'),
    api: z.strictObject({ slots, slotsInUse: count.describe('Of the API budget.'), pausedUntil: timeOrNull }),
    rejections: count.describe('Deliveries that settled rejected as not authentic.'),
    lagSeconds: z.number().min(0).describe('How long the oldest due event has waited.'),
    noticesLagSeconds: z.number().min(0).nullable().describe('Of the oldest due notice; null without a callback.'),
    feedPosition: count.describe('Of the newest notice in the feed.'),
  })
  .meta({ id: 'Stats' });

export type StatsDocument = z.infer<typeof stats>;

export const showStats = operation({
  summary: 'Counts of everything',
  answers: ok('The counts.', { stats }),
  answer: async (options) => {
    const { store, clock } = options;
    return { stats: statsDocument(options, await store.stats(clock.nowMs())) };
  },
});

function statsDocument({ canTell, apiSlots }: ApiOptions, kept: Stats): StatsDocument {
  const { lagMs, api, noticesLagMs, checksLagMs, shopFailures, webhooksMissing, feed, ...counts } = kept;
  return {
    ...counts,
    // A state that no order is in is shown as 0.
    orders: { ...none(ORDER_STATES), ...counts.orders },
    matters: counts.matters.map(withTimes) as StatsDocument['matters'],
    api: { slots: apiSlots, slotsInUse: api.slotsInUse, pausedUntil: isoOrNull(api.pausedUntilMs) },
    lagSeconds: lagMs / 1000,
    // Without a callback settled sends no notice, and none is late.
    noticesLagSeconds: canTell ? noticesLagMs / 1000 : null,
    checksLagSeconds: inSeconds(checksLagMs),
    feedPosition: feed.newest,
  };
}

/** What pages load: several parts of one show the counts of the store. */
export function loadStats({ store, clock, pageLoads }: ApiOptions): Promise<Stats> {
  return pageLoads.load('stats', () => store.stats(clock.nowMs()));
}

/** The counts as the API answers them, for pages. */
export async function loadStatsDocument(options: ApiOptions): Promise<StatsDocument> {
  return statsDocument(options, await loadStats(options));
}

function inSeconds(lagsMs: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(lagsMs).map(([name, ms]) => [name, ms / 1000]));
}

const BACKUP = {
  path: '/data/backups/settled-2030-01-31T12-00-00-000Z.db',
  bytes: 266_240,
  notIncluded: notIncluded('/data/settled.db.key'),
};

const backup = z.strictObject({
  path: z.string().meta({ examples: [BACKUP.path] }),
  bytes: count,
  notIncluded: z.string().describe('Where the secrets key is. Without it, the copy is of little use.'),
});

export const makeBackup = operation({
  summary: 'Back up the database, while settled keeps running',
  description: 'One at a time. For PostgreSQL use `pg_dump`: settled does not copy it.',
  answers: { 201: answer('The copy is on the disk.', { backup }) },
  problems: { 409: ['backup_not_ours_to_make'] },
  answer: async (options, { by }, response) => {
    const { storeAddress, secretsKeyPlace } = options;
    if (storeAddress.engine === 'postgres') {
      const detail =
        `settled does not copy ${storeAddress.name}. Use pg_dump, or your provider's backups: see Back up in ` +
        `docs/postgres.md. The secrets key is not in them. It is kept in ${secretsKeyPlace}; keep a copy apart from the ` +
        'backups.';
      throw problem(409, 'backup_not_ours_to_make', detail);
    }
    // Each takes the room of a whole database and the time of the disk that deliveries wait for.
    if (backingUp.has(options)) {
      throw transientFault('store_busy', 'settled is already writing a backup. Try again when it is complete.');
    }
    backingUp.add(options);
    try {
      await recordAction(options, by, { action: 'backup', subject: '' });
      const written = await writeBackup(options, storeAddress.path);
      response.status(201);
      return { backup: written };
    } finally {
      backingUp.delete(options);
    }
  },
});

/** The APIs of this process that are writing a backup now. */
const backingUp = new WeakSet<ApiOptions>();

async function writeBackup({ store, clock, secretsKeyPlace }: ApiOptions, storePath: string): Promise<object> {
  const folder = join(dirname(storePath), 'backups');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeDrafts(folder);
  const path = join(folder, `settled-${iso(clock.nowMs()).replace(/[:.]/g, '-')}.db`);
  const { bytes } = await store.backup({ path });
  return { path, bytes, notIncluded: notIncluded(secretsKeyPlace) };
}

function notIncluded(keyPlace: string): string {
  return `The secrets key is not in the backup. It is kept in ${keyPlace}; keep a copy apart from the backup.`;
}

/** Removes what a process left that was killed while it wrote a backup: only one backup is written at a time. */
async function removeDrafts(folder: string): Promise<void> {
  const drafts = (await readdir(folder)).filter((name) => /^settled-.*\.db\.part(?:-journal)?$/.test(name));
  for (const draft of drafts) await rm(join(folder, draft), { force: true });
}

/** Free bytes where the database is; null if the system does not say. */
export async function freeBytes(storePath: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dirname(storePath));
    return bavail * bsize;
  } catch {
    return null;
  }
}

const ROTATION = {
  keyId: '0f3a5b7c9d1e2f40',
  previousKeyId: 'b5dada6b58dd18a7',
  secrets: 265,
  resealed: 265,
  keyPlace: '/data/settled.db.key',
  note: 'The new key is in /data/settled.db.key: keep a copy of it, separate from the backups.',
};

const rotation = z.strictObject({
  keyId: z.string().meta({ examples: [ROTATION.keyId] }),
  previousKeyId: z.string(),
  secrets: count.describe('Secrets that the key encrypts now.'),
  resealed: count.describe('Those of them that another key encrypted before this request.'),
  keyPlace: z.string().describe('Where the key is kept: a file, or a setting.'),
  note: z.string().describe('What you should know and do now.'),
});

export type RotationDocument = z.infer<typeof rotation>;

export const rotateKey = operation({
  summary: 'Change the secrets key, while settled keeps running',
  description: 'It answers when the new key encrypts every secret. The previous one is kept in a file of its own.',
  answers: ok('The key `keyId` encrypts all secrets.', { rotation }),
  problems: { 409: ['key_not_ours_to_change'] },
  answer: async (options, { by }) => {
    const { rotation } = options;
    if (rotation.mayRotate()) await recordAction(options, by, { action: 'rotate_key', subject: '' });
    const rotated = await rotation.rotate();
    if (rotated !== null) return { rotation: rotated };
    const how = options.storeAddress.engine === 'postgres' ? CHANGE_AT_REPLICAS : CHANGE_HERE;
    const detail = `The secrets key comes from SETTLED_SECRETS_KEY, which settled cannot change. ${how}`;
    throw problem(409, 'key_not_ours_to_change', detail);
  },
});

const CHANGE_HERE =
  'Make a new one (openssl rand -base64 32), set SETTLED_SECRETS_KEY to it and SETTLED_SECRETS_KEY_PREVIOUS to the current ' +
  'key, and restart settled: it then seals all secrets under the new one. See Keys in docs/operations.md.';
/** While some replicas have a key that the others do not know, deliveries of new links fail. */
const CHANGE_AT_REPLICAS =
  'Make a new one (openssl rand -base64 32) and give it to every replica as SETTLED_SECRETS_KEY_PREVIOUS, restarting one after ' +
  'the other. Then give every replica the new one as SETTLED_SECRETS_KEY and the current key as ' +
  'SETTLED_SECRETS_KEY_PREVIOUS, in the same way: they then seal all secrets under the new one. See Change the secrets key ' +
  'in docs/postgres.md.';

export const reconcile = operation({
  summary: 'Ask the service about every link that can still be paid',
  description: 'One request for each, as the API budget allows. About one order: `POST /v1/orders/{reference}/check`.',
  body: z.strictObject({ dryRun: z.boolean().optional().describe('Only count.') }),
  answers: ok('What it costs.', {
    dryRun: z.boolean().describe('As in the request: if true, settled did nothing.'),
    links: count.describe('Links that can still be paid.'),
    etaSeconds: z.number().min(0).describe('How long it takes at most.'),
  }),
  problems: { 503: ['api_not_configured'] },
  example: { dryRun: true },
  answer: async (options, { body: { dryRun = false }, by }) => {
    const { asking } = options;
    if (asking === null) throw apiNotConfigured();
    if (!dryRun) await recordAction(options, by, { action: 'catch_up', subject: '' });
    const { links, etaMs } = await asking.reconciler.catchUp({ dryRun });
    return { dryRun, links, etaSeconds: etaMs / 1000 };
  },
});
