import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { compareRows } from '../test/support/moved_rows.ts';
import { startPostgres } from '../test/support/postgres.ts';
import {
  deliver,
  keepDelivering,
  type Link,
  type Place,
  paid,
  placeOf,
  reserve,
  serveAt,
  startMove,
  startShop,
  waitFor,
} from './move_stores.ts';
import type { Served } from './settled_process.ts';

/** Moves a large store while it takes deliveries, and serves it from PostgreSQL. */

const LIMITS = { allMs: 600_000, refusedMs: 60_000 } as const;
const DELIVERED = 3_000;
const DELIVER_EVERY_MS = 100;

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
      const last = db.prepare(`SELECT max(${lead}) FROM ${table}`).pluck().get() as number;
      const values = columns.map((name) => made[name] ?? name).join(', ');
      db.exec(`INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values} FROM ${table},
        (WITH RECURSIVE c (n) AS (SELECT ${last} UNION ALL SELECT n + 1 FROM c WHERE n < ${last + events - 1}) SELECT n FROM c) WHERE ${lead} = 1 ORDER BY n`);
    }
  })();
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}

/** Reads the feed from its beginning as a shop does, and goes on with its cursor at whoever serves. */
async function readOn(served: Served, read: { cursor: string | null; ids: string[] }): Promise<void> {
  for (;;) {
    const answer = await served.api(`/v1/feed?limit=500${read.cursor === null ? '' : `&after=${read.cursor}`}`);
    if (answer?.status !== 200) throw new Error(`the feed answers ${JSON.stringify(answer)}`);
    for (const { id } of answer.body.notices) read.ids.push(id);
    read.cursor = answer.body.cursor;
    if (!answer.body.more) return;
  }
}

export async function proveMillion(events: number, print: (line: string) => void): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-move-'));
  const server = await startPostgres({ beneath: tmpdir() });
  const shop = await startShop();
  const broken: string[] = [];
  const started: ChildProcess[] = [];
  const expect = (isSo: boolean, what: string) => void (isSo || broken.push(what));
  try {
    mkdirSync(join(folder, 'store'));
    const place = await placeOf(join(folder, 'store'), shop);
    const path = join(folder, 'store', 'settled.db');
    await seed(place);
    let startedMs = performance.now();
    fill(path, events);
    print(`filled with ${events} events in ${seconds(performance.now() - startedMs)}`);
    const begun = serveAt(place);
    started.push(begun.child);
    const first = await begun.serving;
    const links: Link[] = [];
    for (let n = 0; n < DELIVERED; n++) links.push(await reserve(first, `live-${n}`));
    const read = { cursor: null as string | null, ids: [] as string[] };
    await readOn(first, read);
    print(`a feed reader read ${read.ids.length} notices`);
    const delivering = keepDelivering(links, place.hooksPort, DELIVER_EVERY_MS);
    const url = await server.create('moved');
    startedMs = performance.now();
    const end = await startMove(place, url).ended;
    const tookMs = performance.now() - startedMs;
    if (end.code !== 0) throw new Error(`the move ended with ${end.code ?? end.signal}: ${end.stderr}`);
    const report = JSON.parse(end.stdout) as { rows: number; stoppedMs: number };
    begun.child.kill('SIGTERM');
    await begun.ended;
    const replica = serveAt({ ...place, environment: { ...place.environment, SETTLED_STORE: url } });
    started.push(replica.child);
    const second = await replica.serving;
    await waitFor(() => delivering.answers.at(-1)?.status === 200 && delivering.answers.length > 0);
    const refused = delivering.answers.filter(({ status }) => status !== 200);
    const [from, to] = [
      refused[0]?.atMs ?? 0,
      delivering.answers.find(({ status, atMs }) => status === 200 && atMs > (refused.at(-1)?.atMs ?? 0))?.atMs ?? 0,
    ];
    print(`moved ${report.rows} rows in ${seconds(tookMs)}; the file was closed for ${seconds(report.stoppedMs)}`);
    print(
      `deliveries were refused for ${seconds(to - from)}, from the first 503 until a replica took one: ${refused.length} of ${delivering.answers.length}, ${refused.filter(({ status }) => status === 503).length} with 503 and Retry-After`,
    );
    expect(tookMs <= LIMITS.allMs, `the move took ${seconds(tookMs)}`);
    expect(to - from <= LIMITS.refusedMs, `deliveries were refused for ${seconds(to - from)}`);
    await delivering.end();
    await paid(second, delivering.taken);
    const isTold = () => [...shop.told.values()].every((times) => times === 1);
    await readOn(second, read);
    expect(new Set(read.ids).size === read.ids.length, 'the feed reader got a notice twice');
    expect(
      read.ids.length === events + 1 + delivering.taken.length,
      `the feed reader has ${read.ids.length} notices of ${events + 1 + delivering.taken.length}`,
    );
    await waitFor(() => shop.told.size >= 1 + delivering.taken.length);
    expect(isTold(), 'the shop was told something twice');
    print(
      `the feed reader went on with its cursor to ${read.ids.length} notices; the shop was told ${shop.told.size}, each once: ${isTold()}`,
    );
    replica.child.kill('SIGTERM');
    await replica.ended;
    await comparePositions(url, expect);
    await server.drop('moved');
    await compareAnew(place, { path, url: await server.create('compared') }, { expect, print });
    return broken;
  } finally {
    for (const child of started) child.kill('SIGKILL');
    shop.close();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The feed's cursors hold positions, which are the file's keys. */
async function comparePositions(url: string, expect: (isSo: boolean, what: string) => void): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(`SELECT count(*)::int AS n FROM outbox
    WHERE position IS DISTINCT FROM key AND key <= (SELECT to_key FROM counted WHERE name = 'outbox')`);
  await client.end();
  expect(rows[0].n === 0, `${rows[0].n} notices have another position than before`);
}

/** Moves the same file once more, which nobody serves, and compares every row: a replica has changed the first copy since. */
async function compareAnew(
  place: Place,
  { path, url }: { path: string; url: string },
  { expect, print }: { expect: (isSo: boolean, what: string) => void; print: (line: string) => void },
): Promise<void> {
  const db = new Database(path);
  db.exec('UPDATE instance SET moved_to = NULL');
  db.close();
  const startedMs = performance.now();
  const end = await startMove(place, url).ended;
  if (end.code !== 0) throw new Error(`the second move ended with ${end.code ?? end.signal}: ${end.stderr}`);
  print(`moved again without a server in ${seconds(performance.now() - startedMs)}`);
  let rows = 0;
  const differing = await compareRows(path, url, (_table, n) => (rows += n));
  for (const one of differing) print(`differs: ${one}`);
  expect(differing.length === 0, 'rows differ');
  print(`${rows} rows were compared one by one: ${differing.length === 0 ? 'all are equal' : 'some differ'}`);
}

async function seed(place: Place): Promise<void> {
  const begun = serveAt(place);
  const served = await begun.serving;
  const link = await reserve(served, 'first');
  if ((await deliver(place.hooksPort, link)) !== 200) throw new Error('the first payment was not taken');
  await paid(served, [link]);
  await waitFor(() => place.shop.told.size === 1);
  begun.child.kill('SIGTERM');
  await begun.ended;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
