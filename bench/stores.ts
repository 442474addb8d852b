import { createHash, randomUUID } from 'node:crypto';
import { closeSync, copyFileSync, fsyncSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { parseBodyExactly } from '../src/json.ts';
import { deliveryMac, readEvent } from '../src/paylink/events.ts';
import { openKeyring } from '../src/secrets/keyring.ts';
import { type Call, openWriter } from '../src/store/sqlite/group_commit.ts';
import type { ClaimedEvent } from '../src/store/verbs/inbox.ts';
import type { Registration } from '../src/store/verbs/links.ts';
import { AMOUNT_MINOR, benchLink, CURRENCY, completedEvent } from './deliveries.ts';

/**
 * Databases as the servers find them at their start. settled's are made through its own engine, in big transactions,
 * because registering as many links over HTTP would take longer than the measurement.
 */

/** The key under which the bench's signing secrets rest. */
export const SECRETS_KEY = createHash('sha256').update('bench secrets key').digest();
export const KEYRING = openKeyring(SECRETS_KEY);

const BATCH = 5_000;

export type Range = { from: number; count: number };

/** Makes a database, or opens the one that is there, and registers links in it. */
export function registerLinks(path: string, range: Range): void {
  writeBatches(path, range, (run, numbers) => run(numbers.map(registration)));
}

/** As `registerLinks`, with the COMPLETED event of each link received and settled. */
export function fillStore(path: string, range: Range, onProgress: (done: number) => void): void {
  let done = 0;
  writeBatches(path, range, (run, numbers) => {
    run(numbers.map(registration));
    const tokens = numbers.map((n) => ({ verb: 'findCredentials', args: [{ token: benchLink(n).token }] }));
    const found = run(tokens) as { linkKey: number }[];
    run(numbers.map((n, index) => delivery(n, (found[index] as { linkKey: number }).linkKey)));
    for (let left = numbers.length; left > 0; ) {
      const claimed = claim(run, left);
      if (claimed.length === 0) break;
      run(claimed.map(settlement));
      left -= claimed.length;
      done += claimed.length;
    }
    onProgress(done);
  });
  if (done !== range.count) throw new Error(`${done} of ${range.count} events were settled`);
}

type Run = (calls: readonly Call[]) => unknown[];

/** Opens a database, has these numbers written batch by batch, and closes it when all of it is on the disk. */
function writeBatches(path: string, range: Range, write: (run: Run, numbers: number[]) => void): void {
  const nowMs = Date.now();
  const newId = randomUUID;
  const writer = openWriter({ path, secretsKeyId: KEYRING.keyId, newInstanceId: newId(), nowMs, newId });
  const run: Run = (calls) =>
    writer.run(calls).map((answer) => {
      if (!answer.ok) throw answer.error;
      return answer.value;
    });
  for (const numbers of batches(range)) write(run, numbers);
  writer.close();
  flush(path);
}

/** As many as one claim gives: it is bounded by their bytes. */
function claim(run: Run, limit: number): ClaimedEvent[] {
  const args = [{ limit, nowMs: Date.now(), leaseMs: 60_000 }];
  const [claimed] = run([{ verb: 'claimEvents', args }]) as [ClaimedEvent[]];
  return claimed;
}

/** Has every notice of a closed database taken by the shop. */
export function endNotices(path: string): void {
  const db = new Database(path);
  db.exec(`UPDATE outbox SET status = 'done', due_at_ms = NULL, ended_at_ms = created_at_ms`);
  db.close();
  flush(path);
}

/** Copies a closed database, and waits until it is on the disk: no measurement may pay for it. */
export function copyStore(from: string, to: string): void {
  copyFileSync(from, to);
  flush(to);
}

function* batches({ from, count }: Range): Generator<number[]> {
  for (let done = 0; done < count; done += BATCH) {
    yield Array.from({ length: Math.min(BATCH, count - done) }, (_, index) => from + done + index);
  }
}

function registration(n: number): Call {
  const { reference, linkId, token, secret } = benchLink(n);
  const sealed = KEYRING.seal(secret, reference);
  const amount = { amountMinor: AMOUNT_MINOR, currency: CURRENCY };
  const link: Registration = {
    ...{ reference, amount, linkId, token, secret: sealed, freshSecret: sealed },
    ...{ by: null, mayCorrect: false, atMs: Date.now() },
  };
  return { verb: 'registerLink', args: [link] };
}

function delivery(n: number, linkKey: number): Call {
  const link = benchLink(n);
  const body = Buffer.from(completedEvent(n, link));
  const receivedAtMs = Date.now();
  const timestamp = String(receivedAtMs);
  const args = {
    linkKey,
    eventId: `evt_${link.linkId}`,
    bodySha256: createHash('sha256').update(body).digest(),
    body,
    timestamp,
    mac: deliveryMac(link.secret, timestamp, body),
    type: 'payment_link.payment_status_changed',
    readable: true,
    receivedAtMs,
  };
  return { verb: 'recordDelivery', args: [args] };
}

function settlement({ eventKey, attempt, body }: ClaimedEvent): Call {
  const reading = readEvent(parseBodyExactly(body));
  return {
    verb: 'settle',
    args: [{ eventKey, attempt, ...reading, link: null, policy: { asks: 'never' }, nowMs: Date.now() }],
  };
}

/** The textbook receiver's database: the same facts in a plain schema, every link registered. */
export function makeTextbookStore(path: string, range: Range): void {
  const db = new Database(path);
  db.exec(TEXTBOOK_SCHEMA);
  const order = db.prepare('INSERT INTO orders (reference, amount_minor, currency) VALUES (?, ?, ?)');
  const link = db.prepare('INSERT INTO link (order_key, link_id, token, secret) VALUES (?, ?, ?, ?)');
  const register = db.transaction((numbers: number[]) => {
    for (const n of numbers) {
      const { reference, linkId, token, secret } = benchLink(n);
      const { lastInsertRowid } = order.run(reference, AMOUNT_MINOR, CURRENCY);
      link.run(lastInsertRowid, linkId, token, secret);
    }
  });
  for (const numbers of batches(range)) register(numbers);
  db.close();
  flush(path);
}

export const TEXTBOOK_SCHEMA = `
  CREATE TABLE orders (key INTEGER PRIMARY KEY, reference TEXT NOT NULL UNIQUE, amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'awaiting_payment', paid_at_ms INTEGER, payment_id TEXT) STRICT;
  CREATE TABLE link (key INTEGER PRIMARY KEY, order_key INTEGER NOT NULL REFERENCES orders (key), link_id TEXT UNIQUE,
    token TEXT NOT NULL UNIQUE, secret TEXT NOT NULL) STRICT;
  CREATE TABLE event (key INTEGER PRIMARY KEY, link_key INTEGER NOT NULL REFERENCES link (key), event_id TEXT NOT NULL,
    body BLOB NOT NULL, received_at_ms INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
    UNIQUE (link_key, event_id)) STRICT;
  CREATE INDEX event_pending ON event (key) WHERE status = 'pending';
  CREATE TABLE ledger (key INTEGER PRIMARY KEY, order_key INTEGER NOT NULL REFERENCES orders (key),
    payment_id TEXT NOT NULL, amount_minor INTEGER NOT NULL, at_ms INTEGER NOT NULL, UNIQUE (order_key, payment_id)) STRICT;
  CREATE TABLE history (key INTEGER PRIMARY KEY, order_key INTEGER NOT NULL REFERENCES orders (key),
    at_ms INTEGER NOT NULL, what TEXT NOT NULL, event_key INTEGER) STRICT;
  CREATE INDEX history_by_order ON history (order_key);
  CREATE TABLE outbox (key INTEGER PRIMARY KEY, notice_id TEXT NOT NULL UNIQUE,
    order_key INTEGER NOT NULL REFERENCES orders (key), type TEXT NOT NULL, body TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL) STRICT;
`;

function flush(path: string): void {
  const descriptor = openSync(path, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
