import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { systemClock } from '../../../src/work/clock.ts';
import { IN_TURN, storeContract } from '../contract.ts';
import { movedStore } from '../moved.ts';
import { contractStore } from './contract_store.ts';
import { openTestStore } from './opening.ts';

const folder = mkdtempSync(join(tmpdir(), 'settled-kept-'));
const kept = join(folder, 'settled.db');
let opened = 0;

/** The first one is the store that most tests share. */
function openContractStore() {
  const isShared = opened++ === 0;
  const open = async (path: string, nowMs = 1_700_000_000_000) =>
    (await openTestStore(path, { clock: { ...systemClock, nowMs: () => nowMs } })).store;
  const keep = (path: string) => cpSync(path, kept);
  return contractStore(open, isShared ? keep : undefined);
}

/** In this order, however tests are shuffled: what is moved is what the contract left. PostgreSQL's is shuffled. */
describe('the embedded store', { shuffle: false }, () => {
  storeContract('SQLite', openContractStore, IN_TURN);
  movedStore(() => kept);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));
