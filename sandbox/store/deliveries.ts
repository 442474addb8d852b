import type { Database } from 'better-sqlite3';
import type { EventKind } from '../model.ts';
import type { Ids } from './statements.ts';
import { numbering, type Row, statements } from './statements.ts';

/** The sending of one event to its link's webhookUrl, with all its attempts. */
export type Delivery = {
  number: number;
  id: string;
  eventNumber: number;
  linkNumber: number;
  /** Why it is sent: a change emitted it, a request asked for it again, or the panel sent it. */
  origin: 'automatic' | 'resend' | 'panel';
  /** `lost`: a fault dropped it, and the service believes that it arrived. */
  status: 'waiting' | 'acknowledged' | 'given_up' | 'lost';
  dueAtMs: number | null;
  attempts: number;
  firstAttemptMs: number | null;
  /** What the first attempt was stamped with; retries that are signed once carry it again. */
  firstTimestamp: string | null;
  /** The faults of the next attempt, once they are drawn; null before, and if there are none. */
  held: Held | null;
  createdAtMs: number;
};

export type DrawnFault = { fault: string; takes: Record<string, unknown> };

export type Held = {
  faults: DrawnFault[];
  /** How many of the faults that put a delivery off have done so. */
  postponed: number;
  /** How many later deliveries of the link had been sent when this one was held back by a reorder. */
  sentBefore: number;
};

export type Attempt = {
  deliveryNumber: number;
  /** 1 for the first. */
  ordinal: number;
  atMs: number;
  tookMs: number;
  /** The names of the faults that were done to it. */
  faults: string[];
  timestamp: string;
  signature: string;
  responseStatus: number | null;
  responseBody: string | null;
  error: string | null;
};

type DeliveryKey = { id: string } | { number: number };
type NewDelivery = { event: StoredEvent; origin: Delivery['origin']; nowMs: number };

export function deliveryRows(db: Database, ids: Ids) {
  const { one, all, run } = statements(db);
  const nextNumber = numbering(db, 'delivery');
  const insert = run(
    `INSERT INTO delivery (number, id, event_number, link_number, origin, status, due_at_ms, created_at_ms)
     VALUES (?, ?, ?, ?, ?, 'waiting', ?, ?)`,
  );
  const by = { id: one('SELECT * FROM delivery WHERE id = ?'), number: one('SELECT * FROM delivery WHERE number = ?') };
  const ofLink = all('SELECT * FROM delivery WHERE ?1 IS NULL OR link_number = ?1 ORDER BY number');
  const due = db.prepare(
    `SELECT this.number, link.webhook_url AS url FROM delivery AS this JOIN link ON link.number = this.link_number
     WHERE this.status = 'waiting' AND this.due_at_ms <= $nowMs AND this.number <= $last
     AND (this.attempts > 0 OR NOT EXISTS (
       SELECT 1 FROM delivery AS before WHERE before.status = 'waiting' AND before.attempts = 0
       AND before.link_number = this.link_number AND before.number < this.number AND before.due_at_ms <= $nowMs))
     ORDER BY this.due_at_ms, this.number`,
  );
  const anyDue = one(`SELECT 1 FROM delivery WHERE status = 'waiting' AND due_at_ms <= ? AND number <= ? LIMIT 1`);
  const last = one('SELECT coalesce(max(number), 0) AS n FROM delivery');
  const nextDue = one(`SELECT min(due_at_ms) AS n FROM delivery WHERE status = 'waiting' AND due_at_ms > ?`);
  const update = run(
    `UPDATE delivery SET status = ?, due_at_ms = ?, attempts = ?, first_attempt_ms = ?, first_timestamp = ?,
       held = ? WHERE number = ?`,
  );
  const heldBack = all(
    `SELECT * FROM delivery WHERE (?1 IS NULL OR link_number = ?1) AND status = 'waiting' AND due_at_ms IS NULL
     ORDER BY number`,
  );
  const sentAfter = one('SELECT count(*) AS n FROM delivery WHERE link_number = ? AND number > ? AND attempts > 0');
  return {
    addDelivery: ({ event, origin, nowMs }: NewDelivery): Delivery => {
      const number = nextNumber();
      insert(number, ids.id('delivery', number), event.number, event.linkNumber, origin, nowMs, nowMs);
      return readDelivery(by.number(number) as Row);
    },
    findDelivery: (key: DeliveryKey): Delivery | null => {
      const [[name, value]] = Object.entries(key) as [[keyof typeof by, string | number]];
      const row = by[name](value);
      return row === undefined ? null : readDelivery(row);
    },
    /** Of one link, or of all. */
    deliveries: (linkNumber: number | null) => ofLink(linkNumber).map(readDelivery),
    /**
     * The numbers of those that are due, up to a number, each with its address; oldest first. Of the first attempts
     * of a link only the earliest event's. The store takes no other statement while this is read.
     */
    dueDeliveries: (nowMs: number, lastNumber: number) =>
      due.iterate({ nowMs, last: lastNumber }) as IterableIterator<{ number: number; url: string }>,
    /** Whether a delivery up to this number is due, in flight or not. */
    isDue: (nowMs: number, lastNumber: number) => anyDue(nowMs, lastNumber) !== undefined,
    /** 0 if there is none. */
    lastDeliveryNumber: () => (last() as Row).n as number,
    /** The earliest due time later than this. */
    nextDueMs: (afterMs: number) => (nextDue(afterMs) as Row).n as number | null,
    updateDelivery: (delivery: Delivery) => {
      const { number, status, dueAtMs, attempts, firstAttemptMs, firstTimestamp } = delivery;
      const held = delivery.held === null ? null : JSON.stringify(delivery.held);
      update(status, dueAtMs, attempts, firstAttemptMs, firstTimestamp, held, number);
    },
    /** Those of a link, or of all, that wait for others to be sent first. */
    heldBack: (linkNumber: number | null) => heldBack(linkNumber).map(readDelivery),
    /** How many later deliveries of a link were attempted. */
    sentAfter: (linkNumber: number, number: number) => (sentAfter(linkNumber, number) as Row).n as number,
  };
}

export function attemptRows(db: Database) {
  const { all, run } = statements(db);
  const insert = run(
    `INSERT INTO attempt (delivery_number, ordinal, at_ms, took_ms, faults, timestamp, signature, response_status,
       response_body, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const ofDelivery = all('SELECT * FROM attempt WHERE delivery_number = ? ORDER BY number');
  const ofLink = all(
    `SELECT attempt.* FROM attempt JOIN delivery ON delivery.number = delivery_number
     WHERE ?1 IS NULL OR link_number = ?1 ORDER BY at_ms, attempt.number`,
  );
  return {
    addAttempt: (attempt: Attempt) =>
      insert(
        attempt.deliveryNumber,
        attempt.ordinal,
        attempt.atMs,
        attempt.tookMs,
        JSON.stringify(attempt.faults),
        attempt.timestamp,
        attempt.signature,
        attempt.responseStatus,
        attempt.responseBody,
        attempt.error,
      ),
    attemptsOf: (deliveryNumber: number) => ofDelivery(deliveryNumber).map(readAttempt),
    /** Of one link, or of all, in the order in which they were made. */
    attempts: (linkNumber: number | null) => ofLink(linkNumber).map(readAttempt),
  };
}

function readDelivery(row: Row): Delivery {
  return {
    number: row.number as number,
    id: row.id as string,
    eventNumber: row.event_number as number,
    linkNumber: row.link_number as number,
    origin: row.origin as Delivery['origin'],
    status: row.status as Delivery['status'],
    dueAtMs: row.due_at_ms as number | null,
    attempts: row.attempts as number,
    firstAttemptMs: row.first_attempt_ms as number | null,
    firstTimestamp: row.first_timestamp as string | null,
    held: row.held === null ? null : JSON.parse(row.held as string),
    createdAtMs: row.created_at_ms as number,
  };
}

function readAttempt(row: Row): Attempt {
  return {
    deliveryNumber: row.delivery_number as number,
    ordinal: row.ordinal as number,
    atMs: row.at_ms as number,
    tookMs: row.took_ms as number,
    faults: JSON.parse(row.faults as string),
    timestamp: row.timestamp as string,
    signature: row.signature as string,
    responseStatus: row.response_status as number | null,
    responseBody: row.response_body as string | null,
    error: row.error as string | null,
  };
}

export type StoredEvent = {
  number: number;
  id: string;
  linkNumber: number;
  kind: EventKind;
  body: string;
  createdAtMs: number;
};

type EventKey = { id: string } | { number: number };

export function eventRows(db: Database, ids: Ids) {
  const { one, all, run } = statements(db);
  const nextNumber = numbering(db, 'event');
  const insert = run('INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)');
  const by = { id: one('SELECT * FROM event WHERE id = ?'), number: one('SELECT * FROM event WHERE number = ?') };
  const ofLink = all('SELECT * FROM event WHERE ?1 IS NULL OR link_number = ?1 ORDER BY number');
  return {
    /** The body is made once the id is known. */
    addEvent: (event: Omit<StoredEvent, 'number' | 'id' | 'body'>, makeBody: (id: string) => string): StoredEvent => {
      const number = nextNumber();
      const id = ids.id('event', number);
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
