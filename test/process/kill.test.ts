import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { testFolder } from '../support/app.ts';
import { spawnSettled } from '../support/process.ts';
import { times } from '../support/timing.ts';
import { type KilledStore, killOverAndOver, type OrderRow, SEED } from './killing.ts';
import { seededRandom, serveEnvironment } from './serving.ts';

const CYCLES = Number(process.env.KILL_CYCLES ?? times(5, 50));

describe('a killed process', () => {
  it(`has stored and settled everything that it acknowledged once, over ${CYCLES} kills on one store`, async () => {
    const storePath = join(testFolder(), 'settled.db');
    await killOverAndOver(storeAt(storePath), CYCLES);
    const db = new Database(storePath, { readonly: true });
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(db.pragma('foreign_key_check')).toEqual([]);
    db.close();
  });

  it('can be started again after a kill at any moment of its very first start', async () => {
    const random = seededRandom(SEED);
    for (let round = 0; round < times(2, 10); round++) {
      const environment = firstStart(join(testFolder(), 'settled.db'));
      const killed = spawnSettled(['serve'], environment);
      await after(random() * 500);
      killed.child.kill('SIGKILL');
      await killed.finished;
      const again = spawnSettled(['serve'], environment);
      await again.line(/"settled is serving"/);
      again.child.kill('SIGKILL');
      await again.finished;
    }
  });
});

/** With the operator's token and the secrets key still to be made. */
function firstStart(storePath: string): Record<string, string> {
  const { SETTLED_OPERATOR_TOKEN: _, ...environment } = serveEnvironment(storePath);
  return environment;
}

function storeAt(storePath: string): KilledStore {
  const reading = <T>(read: (db: Database.Database) => T): Promise<T> => {
    const db = new Database(storePath, { readonly: true });
    try {
      return Promise.resolve(read(db));
    } finally {
      db.close();
    }
  };
  return {
    environment: serveEnvironment(storePath),
    bodies: (events) =>
      reading((db) => {
        const find = db
          .prepare<[string, string], Buffer>(
            `SELECT b.body FROM inbox i JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key
             WHERE l.token = ? AND i.event_id = ?`,
          )
          .pluck();
        return events.map(({ token, eventId }) => find.all(token, eventId) as Buffer[]);
      }),
    events: () =>
      reading(
        (db) =>
          db
            .prepare(
              `SELECT l.token, i.event_id AS eventId, b.body, i.status FROM inbox i
               JOIN link l ON l.key = i.link_key JOIN inbox_body b ON b.inbox_key = i.key`,
            )
            .all() as Awaited<ReturnType<KilledStore['events']>>,
      ),
    hints: () => reading((db) => db.prepare('SELECT event_id FROM hint').pluck().all() as string[]),
    orders: () =>
      reading(
        (db) =>
          db
            .prepare(
              `SELECT o.reference, o.state,
                 (SELECT count(*) FROM settlement s WHERE s.order_key = o.key) AS settlements,
                 (SELECT group_concat(kind || ' ' || payment_key || ' ' || amount_minor) FROM ledger e
                   WHERE e.order_key = o.key) AS entries,
                 (SELECT count(*) FROM outbox n WHERE n.order_key = o.key AND n.type = 'order.paid') AS paidNotices
               FROM orders o`,
            )
            .all() as OrderRow[],
      ),
    // Every lease is void when a process starts.
    lapseLeases: async () => {},
  };
}
