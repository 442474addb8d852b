import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import type { Fault } from '../../src/fault.ts';
import type { Log } from '../../src/observe/log.ts';
import { postgresAddress, type StoreAddress, sqliteAddress } from '../../src/store/address.ts';
import { type OpenOptions, openStore } from '../../src/store/open.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { serverAt } from '../support/postgres.ts';
import { shutDatabase } from '../support/test_database.ts';
import { newDatabase } from './postgres/opening.ts';

const warn = vi.fn();

function open(address: StoreAddress, clock: Clock = systemClock) {
  const options: OpenOptions = {
    secretsKeyId: 'key-1',
    olderKeyIds: [],
    version: '1.2.3',
    settings: () => ({}),
    newId: randomUUID,
    random: Math.random,
    clock,
    log: { warn } as unknown as Log,
    callTimeoutMs: 10_000,
    onBatch: () => {},
    onFailed: () => {},
  };
  warn.mockReset();
  return openStore(address, options);
}

/** A clock on which half a second passes when somebody waits for it. */
function impatient(): Clock & { passedMs(): number } {
  let passedMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => passedMs,
    after: (delayMs, work) => {
      if (delayMs !== 500) return () => {};
      passedMs += delayMs;
      setImmediate(work);
      return () => {};
    },
    passedMs: () => passedMs,
  };
}

async function failure(address: StoreAddress, clock?: Clock): Promise<Fault> {
  return open(address, clock).then(
    () => expect.unreachable('it opens'),
    (fault) => fault,
  );
}

/** As the shared server has it, with another user, password or database. */
function addressOf(database: string, user = 'settled'): StoreAddress {
  const url = new URL(serverAt(inject('postgres')).url(database));
  url.username = user;
  url.password = 'hidden-canary';
  return postgresAddress(url.href);
}

describe('opening a store', () => {
  it('has the clock that is given with SQLite, and nobody to tell of anything', async () => {
    const opened = await open(sqliteAddress(`${testFolder()}/settled.db`));
    onTestFinished(() => opened.store.close());
    expect(opened.clock).toBe(systemClock);
    expect([opened.isShared, opened.skewMs()]).toEqual([false, 0]);
    opened.wakeups.send('events');
    opened.wakeups.listen(() => expect.unreachable('somebody told it'));
  });

  it('has a name of its own with PostgreSQL, each time', async () => {
    const address = postgresAddress(await newDatabase());
    const names: string[] = [];
    for (let time = 0; time < 2; time++) {
      const { store, isShared, clock } = await open(address);
      expect(isShared).toBe(true);
      await store.heartbeat(clock.nowMs());
      const { replicas, server } = await store.storeState(clock.nowMs());
      expect(replicas).toMatchObject([{ version: '1.2.3', secretsKeyId: 'key-1', isAlive: true }]);
      expect(server).toMatch(/^PostgreSQL \d+\.\d+$/);
      names.push(...replicas.map(({ name }) => name));
      await store.close();
    }
    expect(new Set(names).size).toBe(2);
    expect(warn).not.toHaveBeenCalled();
  });

  it('tries for 30 s where PostgreSQL does not answer, and says so once', async () => {
    const clock = impatient();
    const url = `postgres://settled:hidden-canary@127.0.0.1:${await freePort()}/settled`;
    const fault = await failure(postgresAddress(url), clock);
    expect(fault).toMatchObject({ code: 'store_unreachable', kind: 'transient' });
    expect(clock.passedMs()).toBe(30_000);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[1]).toBe('the database cannot be reached; trying for 30 s');
    expect(inspect([fault, warn.mock.calls], { depth: 10, showHidden: true })).not.toContain('hidden-canary');
  });

  it('serves when PostgreSQL answers meanwhile', async () => {
    const url = await newDatabase();
    const admit = await shutDatabase(url);
    const clock = impatient();
    let tries = 0;
    const after: Clock['after'] = (delayMs, work) => {
      if (delayMs === 500 && ++tries === 2) void admit().then(work);
      else clock.after(delayMs, work);
      return () => {};
    };
    const { store } = await open(postgresAddress(url), { ...clock, after });
    await store.close();
    expect(tries).toBe(2);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['a database that there is not', 'no_such_database', 'settled', /does not exist/],
    ['a user that there is not', 'postgres', 'nobody', /role "nobody" does not exist/],
  ])('refuses %s at once, and says what to look at', async (_what, database, user, why) => {
    const fault = await failure(addressOf(database, user), impatient());
    expect(fault).toMatchObject({ code: 'configuration_invalid', kind: 'transient' });
    expect(fault.message).toMatch(why);
    expect(fault.message).toContain('Check the user, the password and the database in SETTLED_STORE.');
    expect(warn).not.toHaveBeenCalled();
    expect(inspect(fault, { depth: 10, showHidden: true })).not.toContain('hidden-canary');
  });
});
