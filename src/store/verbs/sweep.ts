import { type AttentionParams, searchSubject } from '../../domain/matter.ts';
import type { StatedMoney } from '../../domain/money.ts';
import { ALIVE_MS } from '../../domain/retry.ts';
import { type Answer, statement, type Transaction, type Work } from '../transaction.ts';
import { attention, END_SEARCH } from './attention.ts';
import { requestCheck } from './check_queue.ts';

export type ListedLink = {
  id: string;
  reference: string | null;
  status: string;
  money: StatedMoney;
  createdAtMs: number | null;
};

type SweepBounds = {
  /** Whether this process should sweep: of several replicas, the one that started first. */
  isOurTurn: boolean;
  /** When the oldest open link with an id was created; null if there is none. */
  oldestOpenMs: number | null;
  /** Whether the service made any known link. If so, its list cannot be empty. */
  hasLinks: boolean;
};

export type Compared = {
  differing: number;
  notKnown: number;
  /** The time of the copy, while settled searches for links made since. */
  restoredFromMs: number | null;
};

export const sweepVerbs = {
  /** What a sweep of the service's list needs before it begins. Reads every link. */
  *sweepBounds(tx: Transaction, { nowMs }: { nowMs: number }): Work<SweepBounds> {
    const oldest = tx.one<{ oldestOpenMs: number | null }>(OLDEST, { nowMs });
    const some = tx.one<{ hasLinks: boolean }>(HAS_LINKS);
    const [eldest = tx.replica] = tx.hasReplicas ? yield* aliveReplicas(tx, nowMs) : [];
    return {
      isOurTurn: eldest === tx.replica,
      oldestOpenMs: (yield* oldest)?.oldestOpenMs ?? null,
      hasLinks: (yield* some)?.hasLinks ?? false,
    };
  },
  /**
   * Compares a page of the service's list with the store, and queues a check of every open link that differs. After a
   * restore, raises `link_not_known` for each unknown link made since the copy, or at most `toleranceMs` before it.
   */
  *compareListed(
    tx: Transaction,
    { items, toleranceMs, nowMs }: { items: readonly ListedLink[]; toleranceMs: number; nowMs: number },
  ): Work<Compared> {
    const restored = tx.one<Restored>(RESTORED);
    const differing = yield* findDiffering(tx, items, nowMs);
    // An order that changes now may be checked once too often, which does no harm.
    if (differing.length > 0) tx.lock(LOCK_ORDERS, { orderKeys: differing.map(({ orderKey }) => orderKey) });
    for (const { linkKey } of differing) requestCheck(tx, { linkKey, reason: 'listed', atMs: nowMs });
    const restoredFromMs = (yield* restored)?.restoredFromMs ?? null;
    const sinceMs = restoredFromMs === null ? null : restoredFromMs - toleranceMs;
    const notKnown = sinceMs === null ? 0 : yield* tellOfUnknown(tx, items, { sinceMs, nowMs });
    return { differing: differing.length, notKnown, restoredFromMs };
  },
  /** Ends the search after a restore: the list was read back to the time of the copy. */
  *endRestore(tx: Transaction, { nowMs }: { nowMs: number }): Work<void> {
    const { restoredFromMs = null } = (yield* tx.one<Restored>(RESTORED)) ?? {};
    if (restoredFromMs === null) return;
    tx.send(END_SEARCH, { restoredFromMs });
    attention.end(tx, 'link_not_known', searchSubject(restoredFromMs), nowMs);
  },
  /** Records that the service's list is unreadable. After a restore, tells a person once where to look instead. */
  *noteNoList(tx: Transaction, { why, nowMs }: { why: string; nowMs: number }): Work<void> {
    const { restoredFromMs = null } = (yield* tx.one<Restored>(RESTORED)) ?? {};
    if (restoredFromMs === null) return;
    yield* tellOnce(tx, searchSubject(restoredFromMs), { restoredFromMs, why }, nowMs);
  },
};

/** Links of orders that a payment would still change. The expiry may be wrong if no reading showed it. */
const OPEN_LINKS = `link l JOIN orders o ON o.key = l.order_key
  WHERE (o.state IN ('awaiting_payment', 'payment_pending', 'expired') OR (o.state IN ('held', 'cancelled')
    AND (l.expires_at_ms IS NULL OR l.expires_at_ms > @nowMs OR l.status = 'ACTIVE')))`;

// A link whose schedule has ended is compared only if the list shows it.
const OLDEST = statement(`
  SELECT min(l.created_at_ms) AS oldestOpenMs FROM ${OPEN_LINKS} AND l.link_id IS NOT NULL
    AND l.next_check_at_ms IS NOT NULL`);
const HAS_LINKS = statement('SELECT EXISTS (SELECT 1 FROM link WHERE link_id IS NOT NULL) AS hasLinks');
const LIST_ALIVE = statement('SELECT name FROM replica WHERE alive_at_ms > @sinceMs ORDER BY started_at_ms, name');

/** The processes that may be using a shared database; the one that started first comes first. */
export function* aliveReplicas(tx: Transaction, nowMs: number): Work<string[]> {
  const rows = yield* tx.all<{ name: string }>(LIST_ALIVE, { sinceMs: nowMs - ALIVE_MS });
  return rows.map(({ name }) => name);
}

type OpenLink = { linkKey: number; orderKey: number };

const OPEN_BY_ID = statement(`
  SELECT l.key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, coalesce(l.status, 'ACTIVE') AS status
  FROM ${OPEN_LINKS} AND l.link_id = ANY(@ids::text[])`);
// Whether a link has an id is tested afterwards: SQLite would search for the order among all links without one.
const OPEN_BY_REFERENCE = statement(`
  SELECT l.key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, o.reference
  FROM ${OPEN_LINKS} AND o.reference = ANY(@references::text[]) ORDER BY l.key DESC`);
const LOCK_ORDERS = statement(`
  SELECT 1 FROM orders WHERE key = ANY(@orderKeys::bigint[]) ORDER BY key FOR NO KEY UPDATE`);

/** The open links whose listed status or id differs from the stored one. */
function* findDiffering(tx: Transaction, items: readonly ListedLink[], nowMs: number): Work<OpenLink[]> {
  const listed = { ...namesOf(items), nowMs };
  const withId = tx.all<OpenLink & { linkId: string; status: string }>(OPEN_BY_ID, listed);
  const ofReference = tx.all<OpenLink & { linkId: string | null; reference: string }>(OPEN_BY_REFERENCE, listed);
  const byId = new Map((yield* withId).map((link) => [link.linkId, link]));
  const withoutId = (yield* ofReference).filter(({ linkId }) => linkId === null);
  const byReference = new Map<string | null, OpenLink>(withoutId.map((link) => [link.reference, link]));
  return items.flatMap(({ id, reference, status }) => {
    const known = byId.get(id);
    const differing = known !== undefined && known.status !== status ? known : byReference.get(reference);
    return differing === undefined ? [] : [differing];
  });
}

function namesOf(items: readonly ListedLink[]) {
  return { ids: items.map(({ id }) => id), references: items.map(({ reference }) => reference) };
}

/** When the copy was made that replaced the database, while settled searches for links made since; otherwise null. */
type Restored = { restoredFromMs: number | null };

const RESTORED = statement('SELECT restored_from_ms AS restoredFromMs FROM instance');
const KNOWN_IDS = statement('SELECT link_id AS linkId FROM link WHERE link_id = ANY(@ids::text[])');
const LINKS_OF_REFERENCES = statement(`
  SELECT o.reference, l.link_id AS linkId FROM orders o JOIN link l ON l.order_key = o.key
  WHERE o.reference = ANY(@references::text[]) ORDER BY l.key`);

/**
 * Raises a matter for each link that the store does not know, and returns how many it raised now. A link is known by
 * its id, or by its reference if the newest link of that order has no id yet.
 */
function* tellOfUnknown(
  tx: Transaction,
  items: readonly ListedLink[],
  { sinceMs, nowMs }: { sinceMs: number; nowMs: number },
): Work<number> {
  // Older links, unknown already when the copy was made, were made without settled.
  const made = items.filter(({ createdAtMs }) => createdAtMs === null || createdAtMs >= sinceMs);
  const ids = tx.all<{ linkId: string }>(KNOWN_IDS, namesOf(made));
  const links = tx.all<{ reference: string; linkId: string | null }>(LINKS_OF_REFERENCES, namesOf(made));
  const known = new Set((yield* ids).map(({ linkId }) => linkId));
  const newestId = new Map<string | null, string | null>(
    (yield* links).map(({ reference, linkId }) => [reference, linkId]),
  );
  const unknown = made.filter(({ id, reference }) => !known.has(id) && newestId.get(reference) !== null);
  const told = unknown.map(({ id, reference, money, createdAtMs }) => {
    const otherId = newestId.get(reference) ?? null;
    return tellOnce(tx, id, { reference, ...money, createdAtMs, otherId }, nowMs);
  });
  let sum = 0;
  for (const raised of told) sum += yield* raised;
  return sum;
}

const TELL_ONCE = statement(`
  INSERT INTO attention (kind, subject, detail, params, opened_at_ms, last_at_ms)
  SELECT 'link_not_known', @subject, '', @params::text, @atMs::bigint, @atMs::bigint
  WHERE NOT EXISTS (SELECT 1 FROM attention WHERE kind = 'link_not_known' AND subject = @subject)
  ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL DO NOTHING`);

/** Raises a matter unless it was raised before, even if a person ended it. Returns how many it raised. */
function tellOnce(
  tx: Transaction,
  subject: string,
  params: AttentionParams['link_not_known'],
  atMs: number,
): Answer<number> {
  return tx.run(TELL_ONCE, { subject, params: JSON.stringify(params), atMs });
}

/** Open links at the service in the schedule, and those past their schedule that may still be paid. */
export const PAYABLE_LINKS = `${OPEN_LINKS} AND l.link_id IS NOT NULL
  AND (l.next_check_at_ms IS NOT NULL OR coalesce(l.status, 'ACTIVE') = 'ACTIVE')`;

const COUNT_PAYABLE = statement(`SELECT count(*) AS links FROM ${PAYABLE_LINKS}`);
const MAKE_DUE = statement(`
  UPDATE link SET next_check_at_ms = @nowMs WHERE key IN (SELECT l.key FROM ${PAYABLE_LINKS})
    AND (next_check_at_ms IS NULL OR next_check_at_ms > @nowMs)`);

export function* countPayable(tx: Transaction, nowMs: number): Work<number> {
  return (yield* tx.one<{ links: number }>(COUNT_PAYABLE, { nowMs }))?.links ?? 0;
}

const OTHER_ADDRESSES = statement(`
  SELECT l.webhook_base AS address, count(*) AS links, max(l.expires_at_ms) AS untilMs FROM ${PAYABLE_LINKS}
    AND l.webhook_base <> @publicUrl GROUP BY l.webhook_base ORDER BY links DESC, address LIMIT @limit`);

/** `untilMs`: when the last of its links expires; null if none says when. */
export type OtherAddress = { address: string; links: number; untilMs: number | null };

/** Where links that may still be paid deliver to, if not to `publicUrl`: the addresses of most links first. */
export function* otherAddresses(
  tx: Transaction,
  asked: { publicUrl: string; limit: number; nowMs: number },
): Work<OtherAddress[]> {
  return yield* tx.all<OtherAddress>(OTHER_ADDRESSES, asked);
}

/** `catchUp` in one transaction, for an engine with a single writer. */
export function* catchUpAtOnce(tx: Transaction, options: { dryRun: boolean; nowMs: number }): Work<{ links: number }> {
  const { dryRun, nowMs } = options;
  const links = yield* countPayable(tx, nowMs);
  if (!dryRun) tx.send(MAKE_DUE, { nowMs });
  return { links };
}
