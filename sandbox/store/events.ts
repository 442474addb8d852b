import type { Database } from 'better-sqlite3';
import type { Chance } from '../chance.ts';
import type { EventKind } from '../model.ts';
import { numbering, type Row, statements } from './statements.ts';

export type StoredEvent = {
  number: number;
  id: string;
  linkNumber: number;
  kind: EventKind;
  body: string;
  createdAtMs: number;
};

type EventKey = { id: string } | { number: number };

export function eventRows(db: Database) {
  const { one, all, run } = statements(db);
  const nextNumber = numbering(db, 'event');
  const insert = run('INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)');
  const by = { id: one('SELECT * FROM event WHERE id = ?'), number: one('SELECT * FROM event WHERE number = ?') };
  const ofLink = all('SELECT * FROM event WHERE ?1 IS NULL OR link_number = ?1 ORDER BY number');
  return {
    /** The body is made once the id is known. */
    addEvent: (
      chance: Chance,
      event: Omit<StoredEvent, 'number' | 'id' | 'body'>,
      makeBody: (id: string) => string,
    ): StoredEvent => {
      const number = nextNumber();
      const id = chance.id('event', number);
      const body = makeBody(id);
      insert(number, id, event.linkNumber, event.kind, body, event.createdAtMs);
      return { ...event, number, id, body };
    },
    findEvent: (key: EventKey): StoredEvent | null => {
      const [[name, value]] = Object.entries(key) as [[keyof typeof by, string | number]];
      const row = by[name](value);
      return row === undefined ? null : readEvent(row);
    },
    /** Of one link, or of all. */
    events: (linkNumber: number | null) => ofLink(linkNumber).map(readEvent),
  };
}

function readEvent(row: Row): StoredEvent {
  return {
    number: row.number as number,
    id: row.id as string,
    linkNumber: row.link_number as number,
    kind: row.kind as EventKind,
    body: row.body as string,
    createdAtMs: row.created_at_ms as number,
  };
}
