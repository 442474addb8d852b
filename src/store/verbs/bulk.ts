import type { Actor } from '../../domain/access.ts';
import type { Claim } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { findToken } from './access.ts';
import { type Author, writeAudit } from './audit.ts';
import { type BulkAction, type BulkOutcome, type BulkSelection, DO, LIST_ITEMS, selectKeys } from './bulk_actions.ts';
import { KEY_MAX } from './list_pages.ts';

/**
 * Work on all rows that match a filter. A run lists its rows when it starts; settled then carries it out row by row,
 * each by the verb for one row. On a shared store one replica works at a run; if that replica goes away, another
 * continues.
 */

export type BulkRun = {
  key: number;
  action: BulkAction;
  /** The request as JSON. */
  filter: string;
  reason: string | null;
  author: Actor | null;
  status: 'running' | 'done' | 'cancelled';
  /** Why settled cancelled the run; null if it did not. */
  detail: 'token_ended' | null;
  total: number;
  /** Whether more rows matched than one run takes. */
  isMore: boolean;
  changed: number;
  skipped: number;
  failed: number;
  startedAtMs: number;
  endedAtMs: number | null;
};

export type ClaimedBulk = Pick<BulkRun, 'key' | 'action' | 'filter' | 'reason' | 'author'> & {
  items: readonly number[];
};

/** `filter`: the request as JSON, for people and for what an action still compares with it. */
type StartedBulk = Pick<BulkRun, 'action' | 'filter' | 'reason' | 'isMore'> & {
  keys: readonly number[];
  by: Author | null;
  atMs: number;
};

type BulkItem = { run: ClaimedBulk; itemKey: number; auditKey: Uint8Array; nowMs: number };

const INSERT_RUN = statement(`
  INSERT INTO bulk_run (action, filter, reason, author, token_sha256, total, is_more, started_at_ms)
  VALUES (@action, @filter, @reason, @author, @tokenSha256, @total, @isMore, @atMs) RETURNING key`);
const END_IF_EMPTY = statement(`
  UPDATE bulk_run SET status = 'done', ended_at_ms = @nowMs, holder = NULL WHERE key = @key AND status = 'running'
    AND NOT EXISTS (SELECT 1 FROM bulk_item WHERE run_key = @key AND outcome IS NULL)`);
const CANCEL = statement(`
  UPDATE bulk_run SET status = 'cancelled', detail = @detail, ended_at_ms = @atMs, holder = NULL
  WHERE key = @key AND status = 'running'`);
// Skips a run that another replica is claiming now. On SQLite any earlier holder of a lease has ended.
const FIND_FREE = statement(`
  SELECT key, action, filter, reason, author, token_sha256 AS tokenSha256 FROM bulk_run
  WHERE status = 'running' AND (due_at_ms <= @nowMs OR holder = @replica OR @isAlone::boolean) ORDER BY key LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED`);
const LEASE = statement('UPDATE bulk_run SET holder = @replica, due_at_ms = @untilMs WHERE key = @key');
const NEXT_ITEMS = statement(`
  SELECT item_key AS itemKey FROM bulk_item WHERE run_key = @key AND outcome IS NULL ORDER BY item_key LIMIT @limit`);
// Locks the run too: once a cancel is answered, no row changes any more.
const LOCK_ITEM = statement(`
  SELECT i.item_key AS itemKey FROM bulk_item i JOIN bulk_run r ON r.key = i.run_key
  WHERE i.run_key = @key AND i.item_key = @itemKey AND i.outcome IS NULL AND r.status = 'running' AND r.holder = @replica
  FOR NO KEY UPDATE OF i FOR SHARE OF r`);
const END_ITEM = statement(`
  UPDATE bulk_item SET outcome = @outcome, detail = @detail WHERE run_key = @key AND item_key = @itemKey AND outcome IS NULL`);

export const bulkVerbs = {
  /** Starts a run over the rows `keys`. */
  *startBulk(tx: Transaction, { action, filter, reason, keys, isMore, by, atMs }: StartedBulk): Work<BulkRun> {
    const author = by === null ? null : JSON.stringify(actorOf(by));
    const tokenSha256 = by?.tokenSha256 ?? null;
    const values = { action, filter, reason, author, tokenSha256, total: keys.length, isMore, atMs };
    const { key } = (yield* tx.one<{ key: number }>(INSERT_RUN, values)) as { key: number };
    tx.send(LIST_ITEMS[action], { key, keys });
    tx.send(END_IF_EMPTY, { key, nowMs: atMs });
    const run = (yield* findBulk(tx, key)) as BulkRun;
    const after = { action, filter: JSON.parse(filter) as unknown, total: keys.length };
    yield* writeAudit(tx, by, { action: 'start_bulk', subject: String(key), reason, after }, atMs);
    return run;
  },
  /** Cancels a run; what it did stays. `ended`: it had ended before. */
  *cancelBulk(
    tx: Transaction,
    { key, by, atMs }: { key: number; by: Author | null; atMs: number },
  ): Work<BulkRun | 'ended' | null> {
    const cancelled = yield* tx.run(CANCEL, { key, detail: null, atMs });
    const run = yield* findBulk(tx, key);
    if (run === null || cancelled === 0) return run === null ? null : 'ended';
    const { changed, skipped, failed } = run;
    const change = { action: 'cancel_bulk', subject: String(key), after: { changed, skipped, failed } } as const;
    yield* writeAudit(tx, by, change, atMs);
    return run;
  },
  /**
   * Leases the oldest run whose lease is free or ours, and lists its next rows. Null if there is none. Cancels runs
   * whose token was revoked or has expired.
   */
  *claimBulk(tx: Transaction, { limit, nowMs, leaseMs }: Claim): Work<ClaimedBulk | null> {
    const { replica } = tx;
    const run = yield* findFree(tx, nowMs);
    if (run === null) return null;
    const { key } = run;
    tx.send(LEASE, { key, replica, untilMs: nowMs + leaseMs });
    const items = (yield* tx.all<{ itemKey: number }>(NEXT_ITEMS, { key, limit })).map(({ itemKey }) => itemKey);
    if (items.length === 0) tx.send(END_IF_EMPTY, { key, nowMs });
    return { ...run, author: readActor(run.author), items };
  },
  /**
   * Carries a run out for one row and records the outcome, in one transaction, so that no row is done twice even if the
   * process crashes. `lost`: the run was cancelled, the row is done, or another replica has the lease. The last row
   * ends the run.
   */
  *carryOutBulk(tx: Transaction, item: BulkItem): Work<BulkOutcome | 'lost'> {
    if (!(yield* lockItem(tx, item))) return 'lost';
    const { run, itemKey, auditKey, nowMs } = item;
    const by: Author | null = run.author === null ? null : { ...run.author, auditKey, bulk: String(run.key) };
    const ended = yield* DO[run.action](tx, { itemKey, by, filter: run.filter, reason: run.reason ?? '', nowMs });
    endItem(tx, item, ended);
    return ended;
  },
  /** Records a failure for one row, so that the run continues with the others. `lost`: as in `carryOutBulk`. */
  *failBulk(tx: Transaction, item: BulkItem & { detail: string }): Work<'failed' | 'lost'> {
    if (!(yield* lockItem(tx, item))) return 'lost';
    endItem(tx, item, { outcome: 'failed', detail: item.detail });
    return 'failed';
  },
};

function* lockItem(tx: Transaction, { run: { key }, itemKey }: BulkItem): Work<boolean> {
  return (yield* tx.one(LOCK_ITEM, { key, itemKey, replica: tx.replica })) !== undefined;
}

function endItem(tx: Transaction, { run: { key }, itemKey, nowMs }: BulkItem, ended: BulkOutcome): void {
  tx.send(END_ITEM, { key, itemKey, ...ended });
  tx.send(END_IF_EMPTY, { key, nowMs });
}

type RunToDo = Omit<ClaimedBulk, 'author' | 'items'> & { author: string | null };

/** Finds a free run, and cancels runs whose author's token is no longer valid. */
function* findFree(tx: Transaction, nowMs: number): Work<RunToDo | null> {
  for (;;) {
    type Row = RunToDo & { tokenSha256: Uint8Array | null };
    const found = yield* tx.one<Row>(FIND_FREE, { nowMs, replica: tx.replica, isAlone: !tx.hasReplicas });
    if (found === undefined) return null;
    const { tokenSha256, ...run } = found;
    if (tokenSha256 === null || (yield* findToken(tx, { sha256: tokenSha256, nowMs })) !== null) return run;
    yield* tx.run(CANCEL, { key: run.key, detail: 'token_ended', atMs: nowMs });
  }
}

function actorOf({ name, role, origin, address }: Author): Actor {
  return { name, role, origin, address };
}

function readActor(author: string | null): Actor | null {
  return author === null ? null : (JSON.parse(author) as Actor);
}

const counted = (outcome: string) =>
  `(SELECT count(*) FROM bulk_item i WHERE i.run_key = r.key AND i.outcome = '${outcome}') AS ${outcome}`;
const RUN = `SELECT r.key, r.action, r.filter, r.reason, r.author, r.status, r.detail, r.total, r.is_more AS isMore,
  r.started_at_ms AS startedAtMs, r.ended_at_ms AS endedAtMs, ${['changed', 'skipped', 'failed'].map(counted).join(', ')}
  FROM bulk_run r`;
const RUNS = statement(`${RUN} WHERE r.key < @before ORDER BY r.key DESC LIMIT @limit`);
const ONE_RUN = statement(`${RUN} WHERE r.key = @key`);
type RunRow = Omit<BulkRun, 'author'> & { author: string | null };

const readRow = ({ author, ...run }: RunRow): BulkRun => ({ ...run, author: readActor(author) });

function* findBulk(tx: Transaction, key: number): Work<BulkRun | null> {
  const row = yield* tx.one<RunRow>(ONE_RUN, { key });
  return row === undefined ? null : readRow(row);
}

export const bulkQueries = {
  /** The keys of the rows that match a filter, at most `limit`. `isMore`: there are more. */
  *findBulkKeys(tx: Transaction, asked: BulkSelection & { limit: number }): Work<{ keys: number[]; isMore: boolean }> {
    const { limit, ...selection } = asked;
    const found = yield* selectKeys(tx, selection as BulkSelection, limit + 1);
    return { keys: found.slice(0, limit), isMore: found.length > limit };
  },
  /** Newest first. */
  *listBulk(tx: Transaction, { limit, after }: { limit: number; after: number | null }): Work<BulkRun[]> {
    return (yield* tx.all<RunRow>(RUNS, { before: after ?? KEY_MAX, limit })).map(readRow);
  },
  findBulk,
};
