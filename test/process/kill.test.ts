import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { chanceOf } from '../../prove/harness/chance.ts';
import { serveEnvironment } from '../../prove/harness/settled.ts';
import { testFolder } from '../support/app.ts';
import { spawnSettled } from '../support/process.ts';
import { times } from '../support/timing.ts';
import { type KilledStore, killOverAndOver, SEED } from './killing.ts';

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
    const chance = chanceOf(SEED);
    for (let round = 0; round < times(1, 10); round++) {
      const environment = firstStart(join(testFolder(), 'settled.db'));
      const killed = spawnSettled(['serve'], environment);
      await after(chance.below(500));
      await killed.end('SIGKILL');
      const again = spawnSettled(['serve'], environment);
      await again.line(/"settled is serving"/);
      await again.end('SIGKILL');
    }
  });
});

/** With the operator's token and the secrets key still to be made. */
function firstStart(storePath: string): Record<string, string> {
  const { SETTLED_OPERATOR_TOKEN: _, ...environment } = serveEnvironment(storePath);
  return environment;
}

function storeAt(storePath: string): KilledStore {
  return {
    environment: serveEnvironment(storePath),
    query: async (sql) => {
      const db = new Database(storePath, { readonly: true });
      try {
        return db.prepare(sql).all();
      } finally {
        db.close();
      }
    },
    // Every lease is void when a process starts.
    lapseLeases: async () => {},
  };
}
