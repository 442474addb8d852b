import { renameSync, writeFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector';
import { join } from 'node:path';
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads';

/**
 * Loaded into each thread of a settled process before its own code (`--import`). At the first SIGUSR2 every thread begins
 * to sample its functions and to count its SQL statements. At the second it writes what it found to a file of the folder
 * `BENCH_PROFILE`, named by the thread's number.
 */

export type Probed = { statements: Timed[]; profile: Profiler.Profile };
/** A statement's text, how often it ran, and how long that took. */
type Timed = { sql: string; calls: number; micros: number };

const statements = new Map<string, Timed>();
let isOn = false;

function countStatements(prototype: object): void {
  for (const name of ['run', 'get', 'all']) {
    const method: (...values: unknown[]) => unknown = Reflect.get(prototype, name);
    Reflect.set(prototype, name, function (this: { source: string }, ...values: unknown[]) {
      if (!isOn) return method.apply(this, values);
      const startMs = performance.now();
      try {
        return method.apply(this, values);
      } finally {
        note(this.source, (performance.now() - startMs) * 1000);
      }
    });
  }
}

function note(sql: string, micros: number): void {
  const timed = statements.get(sql) ?? { sql, calls: 0, micros: 0 };
  timed.calls++;
  timed.micros += micros;
  statements.set(sql, timed);
}

const session = new Session();

function toggle(): void {
  isOn = !isOn;
  if (isOn) {
    session.connect();
    session.post('Profiler.enable');
    session.post('Profiler.start');
    return;
  }
  session.post('Profiler.stop', (error, { profile }) => {
    if (error !== null) throw error;
    const found: Probed = { statements: [...statements.values()], profile };
    const path = join(process.env.BENCH_PROFILE ?? '', String(threadId));
    writeFileSync(`${path}.new`, JSON.stringify(found));
    renameSync(`${path}.new`, path);
  });
}

const threads = new BroadcastChannel('bench profile');
threads.unref();
if (isMainThread) {
  process.on('SIGUSR2', () => {
    threads.postMessage('toggle');
    toggle();
  });
} else {
  threads.onmessage = toggle;
  const { default: Database } = await import('better-sqlite3');
  const database = new Database(':memory:');
  countStatements(Object.getPrototypeOf(database.prepare('SELECT 1')));
  database.close();
}
