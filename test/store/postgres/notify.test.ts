import { describe, expect, it, onTestFinished } from 'vitest';
import type { Wakeup } from '../../../src/store/postgres/notify.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { eventuallyAfter } from '../../support/timing.ts';
import { runIn } from './contract_store.ts';
import { newDatabase, openTestPostgres } from './opening.ts';

const eventually = eventuallyAfter('servers of PostgreSQL start, stop and are asked again');

/** A replica, and what it heard. */
async function replica(url: string) {
  const opened = await openTestPostgres(url);
  const heard: Wakeup[] = [];
  opened.wakeups.listen((wakeup) => heard.push(wakeup));
  onTestFinished(() => opened.store.close());
  // A connection tells both once it listens: something may have been told before.
  await eventually(() => expect(heard).toEqual(['events', 'notices']));
  heard.length = 0;
  return { ...opened, heard };
}

async function two() {
  const url = await newDatabase();
  return { url, one: await replica(url), other: await replica(url) };
}

/** Ends the connections that listen, as a server does that is restarted. */
function cutListeners(url: string): Promise<void> {
  return runIn(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
  );
}

describe('wakeups between replicas', () => {
  it('reach the others, and not the one that tells', async () => {
    const { one, other } = await two();
    one.wakeups.send('notices');
    await eventually(() => expect(other.heard).toEqual(['notices']));
    other.wakeups.send('events');
    await eventually(() => expect(one.heard).toEqual(['events']));
    expect(other.heard).toEqual(['notices']);
  });

  it('go as one where many are told in a moment', async () => {
    const { one, other } = await two();
    for (let time = 0; time < 50; time++) one.wakeups.send('notices');
    one.wakeups.send('events');
    await eventually(() => expect([...other.heard].sort()).toEqual(['events', 'notices']));
  });

  it('are told before a replica is gone', async () => {
    const url = await newDatabase();
    const [one, other] = [await openTestPostgres(url), await replica(url)];
    await one.store.close();
    await eventually(() => expect([...other.heard].sort()).toEqual(['events', 'notices']));
  });

  it('are heard again after the connection was lost, and what was told meanwhile is looked for', async () => {
    const { url, one, other } = await two();
    await cutListeners(url);
    await eventually(() => expect(other.heard).toEqual(['events', 'notices']));
    await eventually(() => expect(one.heard).toEqual(['events', 'notices']));
    one.wakeups.send('notices');
    await eventually(() => expect(other.heard).toEqual(['events', 'notices', 'notices']));
  });

  it('are listened for at ever longer intervals while nothing answers, and no longer once closed', async () => {
    const delays: number[] = [];
    const url = await newDatabase();
    const { wakeups, store } = await openTestPostgres(url, {
      random: () => 1,
      clock: {
        ...systemClock,
        after: (delayMs, work) => {
          if (delayMs >= 200 && delayMs < 10_000) delays.push(delayMs);
          return systemClock.after(Math.min(delayMs, delayMs < 10_000 ? 5 : delayMs), work);
        },
      },
    });
    onTestFinished(() => store.close());
    wakeups.listen(() => {});
    await eventually(() => listening(url));
    const name = new URL(url).pathname.slice(1);
    const server = new URL(url);
    server.pathname = 'postgres';
    await runIn(server.href, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`);
    await runIn(server.href, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
    await eventually(() => expect(delays.slice(0, 6)).toEqual([200, 400, 800, 1600, 3200, 6400]));
    await wakeups.close();
    const { length } = delays;
    await runIn(server.href, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS true`);
    await expect(listening(url)).rejects.toThrow();
    expect(delays.length).toBeLessThanOrEqual(length + 1);
  });
});

/** Throws unless somebody listens. */
function listening(url: string): Promise<void> {
  return runIn(
    url,
    `DO $$ BEGIN ASSERT EXISTS (SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'LISTEN%'); END $$`,
  );
}
