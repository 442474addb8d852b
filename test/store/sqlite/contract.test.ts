import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { storeContract } from '../contract.ts';
import { openTestStore } from './opening.ts';

storeContract('SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'settled-contract-'));
  const path = join(folder, 'settled.db');
  let opened = await openTestStore(path);
  return {
    store: opened.store,
    reopen: async () => {
      await opened.store.close();
      opened = await openTestStore(path);
      return opened.store;
    },
    forgetChecks: async () => {
      const db = new Database(path);
      db.exec("DELETE FROM link_check; UPDATE link SET next_check_at_ms = NULL, status = 'EXPIRED'");
      db.close();
    },
    dispose: async (outcome) => {
      await opened.store.close();
      if (outcome === 'failed') return folder;
      rmSync(folder, { recursive: true, force: true });
      return null;
    },
  };
});
