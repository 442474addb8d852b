import { statement } from '../transaction.ts';
import { countPayable, PAYABLE_LINKS } from '../verbs/sweep.ts';
import type { Database } from './database.ts';
import { endOutage, findOutage } from './replicas.ts';

/** Links that one transaction makes due at most: another transaction that wants one of them waits for well under a second. */
const LINKS_MAX = 10_000;
// In the order of keys: another transaction that makes links due waits for this one, and the two never wait in a circle.
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
 * Makes links due, `LINKS_MAX` in each transaction. An outage is over when all of them are due: until then each sign of
 * life tells of it.
 */
export async function catchUp(
  db: Pick<Database, 'write' | 'read'>,
  { dryRun, nowMs }: { dryRun: boolean; nowMs: number },
): Promise<{ links: number }> {
  if (dryRun) return { links: await db.read((tx) => countPayable(tx, nowMs)) };
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
