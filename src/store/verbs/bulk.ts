import type { Actor } from '../../domain/access.ts';
import { completedPayments } from '../../domain/ledger.ts';
import type { Money } from '../../domain/money.ts';
import type { Author } from '../contract_access.ts';
import type {
  Bulk,
  BulkAction,
  BulkItem,
  BulkOutcome,
  BulkQueries,
  BulkRun,
  BulkSelection,
  ClaimedBulk,
  MatterFilter,
} from '../contract_bulk.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { isValidToken } from './access.ts';
import { endAttention } from './attention.ts';
import { writeAudit } from './audit.ts';
import { requestCheck } from './check_queue.ts';
import { resolveOrder } from './decisions.ts';
import { inboxVerbs } from './inbox.ts';
import { KEY_MAX, readAllKeys } from './list_pages.ts';
import { EVENT_LIST, narrowEvents } from './lists.ts';
import { NOTICE_LIST, narrowNotices, noticeIdOf, tellingVerbs } from './notices.ts';
import { loadOrder, lockOrder } from './orders.ts';
import { narrowOrders, ORDER_LIST } from './orders_list.ts';

const INSERT_RUN = statement(`
  INSERT INTO bulk_run (action, filter, reason, author, token_sha256, total, is_more, started_at_ms)
  VALUES (@action, @filter, @reason, @author, @tokenSha256, @total, @isMore, @atMs) RETURNING key`);
/** The table of each action's rows. Listed keys must exist there. */
const TABLES: Record<BulkAction, string> = {
  replay_events: 'inbox',
  resend_notices: 'outbox',
  check_orders: 'orders',
  accept_orders: 'orders',
  end_attention: 'attention',
};
const LIST_ITEMS = Object.fromEntries(
  Object.entries(TABLES).map(([action, table]) => [
    action,
    statement(`
      INSERT INTO bulk_item (run_key, item_key) SELECT @key::bigint, key FROM ${table} WHERE key = ANY(@keys::bigint[])`),
  ]),
);
const END_IF_EMPTY = statement(`
  UPDATE bulk_run SET status = 'done', ended_at_ms = @nowMs, holder = NULL WHERE key = @key AND status = 'running'
    AND NOT EXISTS (SELECT 1 FROM bulk_item WHERE run_key = @key AND outcome IS NULL)`);
const CANCEL = statement(`
  UPDATE bulk_run SET status = 'cancelled', detail = @detail, ended_at_ms = @atMs, holder = NULL
  WHERE key = @key AND status = 'running'`);
// Skips a run that another replica is claiming now. On SQLite any earlier holder of a lease has ended.
const FIND_FREE = statement(`
  SELECT key, action, reason, author, token_sha256 AS tokenSha256 FROM bulk_run
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

export const bulkVerbs: InTransaction<Bulk> = {
  *startBulk(tx, { action, filter, reason, keys, isMore, by, atMs }) {
    const author = by === null ? null : JSON.stringify(actorOf(by));
    const tokenSha256 = by?.tokenSha256 ?? null;
    const values = { action, filter, reason, author, tokenSha256, total: keys.length, isMore, atMs };
    const { key } = (yield* tx.one<{ key: number }>(INSERT_RUN, values)) as { key: number };
    tx.send(LIST_ITEMS[action] as NonNullable<(typeof LIST_ITEMS)[string]>, { key, keys });
    tx.send(END_IF_EMPTY, { key, nowMs: atMs });
    const run = (yield* readRun(tx, key)) as BulkRun;
    const after = { action, filter: JSON.parse(filter) as unknown, total: keys.length };
    yield* writeAudit(tx, by, { action: 'start_bulk', subject: String(key), reason, after }, atMs);
    return run;
  },
  *cancelBulk(tx, { key, by, atMs }) {
    const cancelled = yield* tx.run(CANCEL, { key, detail: null, atMs });
    const run = yield* readRun(tx, key);
    if (run === null || cancelled === 0) return run === null ? null : 'ended';
    const { changed, skipped, failed } = run;
    yield* writeAudit(
      tx,
      by,
      { action: 'cancel_bulk', subject: String(key), after: { changed, skipped, failed } },
      atMs,
    );
    return run;
  },
  *claimBulk(tx, { limit, nowMs, leaseMs }) {
    const { replica } = tx;
    const run = yield* findFree(tx, nowMs);
    if (run === null) return null;
    const { key } = run;
    tx.send(LEASE, { key, replica, untilMs: nowMs + leaseMs });
    const items = (yield* tx.all<{ itemKey: number }>(NEXT_ITEMS, { key, limit })).map(({ itemKey }) => itemKey);
    if (items.length === 0) tx.send(END_IF_EMPTY, { key, nowMs });
    return { ...run, author: readActor(run.author), items };
  },
  *carryOutBulk(tx, { run, itemKey, auditKey, nowMs }) {
    const { key } = run;
    const item = yield* tx.one(LOCK_ITEM, { key, itemKey, replica: tx.replica });
    if (item === undefined) return 'lost';
    const by: Author | null = run.author === null ? null : { ...run.author, auditKey, bulk: String(key) };
    const ended = yield* DO[run.action](tx, { itemKey, by, reason: run.reason ?? '', nowMs });
    tx.send(END_ITEM, { key, itemKey, ...ended });
    tx.send(END_IF_EMPTY, { key, nowMs });
    return ended;
  },
  *failBulk(tx, { run: { key }, itemKey, detail, nowMs }) {
    if ((yield* tx.one(LOCK_ITEM, { key, itemKey, replica: tx.replica })) === undefined) return 'lost';
    tx.send(END_ITEM, { key, itemKey, outcome: 'failed', detail });
    tx.send(END_IF_EMPTY, { key, nowMs });
    return 'failed';
  },
};

type RunToDo = Omit<ClaimedBulk, 'author' | 'items'> & { author: string | null };

/** Finds a free run, and cancels runs whose author's token is no longer valid. */
function* findFree(tx: Transaction, nowMs: number): Work<RunToDo | null> {
  for (;;) {
    type Row = RunToDo & { tokenSha256: Uint8Array | null };
    const found = yield* tx.one<Row>(FIND_FREE, { nowMs, replica: tx.replica, isAlone: !tx.hasReplicas });
    if (found === undefined) return null;
    const { tokenSha256, ...run } = found;
    if (tokenSha256 === null || (yield* isValidToken(tx, { sha256: tokenSha256, nowMs }))) return run;
    yield* tx.run(CANCEL, { key: run.key, detail: 'token_ended', atMs: nowMs });
  }
}

function actorOf({ name, role, origin, address }: Author): Actor {
  return { name, role, origin, address };
}

function readActor(author: string | null): Actor | null {
  return author === null ? null : (JSON.parse(author) as Actor);
}

type Doing = Pick<BulkItem, 'itemKey' | 'nowMs'> & { by: Author | null; reason: string };

const CHANGED: BulkOutcome = { outcome: 'changed', detail: null };
const skipped = (detail: string): BulkOutcome => ({ outcome: 'skipped', detail });

/** Carries an action out for one row, with the verb for a single row. */
const DO: Record<BulkAction, (tx: Transaction, doing: Doing) => Work<BulkOutcome>> = {
  *replay_events(tx, { itemKey, by, nowMs }) {
    const outcome = yield* inboxVerbs.requeueEvent(tx, { eventKey: itemKey, by, nowMs });
    return outcome === 'requeued' ? CHANGED : skipped(outcome);
  },
  *resend_notices(tx, { itemKey, by, nowMs }) {
    const id = yield* noticeIdOf(tx, itemKey);
    const outcome = id === null ? 'unknown' : yield* tellingVerbs.resendNotice(tx, { id, by, nowMs });
    return typeof outcome === 'string' ? skipped(outcome) : CHANGED;
  },
  *check_orders(tx, { itemKey, by, nowMs: atMs }) {
    lockOrder(tx, itemKey);
    const link = yield* tx.one<{ linkKey: number; reference: string }>(LINK_OF_ORDER, { orderKey: itemKey });
    if (link === undefined) return skipped('unknown');
    requestCheck(tx, { linkKey: link.linkKey, reason: 'person', atMs });
    yield* writeAudit(tx, by, { action: 'check_order', subject: link.reference }, atMs);
    return CHANGED;
  },
  *accept_orders(tx, { itemKey, by, reason, nowMs: atMs }) {
    lockOrder(tx, itemKey);
    const { order } = yield* loadOrder.byKey(tx, itemKey);
    // Whoever accepts many orders has one reason of holds in mind, and no money that cannot be right.
    if (order.holds.length > 1) return skipped('several_holds');
    if (completedPayments(order).some((payment) => isMore(payment.captured, order.amount)))
      return skipped('more_than_asked');
    const made = yield* resolveOrder(tx, { reference: order.reference, decision: 'accept', reason, by, atMs });
    return made?.outcome === 'applied' ? CHANGED : skipped(made?.rule ?? 'unknown');
  },
  *end_attention(tx, { itemKey, by, reason, nowMs: atMs }) {
    const ended = yield* endAttention(tx, { key: itemKey, reason, by, atMs });
    return ended === null ? skipped('unknown') : CHANGED;
  },
};

function isMore(one: Money, other: Money): boolean {
  return one.currency === other.currency && one.amountMinor > other.amountMinor;
}

const LINK_OF_ORDER = statement(`
  SELECT l.key AS linkKey, o.reference FROM orders o JOIN link l ON l.order_key = o.key
  WHERE o.key = @orderKey ORDER BY l.key DESC LIMIT 1`);

const counted = (outcome: string) =>
  `(SELECT count(*) FROM bulk_item i WHERE i.run_key = r.key AND i.outcome = '${outcome}') AS ${outcome}`;
const RUN = `SELECT r.key, r.action, r.filter, r.reason, r.author, r.status, r.detail, r.total, r.is_more AS isMore,
  r.started_at_ms AS startedAtMs, r.ended_at_ms AS endedAtMs, ${['changed', 'skipped', 'failed'].map(counted).join(', ')}
  FROM bulk_run r`;
const RUNS = statement(`${RUN} WHERE r.key < @before ORDER BY r.key DESC LIMIT @limit`);
const ONE_RUN = statement(`${RUN} WHERE r.key = @key`);
const MATTERS = statement(`
  SELECT key FROM attention WHERE kind = @kind AND ended_at_ms IS NULL
    AND opened_at_ms >= @sinceMs AND opened_at_ms <= @untilMs ORDER BY opened_at_ms, key LIMIT @limit`);

type RunRow = Omit<BulkRun, 'author'> & { author: string | null };

const readRow = ({ author, ...run }: RunRow): BulkRun => ({ ...run, author: readActor(author) });

function* readRun(tx: Transaction, key: number): Work<BulkRun | null> {
  const row = yield* tx.one<RunRow>(ONE_RUN, { key });
  return row === undefined ? null : readRow(row);
}

export const bulkQueries: InTransaction<BulkQueries> = {
  *findBulkKeys(tx, { limit, ...selection }) {
    const found = yield* selectKeys(tx, selection as BulkSelection, limit + 1);
    return { keys: found.slice(0, limit), isMore: found.length > limit };
  },
  *listBulk(tx, { limit, after }) {
    return (yield* tx.all<RunRow>(RUNS, { before: after ?? KEY_MAX, limit })).map(readRow);
  },
  *findBulk(tx, key) {
    return yield* readRun(tx, key);
  },
};

function* selectKeys(tx: Transaction, { action, filter }: BulkSelection, limit: number): Work<number[]> {
  switch (action) {
    case 'replay_events':
      return yield* readAllKeys(tx, EVENT_LIST, narrowEvents(filter), limit);
    case 'resend_notices':
      return yield* readAllKeys(tx, NOTICE_LIST, narrowNotices(filter), limit);
    case 'check_orders':
    case 'accept_orders':
      return yield* readAllKeys(tx, ORDER_LIST, yield* narrowOrders(tx, filter), limit);
    default:
      return yield* selectMatters(tx, filter, limit);
  }
}

function* selectMatters(tx: Transaction, filter: MatterFilter, limit: number): Work<number[]> {
  const { kind, sinceMs, untilMs } = filter;
  const asked = { kind, sinceMs: sinceMs ?? 0, untilMs: untilMs ?? KEY_MAX, limit };
  return (yield* tx.all<{ key: number }>(MATTERS, asked)).map(({ key }) => key);
}
