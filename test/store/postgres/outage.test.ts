import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { openTestPostgres } from './opening.ts';
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
    const { store: next } = await openTestPostgres(url);
    onTestFinished(() => next.close());
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

  /** So much later. */
  function beat(replica: Store, byMs: number) {
    nowMs += byMs;
    return replica.heartbeat(nowMs);
  }
});
