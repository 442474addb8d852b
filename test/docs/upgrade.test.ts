import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { deliver, eventOf } from '../../prove/harness/send.ts';
import { OPERATOR_TOKEN, type Serving } from '../../prove/harness/settled.ts';
import type { OrderDocument } from '../../src/domain/notice.ts';
import { readMigrations } from '../../src/store/migrate.ts';
import { startServing } from '../process/serving.ts';
import { sharedServer } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { blocksIn } from '../support/markdown.ts';
import { paste } from '../support/process.ts';
import { eventually } from '../support/timing.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const page = read('docs/upgrade.md');
const { version } = JSON.parse(read('package.json'));

/** The release before, whose last migration this is. */
const BEFORE = '0.3.0';
const LAST_MIGRATION = 24;

/** What that release said of its rows at the end: test/vectors/0.3.0/make.mjs. */
type Said = {
  orders: OrderDocument[];
  /** The cursor that the shop keeps, and the notices after it. */
  cursor: string;
  notices: unknown[];
  /** A link that waits for its payment, and one whose payment was acknowledged. */
  reserved: { path: string; secret: string };
  taken: { path: string; secret: string; body: string };
  stats: { orders: object; events: object; needsPerson: object };
};
const said: { keys: { sqlite: string; postgres: string }; sqlite: Said; postgres: Said } = JSON.parse(
  read(`test/vectors/${BEFORE}/said.json`),
);

/** The commands of settled in a section of the page, block by block. */
function commandsOf(title: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
  const blocks = blocksIn(section).map((block) => block.trim().split('\n'));
  return blocks.filter((lines) => lines.every((line) => line.startsWith('settled ')));
}

/** Runs commands as the page writes them. Throws if one fails. */
function pasted(lines: readonly string[], environment: Record<string, string>): string {
  const launcher = `'${process.execPath}' '${join(ROOT, 'bin/settled.mjs')}'`;
  return paste(lines.map((line) => line.replace(/^settled/, launcher)).join('\n'), environment, testFolder());
}

/** Where the links of the release before lead: an upgrade does not change that, and doctor looks whether it leads here. */
const HOOKS = '127.0.0.1:18787';
const ADDRESSES = { SETTLED_HOOKS_LISTEN: HOOKS, SETTLED_PUBLIC_URL: `http://${HOOKS}` };

/** The environment of commands that ask this server. */
function beside({ operatorPort }: Serving, environment: Record<string, string>): Record<string, string> {
  return {
    ...environment,
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
  };
}

/** What the release before said still holds, and what it left goes on. */
async function expectContinued(serving: Serving, before: Said): Promise<void> {
  const orders = before.orders.map(({ reference }) => serving.api(`/v1/orders/${reference}`));
  const now = (await Promise.all(orders)).map(({ body }) => body.order);
  expect(now).toMatchObject(before.orders);
  const { body: feed } = await serving.api(`/v1/feed?after=${encodeURIComponent(before.cursor)}&limit=100`);
  expect(feed.notices).toEqual(before.notices);
  expect((await serving.api('/v1/stats')).body).toMatchObject(before.stats);

  const again = await deliver(serving, before.taken, before.taken.body);
  expect([again.status, JSON.parse(again.text)]).toEqual([200, { received: true, duplicate: true }]);
  const link = { reference: 'reserved', ...before.reserved };
  expect((await deliver(serving, link, eventOf(link))).status).toBe(200);
  await eventually(async () => {
    const { body } = await serving.api('/v1/orders/reserved');
    expect(body.order).toMatchObject({ state: 'paid', learnedBy: 'webhook' });
  });
  const { body: end } = await serving.api(`/v1/feed?after=${encodeURIComponent(feed.cursor)}&limit=100`);
  expect(end.notices).toMatchObject([{ type: 'order.paid', data: { order: { reference: 'reserved' } } }]);
}

describe('docs/upgrade.md', () => {
  it('is about this release, which the changelog has', () => {
    const [newest] = [...read('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$/gm)];
    expect(newest?.[1]).toBe(version);
    expect(page).toContain(`| ${BEFORE} | ${version} |`);
    expect([...page.matchAll(/settled-(\d+\.\d+\.\d+)\.tgz/g)].map(([, named]) => named)).toEqual([version, version]);
    const check = ['settled doctor', 'settled stats'];
    expect(commandsOf('One process with an SQLite file')).toEqual([
      ['settled backup', 'settled stats'],
      ['settled migrate'],
      ['settled --version', ...check],
    ]);
    expect(commandsOf('Replicas on PostgreSQL')).toEqual([['settled migrate'], check]);
  });

  it(`leads from ${BEFORE} with an SQLite file, and nothing is lost`, async () => {
    const path = join(testFolder(), 'settled.db');
    writeFileSync(path, gunzipSync(readFileSync(join(ROOT, `test/vectors/${BEFORE}/sqlite.db.gz`))), { mode: 0o600 });
    writeFileSync(`${path}.key`, `${said.keys.sqlite}\n`, { mode: 0o600 });
    const [backUp = [], migrate = [], check = []] = commandsOf('One process with an SQLite file');
    const environment = { SETTLED_STORE: `sqlite:${path}`, ...ADDRESSES };
    const migrated = pasted(migrate, environment);
    const since = readMigrations('sqlite').filter(({ number }) => number > LAST_MIGRATION);
    expect(since.filter(({ name }) => !migrated.includes(name))).toEqual([]);
    const serving = await startServing(path, environment);
    const checked = pasted([...check, ...backUp], beside(serving, environment));
    expect(checked).toContain(`settled ${version} `);
    await expectContinued(serving, said.sqlite);
  });

  it(`leads from ${BEFORE} on PostgreSQL, and nothing is lost`, async () => {
    const url = await loadRows(JSON.parse(read(`test/vectors/${BEFORE}/postgres.json`)));
    const [migrate = [], check = []] = commandsOf('Replicas on PostgreSQL');
    const environment = { SETTLED_STORE: url, SETTLED_SECRETS_KEY: said.keys.postgres, ...ADDRESSES };
    const migrated = pasted(migrate, { ...environment, SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN });
    const since = readMigrations('postgres').filter(({ number }) => number > LAST_MIGRATION);
    expect(since.filter(({ name }) => !migrated.includes(name))).toEqual([]);
    const serving = await startServing('', environment);
    expect(pasted(check, beside(serving, environment))).toContain(version);
    await expectContinued(serving, said.postgres);
  });
});

type Rows = { tables: Record<string, object[]>; sequences: { name: string; last: string }[] };

/** A database with the schema of the release before, and these rows. Returns its address. */
async function loadRows({ tables, sequences }: Rows): Promise<string> {
  const url = await sharedServer().create(`test_${randomUUID()}`);
  const client = new pg.Client(url);
  await client.connect();
  const older = readMigrations('postgres').filter(({ number }) => number <= LAST_MIGRATION);
  // Indexes that are built later are statements of their own: they cannot be in a transaction, as several at once are.
  for (const { sql } of older) {
    const statements = sql.includes('CONCURRENTLY') ? sql.split(/;\s*\n/) : [sql];
    for (const statement of statements) await client.query(statement);
  }
  await client.query(
    'CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, expands BOOLEAN NOT NULL)',
  );
  // Without triggers: what they count is among the rows.
  await client.query("SET session_replication_role = 'replica'");
  for (const [table, rows] of Object.entries(tables)) {
    await client.query(`DELETE FROM "${table}"`);
    await client.query(
      `INSERT INTO "${table}" OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::"${table}", $1)`,
      [JSON.stringify(rows)],
    );
  }
  for (const { name, last } of sequences) await client.query('SELECT setval($1, $2)', [name, last]);
  await client.end();
  return url;
}
