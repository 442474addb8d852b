import { describe, it } from 'vitest';
import { newDatabase } from '../store/postgres/opening.ts';
import { times } from '../support/timing.ts';
import { type KilledStore, killOverAndOver, type OrderRow } from './killing.ts';
import { lapseLeases, lookInto, sharedEnvironment } from './sharing.ts';

const CYCLES = Number(process.env.KILL_CYCLES ?? times(5, 50));

describe('a killed process on PostgreSQL', () => {
  it(`has stored and settled everything that it acknowledged once, over ${CYCLES} kills on one database`, async () => {
    await killOverAndOver(storeAt(await newDatabase()), CYCLES);
  });
});

type EventRow = Awaited<ReturnType<KilledStore['events']>>[number];

const EVENTS = `SELECT l.token, i.event_id AS "eventId", b.body, i.status FROM inbox i
  JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key`;
const ORDERS = `SELECT o.reference, o.state,
    (SELECT count(*)::int FROM settlement s WHERE s.order_key = o.key) AS settlements,
    (SELECT string_agg(concat_ws(' ', kind, payment_key, amount_minor), ',') FROM ledger e
      WHERE e.order_key = o.key) AS entries,
    (SELECT count(*)::int FROM outbox n WHERE n.order_key = o.key AND n.type = 'order.paid') AS "paidNotices"
  FROM orders o`;

function storeAt(url: string): KilledStore {
  const database = lookInto(url);
  return {
    environment: sharedEnvironment(url),
    bodies: async (events) => {
      const { rows } = await database.query<EventRow>(
        `${EVENTS} WHERE (l.token, i.event_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
        [events.map(({ token }) => token), events.map(({ eventId }) => eventId)],
      );
      return events.map(({ token, eventId }) =>
        rows.filter((row) => row.token === token && row.eventId === eventId).map(({ body }) => body),
      );
    },
    events: async () => (await database.query<EventRow>(EVENTS)).rows,
    hints: async () => (await database.query('SELECT event_id FROM hint')).rows.map((row) => row.event_id),
    orders: async () => (await database.query<OrderRow>(ORDERS)).rows,
    lapseLeases: () => lapseLeases(database),
  };
}
