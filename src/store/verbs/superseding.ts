import {
  isAboutMoney,
  isDefiniteRefusal,
  MONEY_NOTICES,
  noticeName,
  type ShopAnswer,
  type ShopFailures,
} from '../../domain/notice.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';

/**
 * The order in which the shop hears the notices of one order. One of them has the turn: the only one with a due time.
 * A notice that the shop refuses gives the turn to the next one about money, so that this need not wait. If that fails
 * too, the turn goes back to the oldest: a shop that comes back after an outage hears everything, in order.
 */

const MONEY = `(${MONEY_NOTICES.map((type) => `'${type}'`).join(', ')})`;

/** Attempts after which a notice that the shop fails, while it takes others, no longer holds up money. */
const FAILS_AFTER = 3;

/**
 * Whether a later notice about money goes on although this one failed. Fewer failures in a row, over all notices, than
 * attempts of this one mean that the shop took another notice meanwhile.
 */
export function mayBePassed(failed: {
  answer: ShopAnswer | null;
  attempt: number;
  inARow: ShopFailures | null;
}): boolean {
  const { answer, attempt, inARow } = failed;
  return isDefiniteRefusal(answer) || (attempt >= FAILS_AFTER && (inARow?.attempts ?? 0) < attempt);
}

const OF_ORDER = `order_key = @orderKey AND status = 'pending'`;
/** Gives the turn to the notice with this key, due at `due`, and takes it from the others of its order. */
const turnTo = (key: string, due: string) =>
  `UPDATE outbox SET due_at_ms = CASE WHEN key = ${key} THEN ${due} END
   WHERE ${OF_ORDER} AND (due_at_ms IS NOT NULL OR key = ${key})`;
const OLDEST = `(SELECT min(key) FROM outbox WHERE ${OF_ORDER})`;
const NEXT_MONEY = `(SELECT min(key) FROM outbox WHERE ${OF_ORDER} AND key > @noticeKey AND type IN ${MONEY})`;
export const START_AGAIN = statement(turnTo(OLDEST, '@dueAtMs::bigint'));
export const PASS_ON = statement(
  turnTo(
    `coalesce(${NEXT_MONEY}, ${OLDEST})`,
    `CASE WHEN ${NEXT_MONEY} IS NULL THEN @dueAtMs::bigint ELSE @nowMs::bigint END`,
  ),
);

/**
 * When there is news about money, a notice that failed is tried at once, so that its failure lets the news pass. Not if
 * the shop said when to come again.
 */
const HASTEN_TURN = statement(`
  UPDATE outbox SET due_at_ms = @atMs WHERE ${OF_ORDER} AND due_at_ms > @atMs AND fault_code IS NOT NULL
    AND coalesce(answer_status, 0) NOT IN (429, 503)`);

// `superseded` is false if a person had the notice sent again.
const NEEDLESS = `${OF_ORDER} AND superseded IS NULL AND EXISTS (
  SELECT 1 FROM outbox later WHERE later.order_key = @orderKey AND later.key > outbox.key AND later.status = 'done'
    AND later.type IN ${MONEY})`;
const END = `status = 'dead', due_at_ms = NULL, holder = NULL, ended_at_ms = @nowMs`;
const SUPERSEDE = statement(`
  UPDATE outbox SET ${END}, superseded = true WHERE ${NEEDLESS} AND type NOT IN ${MONEY}`);
const REFUSED = statement(`
  SELECT key, notice_id AS random, fault_message AS message, answer_status AS status FROM outbox
  WHERE ${NEEDLESS} AND type IN ${MONEY} AND fault_code IS NOT NULL AND answer_status IS NOT NULL`);
const GIVE_UP = statement(`UPDATE outbox SET ${END} WHERE key = @key`);

/** A dead notice that the shop never took. All share one matter, because an unreachable shop fails them all. */
export const DEAD = { kind: 'notices_dead', subject: 'shop' } as const;

/**
 * Ends the notices that a later one about money, which the shop took, makes needless: those that inform, quietly; and
 * those about money that the shop definitely refused, as dead, because it never took them.
 */
export function* supersede(tx: Transaction, { orderKey, nowMs }: { orderKey: number; nowMs: number }): Work<void> {
  tx.send(SUPERSEDE, { orderKey, nowMs });
  const refused = yield* tx.all<{ key: number; random: string; message: string; status: number }>(REFUSED, {
    orderKey,
  });
  for (const { key, random, message, status } of refused) {
    if (!isDefiniteRefusal({ status, body: '' })) continue;
    tx.send(GIVE_UP, { key, nowMs });
    const params = { notice: noticeName(key, random), message };
    attention.raiseForNoOrder(tx, DEAD.kind, { subject: DEAD.subject, params, atMs: nowMs });
  }
}

/** News about money is late after this long. */
const UNTOLD_MS = 120_000;
const UNTOLD = { kind: 'money_untold', subject: 'shop' } as const;

// A notice that failed holds up itself and what its order owes after it, also while it is tried once more. Each status
// has an index of its own.
const failed = (status: 'pending' | 'leased') => `
  SELECT * FROM (SELECT n.key, n.notice_id, n.order_key, n.first_tried_at_ms FROM outbox n
    WHERE n.status = '${status}' AND n.attempt > 0 AND n.first_tried_at_ms <= @untilMs AND n.fault_code IS NOT NULL
      AND EXISTS (SELECT 1 FROM outbox owed WHERE owed.order_key = n.order_key AND owed.key >= n.key
        AND owed.created_at_ms <= @untilMs AND owed.status IN ('pending', 'leased') AND owed.type IN ${MONEY})
    ORDER BY n.first_tried_at_ms LIMIT 1) AS ${status}_notice`;
const FIND_UNTOLD = statement(`
  SELECT n.key, n.notice_id AS random, n.first_tried_at_ms AS sinceMs,
    (SELECT reference FROM orders WHERE key = n.order_key) AS reference,
    EXISTS (SELECT 1 FROM attention WHERE kind = '${UNTOLD.kind}' AND subject = '${UNTOLD.subject}'
      AND ended_at_ms IS NULL) AS isRaised, EXISTS (SELECT 1 FROM shop_failure WHERE raised) AS isKnown
  FROM (${failed('pending')} UNION ALL ${failed('leased')}) AS n ORDER BY n.first_tried_at_ms LIMIT 1`);
type Untold = { key: number; random: string; sinceMs: number; reference: string; isRaised: boolean; isKnown: boolean };

/** Raises or ends the matter that news about money has waited for minutes, whatever the shop takes of other orders. */
export function* noteUntoldMoney(tx: Transaction, nowMs: number): Work<void> {
  const found = yield* tx.one<Untold>(FIND_UNTOLD, { untilMs: nowMs - UNTOLD_MS });
  if (found === undefined) return endUntoldMoney(tx, nowMs);
  // Of a shop that takes nothing at all, `shop_refuses_notices` says so.
  if (found.isRaised || found.isKnown) return;
  const { key, random, reference, sinceMs } = found;
  const params = { notice: noticeName(key, random), reference, sinceMs };
  attention.raiseForNoOrder(tx, UNTOLD.kind, { subject: UNTOLD.subject, params, atMs: nowMs });
}

export function endUntoldMoney(tx: Transaction, nowMs: number): void {
  attention.end(tx, UNTOLD.kind, UNTOLD.subject, nowMs);
}

/** Lets a notice that was just written pass those that fail before it, if it is about money. */
export function hastenTurn(tx: Transaction, orderKey: number, type: string, atMs: number): void {
  if (isAboutMoney(type)) tx.send(HASTEN_TURN, { orderKey, atMs });
}
