import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { compareRows } from '../test/support/moved_rows.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { move, openPlace, seed } from './move_round.ts';

/** Moves a large store, and compares every row as the drivers of both engines read it. */

const MOVED_WITHIN_MS = 600_000;

/** Tables of an order, and the columns that a copy of its rows must have of its own. */
const COPIED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  orders: { key: 'key + n', reference: "reference || '-' || n" },
  link: {
    key: 'key + n',
    order_key: 'order_key + n',
    link_id: "link_id || '-' || n",
    token: "token || '-' || n",
    next_check_at_ms: 'NULL',
  },
  settlement: { order_key: 'order_key + n' },
  ledger: { order_key: 'order_key + n', payment_key: "payment_key || '-' || n" },
  history: { key: 'key + n', order_key: 'order_key + n' },
  inbox: { key: 'key + n', link_key: 'link_key + n', event_id: "event_id || '-' || n" },
  inbox_body: { inbox_key: 'inbox_key + n' },
  outbox: { key: 'key + n', notice_id: "notice_id || '-' || n", order_key: 'order_key + n' },
};

/** Above every key that the one order has. */
const FREE = 100;

/** Copies what one order has of rows, so that the store has that many events. */
function fill(path: string, events: number): void {
  const db = new Database(path);
  db.pragma('synchronous = OFF');
  db.pragma('foreign_keys = OFF');
  const one = { key: 1, order_key: 1, link_key: 1, inbox_key: 1 };
  db.transaction(() => {
    for (const [table, made] of Object.entries(COPIED)) {
      const columns = (db.pragma(`table_info(${table})`) as { name: string; pk: number }[]).map(({ name }) => name);
      const lead = columns.find((name) => name in one) as string;
      const values = columns.map((name) => made[name] ?? name).join(', ');
      db.exec(`INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values} FROM ${table},
        (WITH RECURSIVE c (n) AS (SELECT ${FREE} UNION ALL SELECT n + 1 FROM c WHERE n < ${FREE + events - 1}) SELECT n FROM c) WHERE ${lead} = 1 ORDER BY n`);
    }
  })();
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}

export async function proveMillion(events: number, print: (line: string) => void): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-move-'));
  const server = await startPostgres({ beneath: tmpdir() });
  const place = await openPlace(join(folder, 'store'));
  const broken: string[] = [];
  try {
    const path = join(folder, 'store', 'settled.db');
    await seed(join(folder, 'store'), 1, 1);
    fill(path, events);
    const url = await server.create('moved');
    const startedMs = performance.now();
    const { code, stdout, stderr } = await move(place.environment, url);
    const tookMs = performance.now() - startedMs;
    if (code !== 0) throw new Error(`the move ended with ${code}: ${stderr}`);
    print(`moved ${JSON.parse(stdout).rows} rows of ${events} events in ${(tookMs / 1000).toFixed(1)} s`);
    if (tookMs > MOVED_WITHIN_MS) broken.push(`the move took ${tookMs} ms`);
    let rows = 0;
    const differing = await compareRows(path, url, (_table, n) => (rows += n));
    broken.push(...differing);
    print(`${rows} rows were compared one by one: ${differing.length === 0 ? 'all are equal' : 'some differ'}`);
    return broken;
  } finally {
    place.close();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
