import type pg from 'pg';
import type { SentEvent } from '../harness/load.ts';
import { ORDERS, type OrderRow, paidOnce } from '../harness/orders.ts';
import { AMOUNT_MINOR } from '../harness/send.ts';
import type { Link } from '../stories/wire.ts';

/** What the database must contain in the end. */
export type Promised = {
  events: readonly SentEvent[];
  /** Every order, by its reference. */
  references: readonly string[];
  /** How often the shop accepted each notice, by id. */
  taken: ReadonlyMap<string, number>;
  /** Notices that it refused, by id. */
  refused: ReadonlyMap<string, object>;
  /** Links of the service with their payments, and the orders that were opened. */
  links: readonly Link[];
  opened: readonly string[];
};

type EventRow = { linkId: string; eventId: string; body: Buffer; receivedAtMs: string; deliveries: number };
/** The clocks of a replica and of this process may differ this much: each replica measures the database's. */
const CLOCKS_MS = 100;

const EVENTS = `SELECT l.link_id AS "linkId", i.event_id AS "eventId", b.body, i.received_at_ms AS "receivedAtMs",
    i.duplicates + 1 AS deliveries
  FROM inbox i JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key WHERE i.reading IS NULL`;
const HINTS = `SELECT l.link_id AS "linkId", h.event_id AS "eventId", h.body, h.first_at_ms AS "receivedAtMs",
    h.count AS deliveries
  FROM hint h JOIN link l ON l.key = h.link_key`;
const NOTICES = `SELECT 'msg_' || key || '_' || notice_id AS id, superseded IS TRUE AS "isSuperseded" FROM outbox`;
const LINKS = `SELECT o.reference, l.link_id AS id FROM link l JOIN orders o ON o.key = l.order_key WHERE l.opened`;
/** Links whose place in the check queue and whose reasons for it are not together. */
const ASTRAY = `SELECT link_key AS link FROM link_check c FULL JOIN check_reason r USING (link_key)
  WHERE c.reason IS NULL OR r.reason IS NULL`;
const LEFT = ['inbox', 'opening', 'outbox'].map(
  (table) => `SELECT '${table}' AS table, status, count(*)::int AS rows FROM ${table}
    WHERE status IN ('pending', 'leased', 'dead') ${table === 'outbox' ? 'AND superseded IS NOT TRUE' : ''}
    GROUP BY status`,
);

/** The work that is left, by table and status. */
export async function leftOver(database: pg.Pool): Promise<string[]> {
  const { rows } = await database.query(LEFT.join(' UNION ALL '));
  return rows.map(({ table, status, rows: count }) => `${count} rows of ${table} are ${status}`);
}

/** Everything in the database that is not as promised. */
export async function examine(database: pg.Pool, promised: Promised): Promise<string[]> {
  return [
    ...(await examineEvents(database, promised)),
    ...(await examineOrders(database, promised)),
    ...(await examineNotices(database, promised)),
    ...(await examineOpenings(database, promised)),
    ...(await database.query(ASTRAY)).rows.map(
      ({ link }) => `link ${link} has lost its place for a check, or the reasons`,
    ),
    ...(await leftOver(database)),
  ];
}

async function examineEvents(database: pg.Pool, { events }: Promised): Promise<string[]> {
  const broken: string[] = [];
  const stored = (await database.query<EventRow>(EVENTS)).rows;
  const hints = (await database.query<EventRow>(HINTS)).rows;
  const found = new Map([...stored, ...hints].map((row) => [`${row.linkId} ${row.eventId}`, row]));
  if (found.size !== stored.length + hints.length) broken.push('an event is stored more than once');
  if (found.size !== events.length) broken.push(`${found.size} events are stored of ${events.length} sent`);
  for (const { link, id, body, acknowledged, acknowledgedAtMs } of events) {
    const row = found.get(`${link.id} ${id}`);
    if (row === undefined) broken.push(`${id} was acknowledged and is not stored`);
    else if (!row.body.equals(Buffer.from(body))) broken.push(`${id} is stored with other bytes`);
    // It was lost, and stored again when a later copy arrived.
    else if (Number(row.receivedAtMs) > acknowledgedAtMs + CLOCKS_MS)
      broken.push(`${id} was stored after its acknowledgement`);
    else if (row.deliveries < acknowledged) {
      broken.push(`${id} was acknowledged ${acknowledged} times, and ${row.deliveries} are counted`);
    }
  }
  return broken;
}

async function examineOrders(database: pg.Pool, promised: Promised): Promise<string[]> {
  const { references, links } = promised;
  const paid = new Map(links.map(({ reference, payments }) => [reference, payments.map(({ id }) => id).sort()]));
  const { rows } = await database.query<OrderRow>(ORDERS);
  const found = new Map(rows.map((row) => [row.reference, row]));
  const broken = rows.length === references.length ? [] : [`there are ${rows.length} orders`];
  for (const reference of references) {
    const expected = paidOnce(reference, AMOUNT_MINOR, paid.get(reference));
    const [is, mustBe] = [JSON.stringify(found.get(reference)), JSON.stringify(expected)];
    if (is !== mustBe) broken.push(`an order is not paid once: ${is}`);
  }
  return broken;
}

async function examineNotices(database: pg.Pool, { taken, refused }: Promised): Promise<string[]> {
  const { rows } = await database.query<{ id: string; isSuperseded: boolean }>(NOTICES);
  const committed = new Set(rows.map(({ id }) => id));
  const needless = rows.filter(({ isSuperseded }) => isSuperseded).map(({ id }) => id);
  const owed = rows.filter(({ isSuperseded }) => !isSuperseded).map(({ id }) => id);
  return [
    ...owed.filter((id) => !taken.has(id)).map((id) => `${id} never reached the shop`),
    ...needless.filter((id) => !refused.has(id)).map((id) => `${id} is superseded, and was never refused`),
    ...[...taken.keys(), ...refused.keys()]
      .filter((id) => !committed.has(id))
      .map((id) => `${id} was sent and is not stored`),
  ];
}

async function examineOpenings(database: pg.Pool, { links, opened }: Promised): Promise<string[]> {
  const known = (await database.query<{ reference: string; id: string }>(LINKS)).rows;
  return opened.flatMap((reference) => {
    const theirs = links.filter((link) => link.reference === reference).map(({ id }) => id);
    const ours = known.filter((link) => link.reference === reference).map(({ id }) => id);
    const isOne = theirs.length === 1 && ours.length === 1 && theirs[0] === ours[0];
    return isOne ? [] : [`${reference} has the links ${theirs} at the service, and ${ours} here`];
  });
}
