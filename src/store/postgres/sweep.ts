import type { Checks } from '../asking.ts';
import { statement } from '../statement.ts';
import type { Database } from './database.ts';
import { requestCheck } from './matters.ts';
import { aliveReplicas, endOutage, findOutage } from './replicas.ts';
import { restoredFrom, restoreVerbs, tellOfUnknown } from './restore.ts';
import type { InTransaction } from './transaction.ts';

type SweepVerbs = InTransaction<Pick<Checks, 'compareListed' | 'sweepBounds' | 'endRestore' | 'noteNoList'>>;

/** Links of orders that a payment would still change. The clock may be wrong about an expiry that no reading showed. */
const OPEN_LINKS = `link l JOIN orders o ON o.key = l.order_key
  WHERE (o.state IN ('awaiting_payment', 'payment_pending', 'expired') OR (o.state IN ('held', 'cancelled')
    AND (l.expires_at_ms IS NULL OR l.expires_at_ms > @nowMs OR l.status = 'ACTIVE')))`;
/** Those at the service that the schedule asks about, and those that it has given up although they may be paid. */
const PAYABLE_LINKS = `${OPEN_LINKS} AND l.link_id IS NOT NULL
  AND (l.next_check_at_ms IS NOT NULL OR coalesce(l.status, 'ACTIVE') = 'ACTIVE')`;

// What the schedule has given up is compared where it comes by.
const OLDEST = statement(
  `SELECT min(l.created_at_ms) AS oldestOpenMs FROM ${OPEN_LINKS} AND l.link_id IS NOT NULL
     AND l.next_check_at_ms IS NOT NULL`,
);
const HAS_LINKS = statement('SELECT EXISTS (SELECT 1 FROM link WHERE link_id IS NOT NULL) AS hasLinks');

const sweepBounds: SweepVerbs['sweepBounds'] = async (tx, { nowMs }) => {
  const [alive, oldest, some] = await Promise.all([
    aliveReplicas(tx, nowMs),
    tx.one<{ oldestOpenMs: number | null }>(OLDEST, { nowMs }),
    tx.one<{ hasLinks: boolean }>(HAS_LINKS),
  ]);
  const isOurTurn = (alive[0] ?? tx.replica) === tx.replica;
  return { isOurTurn, oldestOpenMs: oldest?.oldestOpenMs ?? null, hasLinks: some?.hasLinks ?? false };
};

/** For each listed link the open one that it shows otherwise than it is known: another status, or an id that nobody told. */
const DIFFERING = statement(
  `SELECT differing.key AS linkKey, differing.order_key AS orderKey
   FROM unnest(@ids::text[], @references::text[], @statuses::text[]) AS listed (id, reference, status)
   JOIN link differing ON differing.key = coalesce(
     (SELECT l.key FROM ${OPEN_LINKS} AND l.link_id = listed.id AND coalesce(l.status, 'ACTIVE') <> listed.status),
     (SELECT l.key FROM ${OPEN_LINKS} AND o.reference = listed.reference AND l.link_id IS NULL ORDER BY l.key LIMIT 1))`,
);
const LOCK_ORDERS = statement(
  'SELECT 1 FROM orders WHERE key = ANY(@orderKeys::bigint[]) ORDER BY key FOR NO KEY UPDATE',
);

// A check too many of an order that changes at this moment does no harm.
const compareListed: SweepVerbs['compareListed'] = async (tx, { items, toleranceMs, nowMs }) => {
  const listed = {
    ids: items.map(({ id }) => id),
    references: items.map(({ reference }) => reference),
    statuses: items.map(({ status }) => status),
  };
  const [differing, restoredFromMs] = await Promise.all([
    tx.all<{ linkKey: number; orderKey: number }>(DIFFERING, { ...listed, nowMs }),
    restoredFrom(tx),
  ]);
  if (differing.length > 0) tx.send(LOCK_ORDERS, { orderKeys: differing.map(({ orderKey }) => orderKey) });
  for (const { linkKey } of differing) requestCheck(tx, { linkKey, reason: 'listed', atMs: nowMs });
  const sinceMs = restoredFromMs === null ? null : restoredFromMs - toleranceMs;
  const notKnown = sinceMs === null ? 0 : await tellOfUnknown(tx, items, { sinceMs, nowMs });
  return { differing: differing.length, notKnown, restoredFromMs };
};

const COUNT = statement(`SELECT count(*) AS links FROM ${PAYABLE_LINKS}`);
/** Links that one transaction makes due at most: whoever wants one of them waits well within his time. */
const LINKS_MAX = 10_000;
// In the order of keys: whoever else makes links due waits for this, and never in a circle.
const MAKE_DUE = statement(
  `WITH payable AS (
     SELECT l.key FROM ${PAYABLE_LINKS} AND l.key > @afterKey ORDER BY l.key LIMIT ${LINKS_MAX} FOR NO KEY UPDATE OF l
   ), made_due AS (
     UPDATE link SET next_check_at_ms = @nowMs FROM payable
     WHERE link.key = payable.key AND (link.next_check_at_ms IS NULL OR link.next_check_at_ms > @nowMs)
   )
   SELECT count(*) AS links, max(key) AS lastKey FROM payable`,
);

type MadeDue = { links: number; lastKey: number | null };

/**
 * Makes links due, so many in a transaction of their own. An outage is over for good when all of them are: until then each
 * sign of life tells of it.
 */
export async function catchUp(
  db: Pick<Database, 'write' | 'read'>,
  { dryRun, nowMs }: { dryRun: boolean; nowMs: number },
): Promise<{ links: number }> {
  if (dryRun) {
    const counted = await db.read((tx) => tx.one<{ links: number }>(COUNT, { nowMs }));
    return { links: counted?.links ?? 0 };
  }
  const outageMs = await db.read(findOutage);
  let links = 0;
  let afterKey: number | null = 0;
  while (afterKey !== null) {
    const values: object = { afterKey, nowMs };
    const made = (await db.write((tx) => tx.one<MadeDue>(MAKE_DUE, values))) as MadeDue;
    links += made.links;
    afterKey = made.links < LINKS_MAX ? null : made.lastKey;
  }
  if (outageMs !== null) await db.write((tx) => endOutage(tx, outageMs));
  return { links };
}

export const sweepVerbs: SweepVerbs = { sweepBounds, compareListed, ...restoreVerbs };
