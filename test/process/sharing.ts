import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { Reserved } from '../../prove/harness/send.ts';
import { type Serving, serveEnvironment, whenServing } from '../../prove/harness/settled.ts';
import { type SpawnOptions, spawnSettled } from '../support/process.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

/** What replicas are started with that share the database at this address. */
export function sharedEnvironment(url: string): Record<string, string> {
  return { ...serveEnvironment(''), SETTLED_STORE: url, SETTLED_SECRETS_KEY: randomBytes(32).toString('base64') };
}

/** Starts so many replicas, and waits until they serve. */
export async function startReplicas(
  environment: Record<string, string>,
  count: number,
  options: SpawnOptions = {},
): Promise<[Serving, ...Serving[]]> {
  const starting = Array.from({ length: count }, () => whenServing(spawnSettled(['serve'], environment, options)));
  return (await Promise.all(starting)) as [Serving, ...Serving[]];
}

/** The test's own look into the database. */
export function lookInto(url: string): pg.Pool {
  const database = new pg.Pool({ connectionString: url, max: 2, application_name: 'test' });
  // The server is killed, or ends connections.
  database.on('error', () => {});
  onTestFinished(() => database.end());
  return database;
}

/** Waits until each order is paid, once. */
export async function expectPaidOnce(database: pg.Pool, links: readonly Reserved[]): Promise<void> {
  const references = links.map(({ reference }) => reference);
  await eventually(async () => {
    const { rows } = await database.query(`SELECT reference FROM orders WHERE state = 'paid' AND reference = ANY($1)`, [
      references,
    ]);
    expect(rows).toHaveLength(links.length);
  });
  const { rows: entries } = await database.query(
    `SELECT o.reference, e.payment_key, e.amount_minor FROM ledger e JOIN orders o ON o.key = e.order_key
     WHERE o.reference = ANY($1) ORDER BY e.order_key`,
    [references],
  );
  const expected = references.map((reference) => [reference, `pay_${reference}`, '10000']);
  expect(entries.map(Object.values).sort()).toEqual(expected.sort());
}

/** The event ids that are stored with their bytes. */
export async function storedEventIds(database: pg.Pool): Promise<Set<string>> {
  const { rows } = await database.query('SELECT i.event_id FROM inbox i JOIN inbox_body b ON b.inbox_key = i.key');
  return new Set(rows.map(({ event_id }) => event_id));
}

/** Lets the leases of unfinished work expire. */
export async function lapseLeases(database: pg.Pool): Promise<void> {
  await database.query("UPDATE inbox SET due_at_ms = 0 WHERE status = 'leased'");
}
