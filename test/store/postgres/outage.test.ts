import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { catchUp } from '../../../src/store/postgres/replicas.ts';
import { connectTo, openTestDatabase, openUntilEnd } from './opening.ts';
import { openTwoReplicas } from './two_replicas.ts';

const MINUTE_MS = 60_000;
const AWAY_MS = 10 * MINUTE_MS;

describe('an outage of all replicas', () => {
  let url: string;
  let one: Store;
  let other: Store;
  let nowMs: number;

  beforeEach(async () => {
    const replicas = await openTwoReplicas();
    onTestFinished(replicas.close);
    ({ url, one, other } = replicas);
    nowMs = Date.now() + MINUTE_MS;
    await one.heartbeat(nowMs);
  });

  it('is told of by every sign of life until links were made due, whoever found it', async () => {
    expect(await beat(one, AWAY_MS)).toEqual({ gapMs: AWAY_MS, aheadMs: 0 });
    // Who found it is gone, or never heard the answer.
    await one.close();
    expect(await beat(other, 2_000)).toEqual({ gapMs: AWAY_MS, aheadMs: 0 });
    const { store: next } = await openUntilEnd(url);
    expect(await beat(next, 2_000)).toEqual({ gapMs: AWAY_MS, aheadMs: 0 });
    await next.catchUp({ dryRun: true, nowMs });
    expect(await beat(other, 2_000)).toEqual({ gapMs: AWAY_MS, aheadMs: 0 });
    await next.catchUp({ dryRun: false, nowMs });
    expect(await beat(other, 2_000)).toEqual({ gapMs: 2_000, aheadMs: 0 });
  });

  it('is none where somebody gave a sign of life within two minutes', async () => {
    expect(await beat(one, 2 * MINUTE_MS)).toEqual({ gapMs: 2 * MINUTE_MS, aheadMs: 0 });
    expect(await beat(other, 2_000)).toEqual({ gapMs: 2_000, aheadMs: 0 });
  });

  it('leaves a silent replica in the list for a day, and no longer', async () => {
    const listed = async () => (await one.storeState(nowMs)).replicas.length;
    await other.heartbeat(nowMs);
    await beat(one, 24 * 60 * MINUTE_MS);
    expect(await listed()).toBe(2);
    await beat(one, 1);
    expect(await listed()).toBe(1);
  });

  it('makes more links due than one transaction may, and is over with the last of them alone', async () => {
    const client = await connectTo(url);
    const links = 10_001;
    await client.query(
      `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
       SELECT 'order-' || n, 10000, 'BRL', 'awaiting_payment', 1, 1 FROM generate_series(1, ${links}) AS n`,
    );
    await client.query(
      `INSERT INTO link (order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
       SELECT key, 'pl_' || key, 'token-' || key, 'x'::bytea, 'key-1', 'x'::bytea, 1 FROM orders`,
    );
    const due = async () => {
      const { rows } = await client.query('SELECT count(*) AS n FROM link WHERE next_check_at_ms = $1', [nowMs]);
      return Number(rows[0].n);
    };
    const db = openTestDatabase(url);
    onTestFinished(() => db.close());
    await beat(one, AWAY_MS);
    const atMs = nowMs;
    const steps: number[] = [];
    const watched: Parameters<typeof catchUp>[0] = {
      read: (work) => db.read(work),
      async write(work) {
        const written = await db.write(work);
        steps.push(await due());
        // All are away once more when the first links are due.
        if (steps.length === 1) await one.heartbeat(atMs + 3 * AWAY_MS);
        return written;
      },
    };
    expect(await catchUp(watched, { dryRun: false, nowMs })).toEqual({ links });
    expect(steps).toEqual([10_000, links, links]);
    nowMs = atMs + 3 * AWAY_MS;
    expect(await beat(other, 2_000)).toEqual({ gapMs: 3 * AWAY_MS, aheadMs: 0 });
    await client.query('UPDATE link SET next_check_at_ms = $1', [nowMs + AWAY_MS]);
    await other.catchUp({ dryRun: false, nowMs });
    expect(await due()).toBe(links);
    expect(await beat(other, 2_000)).toEqual({ gapMs: 2_000, aheadMs: 0 });
  });

  /** So much later. */
  function beat(replica: Store, byMs: number) {
    nowMs += byMs;
    return replica.heartbeat(nowMs);
  }
});
