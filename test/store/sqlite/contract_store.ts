import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Store } from '../../../src/store/store.ts';
import type { ContractStore } from '../contract/world.ts';

/** A store in a folder of its own, as the contract asks for it. */
export async function contractStore(open: (path: string) => Promise<Store>): Promise<ContractStore> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-contract-'));
  const path = join(folder, 'settled.db');
  let store = await open(path);
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await open(path);
      return store;
    },
    forgetChecks: async () => {
      const db = new Database(path);
      db.exec("DELETE FROM link_check; UPDATE link SET next_check_at_ms = NULL, status = 'EXPIRED'");
      db.close();
    },
    dispose: async (outcome) => {
      await store.close();
      if (outcome === 'failed') return folder;
      rmSync(folder, { recursive: true, force: true });
      return null;
    },
  };
}
