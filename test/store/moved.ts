import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { postgresAddress } from '../../src/store/address.ts';
import type { Store } from '../../src/store/contract.ts';
import { type Moved, moveStore } from '../../src/store/move/move.ts';
import { NOT_MOVED } from '../../src/store/move/tables.ts';
import type { Delivery } from '../../src/store/verbs/intake.ts';
import { systemClock } from '../../src/work/clock.ts';
import { compareRows } from '../support/moved_rows.ts';
import { LEASE_MS } from './contract/world.ts';
import { runIn } from './postgres/contract_store.ts';
import { openTestPostgres, sharedServer } from './postgres/opening.ts';
import { openTestStore } from './sqlite/opening.ts';

/** What a store is after a move is what it was: asked in both places, with all that the contract leaves in a store. */
export function movedStore(pathOfFile: () => string): void {
  describe('a SQLite store that was moved to PostgreSQL', () => {
    it('has every row, answers every question as before, and goes on as it would have', async () => {
      const { path, url, moved } = await moveCopy(pathOfFile());
      const counts = Object.fromEntries(moved.tables.map(({ table, rows }) => [table, rows]));
      expect(counts).toEqual(countRows(path));
      expect(Object.keys(counts).filter((table) => counts[table] === 0)).toEqual([]);
      expect(await compareRows(path, url, () => {})).toEqual([]);
      const [here, there] = [
        (await openTestStore(`${path}.served`)).store,
        // It answers hundreds of questions at once, which takes more than 10 s on a busy machine.
        (await openTestPostgres(url, { secretsKeyId: KEY, callTimeoutMs: 120_000 })).store,
      ];
      onTestFinished(async () => void (await Promise.all([here.close(), there.close()])));
      const links = linksOf(path);
      expect(await answersOf(there, links)).toEqual(await answersOf(here, links));
      expect(await deedsOf(there, links)).toEqual(await deedsOf(here, links));
      expect(await answersOf(there, links)).toEqual(await answersOf(here, links));
    });
  });
}

const KEY = 'key-1';
const NOW_MS = 1_900_000_000_000;

async function moveCopy(file: string): Promise<{ path: string; url: string; moved: Moved }> {
  const path = `${file}.moved`;
  const name = `moved_${randomUUID()}`;
  const url = await sharedServer().create(name);
  onTestFinished(() => sharedServer().drop(name));
  // As a database, or a role, may have it.
  await runIn(url, `ALTER DATABASE "${name}" SET bytea_output = 'escape'`);
  cpSync(file, path);
  addOddRows(path);
  // An opening gives back leases, as the move does.
  cpSync(path, `${path}.served`);
  const moved = await moveStore({
    path,
    to: postgresAddress(url),
    keyIds: [KEY],
    clock: systemClock,
    onProgress: () => {},
  });
  return { path, url, moved };
}

/** What COPY writes in words of its own, and a state that the contract's tests keep to stores of their own. */
const ODD = 'tab \t, line \n and \r, \\N, \\. and \\x00, \b\v\f\u0001\0, \u{1F389}, \u2028';

function addOddRows(path: string): void {
  const db = new Database(path);
  db.prepare('UPDATE attention SET detail = ? WHERE key % 2 = 0').run(ODD);
  db.prepare("UPDATE orders SET adopted_payment_id = '' WHERE key = 1").run();
  db.prepare(
    `INSERT INTO shop_failure (one, attempts, since_ms, last_at_ms, fault_code, fault_message, answer_status, answer_body, raised)
     VALUES (1, 3, 5, 7, 'shop_refused', ?, 500, ?, 0)`,
  ).run(ODD, '\\N');
  db.close();
}

function countRows(path: string): Record<string, number> {
  const db = new Database(path, { readonly: true });
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  const mine = names.filter((name) => !(NOT_MOVED.sqlite as readonly string[]).includes(name));
  const counts = mine.map((name) => [name, db.prepare(`SELECT count(*) FROM ${name}`).pluck().get()]);
  db.close();
  return Object.fromEntries(counts);
}

type LinkRow = { linkKey: number; token: string; reference: string };

function linksOf(path: string): LinkRow[] {
  const db = new Database(path, { readonly: true });
  const rows = db
    .prepare(
      'SELECT l.key AS linkKey, l.token, o.reference FROM link l JOIN orders o ON o.key = l.order_key ORDER BY l.key',
    )
    .all();
  db.close();
  return rows as LinkRow[];
}

/** All that people, shops and the service's deliveries ask of a store. */
async function answersOf(store: Store, links: readonly LinkRow[]): Promise<unknown> {
  const page = { limit: 1_000, after: null } as const;
  const references = [...new Set(links.map(({ reference }) => reference))];
  const each = <T>(ask: (reference: string) => Promise<T>) => Promise.all(references.map(ask));
  const events = await store.listEvents(page);
  const notices = await store.listNotices(page);
  return plain({
    stats: await store.stats(NOW_MS),
    orders: await store.listOrders(page),
    found: await each((reference) => store.findOrder(reference)),
    why: await each((reference) => store.timeline(reference)),
    secrets: await Promise.all(links.map(({ token }) => store.findCredentials({ token }))),
    events,
    bodies: await Promise.all(events.rows.map(({ key }) => store.findEvent(key))),
    notices,
    rejections: await store.listRejections(page),
    feed: await store.readFeed({ after: 0, limit: 10_000, bytesMax: 100_000_000 }),
    feedEnd: await store.findFeedEnd(),
    matters: await store.listMatters({ ...page, kind: null, state: null }),
    drift: await store.listDrift({ ...page, reference: null }),
    hints: await store.listHints({ ...page, reference: null }),
    tokens: await store.listTokens(),
    sessions: await store.listSessions({ bootstrapSha256: Buffer.alloc(32), nowMs: NOW_MS }),
    audit: await store.listAudit({ ...page, actor: null, subject: null }),
    auditHead: await store.auditHead(),
    bulk: await store.listBulk(page),
    shop: await store.shopState(),
  });
}

/** What comes next: a new delivery and one that came before, and the work that waits. */
async function deedsOf(store: Store, links: readonly LinkRow[]): Promise<unknown> {
  const claim = { limit: 1_000, nowMs: NOW_MS, leaseMs: LEASE_MS };
  const [first] = links as [LinkRow, ...LinkRow[]];
  const delivery = deliveryTo(first);
  return plain({
    recorded: await store.recordDelivery(delivery),
    duplicate: await store.recordDelivery(delivery),
    events: await store.claimEvents(claim),
    notices: await store.claimNotices({ ...claim, tried: false }),
    triedNotices: await store.claimNotices({ ...claim, tried: true }),
    openings: await store.claimOpenings(claim),
    checks: await store.claimChecks({ ...claim, limit: 10, slots: 50 }),
  });
}

function deliveryTo({ linkKey }: LinkRow): Delivery {
  const body = Buffer.from('{"id":"evt_after_the_move"}');
  return {
    linkKey,
    eventId: 'evt_after_the_move',
    bodySha256: Buffer.alloc(32, 1),
    body,
    timestamp: '1',
    mac: Buffer.alloc(32, 2),
    type: 'payment_link.payment_status_changed',
    readable: true,
    isPaymentId: false,
    receivedAtMs: NOW_MS,
  };
}

/** Without the classes of bytes, of which each driver has its own; and with what PostgreSQL stores for U+0000. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (typeof value === 'string') return value.replaceAll('\0', '\ufffd');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}
