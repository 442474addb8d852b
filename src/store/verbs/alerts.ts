import { type MatterKind, MONEY_KINDS } from '../../domain/matter.ts';
import { type OrderSum, sumsOfOrder } from '../../domain/matter_money.ts';
import { type FaultNote, faultNote } from '../../domain/retry.ts';
import type { AlertChannel } from '../../vocabulary.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { loadOrder } from './orders.ts';

/**
 * Tells people of attention by their channels. Triggers of the table `attention`, and `noteHeld`, write an entry for each
 * channel if a matter opens or ends. A message takes entries along in the transaction that writes it. A channel has one
 * message at a time, so its messages keep their order, and no channel waits for another.
 */

const KEEP_ENTRIES = statement('DELETE FROM alert_entry WHERE NOT channel = ANY(@names::text[])');
const KEEP_CHANNELS = statement('DELETE FROM alert_channel WHERE NOT name = ANY(@names::text[])');
const IS_WAITING = `EXISTS (SELECT 1 FROM hold WHERE ended_at_ms IS NULL)
  OR EXISTS (SELECT 1 FROM attention WHERE ended_at_ms IS NULL)`;
// A column that cannot be empty: 0 while no digest is wanted.
const ADD_CHANNEL = statement(`
  INSERT INTO alert_channel (name, digested_at_ms, reminded_at_ms) VALUES (@name,
    CASE WHEN @digests::boolean THEN @nowMs::bigint ELSE 0 END, CASE WHEN ${IS_WAITING} THEN NULL ELSE @nowMs::bigint END)
  ON CONFLICT (name) DO UPDATE SET reminded_at_ms = coalesce(alert_channel.reminded_at_ms, excluded.reminded_at_ms),
    digested_at_ms = CASE WHEN @digests::boolean AND alert_channel.digested_at_ms > 0 THEN alert_channel.digested_at_ms
      ELSE excluded.digested_at_ms END`);

/**
 * Makes these the channels of the store. A new one is reminded at once of what waits already, and has nothing else to tell. One
 * that is no longer configured loses what it had to tell. If digests were not wanted so far, the first covers the time from now.
 */
function* openAlertChannels(
  tx: Transaction,
  { names, ...opened }: { names: readonly AlertChannel[]; digests: boolean; nowMs: number },
): Work<void> {
  tx.send(KEEP_ENTRIES, { names });
  tx.send(KEEP_CHANNELS, { names });
  for (const name of names) tx.send(ADD_CHANNEL, { name, ...opened });
}

const NOTE_HELD = statement(`
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, order_key, what, at_ms)
  SELECT name, 'hold', @reference::text, (SELECT min(opened_at_ms) FROM hold WHERE order_key = @orderKey
    AND (ended_at_ms IS NULL OR ended_at_ms = @atMs)), @orderKey::bigint, @what::text, @atMs::bigint
  FROM alert_channel`);

/** Notes that an order is held, or is no longer, once its holds are written. */
export function noteHeld(
  tx: Transaction,
  held: { orderKey: number; reference: string; what: AlertWhat; atMs: number },
): void {
  tx.send(NOTE_HELD, held);
}

type AlertWhat = 'opened' | 'over';

const CHANNEL = `name, number, body IS NOT NULL AS hasMessage, composed_at_ms AS composedAtMs, attempt,
  due_at_ms AS dueAtMs, failing_since_ms AS failingSinceMs, fault_code AS faultCode, fault_message AS faultMessage,
  taken_at_ms AS takenAtMs, answer, reminded_at_ms AS remindedAtMs, nullif(digested_at_ms, 0) AS digestedAtMs,
  (SELECT count(*) FROM alert_entry e WHERE e.channel = alert_channel.name) AS waiting,
  (SELECT at_ms FROM alert_entry e WHERE e.channel = alert_channel.name ORDER BY key LIMIT 1) AS waitingSinceMs`;
const CHANNELS = statement(`SELECT ${CHANNEL} FROM alert_channel ORDER BY name`);

export type AlertState = {
  name: AlertChannel;
  /** How many messages were written. */
  number: number;
  /** Whether one of them is still to be taken. */
  hasMessage: boolean;
  composedAtMs: number | null;
  attempt: number;
  /** The next attempt, or the end of the lease of this one. */
  dueAtMs: number | null;
  /** The first of the attempts in a row that failed; null if the last one did not. */
  failingSinceMs: number | null;
  /** Why the last attempt failed; or, if the channel took the message, why not everybody got it. */
  fault: FaultNote | null;
  takenAtMs: number | null;
  /** What the channel said last. */
  answer: string | null;
  remindedAtMs: number | null;
  /** The end of the time of the last digest; null while none is wanted. */
  digestedAtMs: number | null;
  /** Entries that no message has taken along yet, and when the first was written. */
  waiting: number;
  waitingSinceMs: number | null;
};

/** The configured channels: what each took last, and what it has still to tell. */
function* alertChannels(tx: Transaction): Work<AlertState[]> {
  type Row = Omit<AlertState, 'fault'> & { faultCode: string | null; faultMessage: string | null };
  const rows = yield* tx.all<Row>(CHANNELS);
  return rows.map(({ faultCode, faultMessage, ...row }) => ({ ...row, fault: faultNote(faultCode, faultMessage) }));
}

// First what is still open, and money. The entries of a matter stay in their order, as they have the same place in both.
const ENTRIES = statement(`
  SELECT e.key, e.what, e.at_ms AS atMs, e.attention_key AS id, e.kind, e.opened_at_ms AS openedAtMs, e.order_key AS orderKey,
    CASE WHEN e.order_key IS NOT NULL THEN coalesce(o.reference, e.subject) END AS reference,
    c.name AS customerName, c.email AS customerEmail,
    CASE WHEN e.kind = 'hold' THEN (SELECT h.reason FROM hold h WHERE h.order_key = e.order_key
      ORDER BY h.ended_at_ms IS NULL DESC, h.ended_at_ms DESC, h.opened_at_ms, length(h.id), h.id LIMIT 1) END AS reason
  FROM (
    SELECT *, last_value(what) OVER (
      PARTITION BY kind, subject ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS is_now
    FROM alert_entry WHERE channel = @channel
  ) e LEFT JOIN orders o ON o.key = e.order_key LEFT JOIN order_customer c ON c.order_key = o.key
  ORDER BY e.is_now = 'over', e.kind NOT IN ('${MONEY_KINDS.join("', '")}'), e.key LIMIT @limit`);

/** That a matter opened, or is over. */
export type AlertEntry = {
  key: number;
  what: AlertWhat;
  atMs: number;
  /** The matter's number; null if it is that the order is held. */
  id: number | null;
  kind: MatterKind;
  /** When the matter opened; null if 0.4.0 wrote it of an order that is held. */
  openedAtMs: number | null;
  /** Why the order is held; null of all other matters. */
  reason: string | null;
  orderKey: number | null;
  /** Null if it is about no order. */
  reference: string | null;
  /** What the order asks for and holds, by currency; empty if settled has forgotten the order. */
  sums: OrderSum[];
  customerName: string | null;
  customerEmail: string | null;
};

/** What a channel has still to tell. */
function* alertEntries(tx: Transaction, page: { channel: AlertChannel; limit: number }): Work<AlertEntry[]> {
  const rows = yield* tx.all<Omit<AlertEntry, 'sums'>>(ENTRIES, page);
  const orders = yield* loadOrder.byKeys(tx, new Set(rows.flatMap(({ orderKey }) => orderKey ?? [])));
  return rows.map((row) => {
    const order = orders.get(row.orderKey ?? 0);
    return { ...row, sums: order === undefined ? [] : sumsOfOrder(order) };
  });
}

const PUT = statement(`
  UPDATE alert_channel SET number = number + 1, message_id = @id, body = @body, composed_at_ms = @nowMs::bigint,
    due_at_ms = @nowMs::bigint, attempt = 0, holder = NULL,
    reminded_at_ms = CASE WHEN @reminds::boolean THEN @nowMs::bigint ELSE reminded_at_ms END,
    digested_at_ms = CASE WHEN @digests::boolean THEN @nowMs::bigint ELSE digested_at_ms END
  WHERE name = @channel AND number = @number AND body IS NULL`);
const TAKE_ALONG = statement('DELETE FROM alert_entry WHERE key = ANY(@entries::bigint[])');

/** `number`: of the messages before it. `entries`: the keys of what it tells. */
type NewAlert = {
  channel: AlertChannel;
  number: number;
  body: string;
  entries: readonly number[];
  reminds: boolean;
  digests: boolean;
  nowMs: number;
};

/** Writes a message of a channel. `lost`: another replica has written one since `number` was read. */
function* putAlert(tx: Transaction, { entries, ...message }: NewAlert): Work<'put' | 'lost'> {
  const put = yield* tx.run(PUT, { ...message, id: `alert_${tx.newId()}` });
  if (put === 0) return 'lost';
  if (entries.length > 0) tx.send(TAKE_ALONG, { entries });
  return 'put';
}

/** No attempt is due later than this, unless the clock was ahead. */
const DUE_MS_MAX = 300_000;
const CLAIM = statement(`
  UPDATE alert_channel SET holder = @replica, attempt = attempt + 1, due_at_ms = @untilMs
  WHERE name = @channel AND body IS NOT NULL AND (due_at_ms <= @nowMs OR due_at_ms > @nowMs::bigint + ${DUE_MS_MAX})
  RETURNING number, message_id AS id, body, attempt`);

type AlertRef = { channel: AlertChannel; number: number; attempt: number };
/** `id`: the same for all attempts. */
export type ClaimedAlert = Omit<AlertRef, 'channel'> & { id: string; body: string };

/** Leases the message of a channel, if it is due. */
function* claimAlert(
  tx: Transaction,
  { leaseMs, ...claim }: { channel: AlertChannel; nowMs: number; leaseMs: number },
): Work<ClaimedAlert | null> {
  const leased = { ...claim, replica: tx.replica, untilMs: claim.nowMs + leaseMs };
  return (yield* tx.one<ClaimedAlert>(CLAIM, leased)) ?? null;
}

const IS_OURS = 'name = @channel AND number = @number AND attempt = @attempt AND holder = @replica';
const END = statement(`
  UPDATE alert_channel SET body = NULL, message_id = NULL, holder = NULL, due_at_ms = NULL, taken_at_ms = @nowMs,
    failing_since_ms = NULL, fault_code = @code, fault_message = @message, answer = @answer WHERE ${IS_OURS}`);
const RETRY = statement(`
  UPDATE alert_channel SET holder = NULL, due_at_ms = @dueAtMs, failing_since_ms = coalesce(failing_since_ms, @nowMs),
    fault_code = @code, fault_message = @message, answer = @answer WHERE ${IS_OURS}`);

type AlertEnd = AlertRef & { fault: FaultNote | null; answer: string | null; dueAtMs: number | null; nowMs: number };

/** Writes the end of an attempt: the channel gets the message again at `dueAtMs`, or took it if that is null. `lost`: the lease is over. */
function* endAlert(tx: Transaction, { fault, ...ended }: AlertEnd): Work<'taken' | 'retried' | 'lost'> {
  const isTaken = ended.dueAtMs === null;
  const { code = null, message = null } = fault ?? {};
  const changed = yield* tx.run(isTaken ? END : RETRY, { ...ended, replica: tx.replica, code, message });
  if (changed === 0) return 'lost';
  return isTaken ? 'taken' : 'retried';
}

const PAID = statement(`
  SELECT o.currency, count(*) AS orders, sum(o.amount_minor / 1000000) AS millions, sum(o.amount_minor % 1000000) AS rest,
    count(*) FILTER (WHERE EXISTS (
      SELECT 1 FROM outbox n WHERE n.order_key = o.key AND n.type = 'order.paid' AND n.status = 'done')) AS told
  FROM settlement s JOIN orders o ON o.key = s.order_key
  WHERE s.paid_at_ms > @afterMs AND s.paid_at_ms <= @untilMs GROUP BY o.currency ORDER BY o.currency`);

/** Orders that became paid in one currency, what they ask for, and of how many the shop was told. */
export type PaidSum = { currency: string; orders: number; amountMinor: bigint; told: number };

/** The orders that became paid in a time. */
function* paidBetween(tx: Transaction, time: { afterMs: number; untilMs: number }): Work<PaidSum[]> {
  type Row = Pick<PaidSum, 'currency' | 'orders' | 'told'> & { millions: number; rest: number };
  const rows = yield* tx.all<Row>(PAID, time);
  return rows.map(({ millions, rest, ...row }) => ({
    ...row,
    amountMinor: BigInt(millions) * 1_000_000n + BigInt(rest),
  }));
}

export const alertVerbs = { openAlertChannels, putAlert, claimAlert, endAlert };
export const alertQueries = { alertChannels, alertEntries, paidBetween };
