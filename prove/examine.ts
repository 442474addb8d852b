import { secretsKeyFile } from '../src/secrets/key_files.ts';
import { openKeyring } from '../src/secrets/keyring.ts';
import { openWriter } from '../src/store/sqlite/group_commit.ts';
import { type OpenedDatabase, openForWriting } from '../src/store/sqlite/open.ts';
import { ORDERS, type OrderRow, paidOnce, unpaid } from './harness/orders.ts';
import {
  amountOf,
  eventNumber,
  inWords,
  isSame,
  NOTHING,
  type Progress,
  type ProvedEvent,
  referenceOf,
} from './test_data.ts';

/** What was promised when the power failed, and which states are consistent. */
export type Promised = {
  acknowledged: Progress;
  /** The state after the batch that was not acknowledged yet: it may be there whole, or not at all. */
  asked: Progress;
  /** The state after each batch so far. Any other state is half a transaction. */
  boundaries: readonly Progress[];
};

/**
 * - kept: everything acknowledged is there, byte for byte, and nothing else but the batch in hand
 * - lost: something acknowledged is missing, and the rest is consistent
 * - half: part of a transaction is there
 * - damaged: SQLite finds the file damaged
 * - refused: settled does not start
 */
type Verdict = 'kept' | 'lost' | 'half' | 'damaged' | 'refused';

export type Finding = { verdict: Verdict; detail: string; found: Progress };

/** Starts settled's engine on a database after a power failure, and compares it with what was promised. */
export function examine(path: string, { acknowledged, asked, boundaries }: Promised): Finding {
  let opened: OpenedDatabase;
  let close = () => {};
  try {
    const { keyId } = openKeyring(secretsKeyFile(path));
    const options = { path, secretsKeyId: keyId, newInstanceId: 'another', nowMs: 2, newId: () => 'notice' };
    opened = openForWriting(options);
    const writer = openWriter(options, opened);
    close = () => writer.close();
    const [answer] = writer.run([{ verb: 'heartbeat', args: [3] }]);
    if (answer?.ok !== true) throw answer?.error;
  } catch (error) {
    close();
    const { code, message } = error as NodeJS.ErrnoException;
    return { verdict: 'refused', detail: `${code}: ${message}`, found: NOTHING };
  }
  try {
    const damage = damageOf(opened);
    if (damage !== null) return { verdict: 'damaged', detail: damage, found: NOTHING };
    const { found, fault } = readAll(opened);
    if (fault !== null) return { verdict: 'half', detail: fault, found };
    if (isSame(found, acknowledged) || isSame(found, asked)) return { verdict: 'kept', detail: '', found };
    const isWhole = boundaries.some((boundary) => isSame(found, boundary));
    const detail = `acknowledged: ${inWords(acknowledged)}; found: ${inWords(found)}`;
    return { verdict: isWhole ? 'lost' : 'half', detail, found };
  } catch (error) {
    return { verdict: 'damaged', detail: String(error), found: NOTHING };
  } finally {
    close();
  }
}

function damageOf({ db }: OpenedDatabase): string | null {
  const check = db.pragma('integrity_check', { simple: true });
  if (check !== 'ok') return String(check);
  const strays = db.pragma('foreign_key_check') as unknown[];
  return strays.length === 0 ? null : `foreign_key_check: ${JSON.stringify(strays[0])}`;
}

type Read = { found: Progress; fault: string | null };

/** Reads every order and event. `fault` is the first thing that does not fit the number of settled events. */
function readAll(opened: OpenedDatabase): Read {
  const events = readEvents(opened);
  const orders = readOrders(opened);
  const settled = events.filter(({ status }) => status === 'done').length;
  const found = { links: orders.length, events: events.length, settled };
  const states = statesAfter(settled);
  const fault =
    firstFault(events, (row, index) => eventFault(row, index + 1, settled)) ??
    firstFault(orders, (row, index) => orderFault(row, index + 1, states.get(index + 1) ?? 'awaiting_payment')) ??
    strayFault(opened, found, [...states.values()]);
  return { found, fault };
}

function firstFault<T>(rows: readonly T[], faultOf: (row: T, index: number) => string | null): string | null {
  for (const [index, row] of rows.entries()) {
    const fault = faultOf(row, index);
    if (fault !== null) return fault;
  }
  return null;
}

type EventRow = { key: number; link: number; eventId: string; status: string; body: Buffer | null };

function readEvents({ db }: OpenedDatabase): EventRow[] {
  return db
    .prepare(
      `SELECT i.key, i.link_key AS link, i.event_id AS eventId, i.status, b.body
       FROM inbox i LEFT JOIN inbox_body b ON b.inbox_key = i.key ORDER BY i.key`,
    )
    .all() as EventRow[];
}

const known: ProvedEvent[] = [];

function knownEvent(number: number): ProvedEvent {
  known[number] ??= eventNumber(number);
  return known[number] as ProvedEvent;
}

function eventFault({ key, link, eventId, status, body }: EventRow, number: number, settled: number): string | null {
  const event = knownEvent(number);
  if (key !== number || eventId !== `evt_${number}` || link !== event.link) return `event ${number} is not there`;
  if (body === null || !body.equals(event.body)) return `the bytes of event ${number} are not the same`;
  const expected = number <= settled ? 'done' : 'pending';
  return status === expected ? null : `event ${number} is ${status}, though ${settled} are settled`;
}

type StoredOrder = OrderRow & { key: number; link: number | null; pendingNotices: number };

function readOrders({ db }: OpenedDatabase): StoredOrder[] {
  return db
    .prepare(
      `SELECT o.key, l.key AS link, stored.*,
         (SELECT count(*) FROM outbox n WHERE n.order_key = o.key AND n.type = 'order.payment_pending')
           AS pendingNotices
       FROM (${ORDERS}) stored JOIN orders o USING (reference) LEFT JOIN link l ON l.order_key = o.key ORDER BY o.key`,
    )
    .all() as StoredOrder[];
}

type State = 'awaiting_payment' | 'payment_pending' | 'paid';

/** The states of the orders that the first `settled` events are about. */
function statesAfter(settled: number): Map<number, State> {
  const states = new Map<number, State>();
  for (let number = 1; number <= settled; number++) {
    const { link, kind } = knownEvent(number);
    states.set(link, kind === 'completed' ? 'paid' : 'payment_pending');
  }
  return states;
}

function orderFault({ key, link, pendingNotices, ...row }: StoredOrder, number: number, state: State): string | null {
  const reference = referenceOf(number);
  if (key !== number || row.reference !== reference || link !== number) return `order ${number} is not there`;
  const isPaid = state === 'paid';
  const expected = isPaid ? paidOnce(reference, amountOf(number), [`pay_${number}`]) : unpaid(reference, state);
  const [is, mustBe] = [JSON.stringify(row), JSON.stringify(expected)];
  if (is !== mustBe) return `an order is ${is}, and must be ${mustBe}`;
  if (state !== 'payment_pending' || pendingNotices === 1) return null;
  return `${reference} is pending with ${pendingNotices} notices of it`;
}

/** Finds rows that belong to no order or event. */
function strayFault({ db }: OpenedDatabase, { links, events }: Progress, states: readonly State[]): string | null {
  const paid = states.filter((state) => state === 'paid').length;
  const expected: Record<string, number> = { link: links, inbox_body: events, settlement: paid, ledger: paid };
  for (const [table, rows] of Object.entries(expected)) {
    const count = db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
    if (count !== rows) return `${table} has ${count} rows instead of ${rows}`;
  }
  return null;
}
