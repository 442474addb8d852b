import { describe, it } from 'vitest';
import { newDatabase } from '../store/postgres/opening.ts';
import { times } from '../support/timing.ts';
import { type KilledStore, killOverAndOver } from './killing.ts';
import { lapseLeases, lookInto, sharedEnvironment } from './sharing.ts';

const CYCLES = Number(process.env.KILL_CYCLES ?? times(3, 50));

describe('a killed process on PostgreSQL', () => {
  it(`has stored and settled everything that it acknowledged once, over ${CYCLES} kills on one database`, async () => {
    await killOverAndOver(storeAt(await newDatabase()), CYCLES);
  });
});

function storeAt(url: string): KilledStore {
  const database = lookInto(url);
  return {
    environment: sharedEnvironment(url),
    query: async (sql) => (await database.query(sql)).rows,
    lapseLeases: () => lapseLeases(database),
  };
}
