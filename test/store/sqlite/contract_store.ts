import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { expectNoCommands } from '../contract/attention.ts';
import type { ContractStore } from '../contract/world.ts';

const ATTENTION = 'SELECT kind, params FROM attention';

/** A store in a folder of its own, as the contract asks for it. `onClosed` gets its file before that is removed. */
export async function contractStore(
  open: (path: string, nowMs?: number) => Promise<Store>,
  onClosed: (path: string) => void = () => {},
): Promise<ContractStore> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-contract-'));
  const path = join(folder, 'settled.db');
  let store = await open(path);
  return {
    store,
    reopen: async (nowMs) => {
      await store.close();
      store = await open(path, nowMs);
      return store;
    },
    forgetChecks: async () => {
      const db = new Database(path);
      db.exec("DELETE FROM link_check; UPDATE link SET next_check_at_ms = NULL, status = 'EXPIRED'");
      db.close();
    },
    run: async (sql) => {
      const db = new Database(path, { timeout: 5_000 });
      try {
        const statement = db.prepare<[], Record<string, unknown>>(sql);
        if (statement.reader) return statement.all();
        statement.run();
        return [];
      } finally {
        db.close();
      }
    },
    dispose: async (outcome) => {
      await store.close();
      if (outcome === 'failed') return folder;
      const db = new Database(path, { readonly: true });
      try {
        expectCountsToBeRight(db);
        expectNoCommands(db.prepare<[], { kind: string; params: string | null }>(ATTENTION).all());
      } finally {
        db.close();
      }
      onClosed(path);
      rmSync(folder, { recursive: true, force: true });
      return null;
    },
  };
}

/** After every test of the contract: what is counted as it changes is what counting one by one finds. */
function expectCountsToBeRight(db: Database.Database): void {
  const rows = (sql: string) => db.prepare(sql).raw().all();
  for (const [counts, name, groups] of COUNTED) {
    const counted = rows(`SELECT ${name}, n FROM ${counts} WHERE n <> 0 ORDER BY 1`);
    expect([counts, counted]).toEqual([counts, rows(`SELECT ${groups} GROUP BY 1 ORDER BY 1`)]);
  }
}

const COUNTED = [
  ['order_count', 'state', 'state, count(*) FROM orders'],
  ['notice_count', 'status', "'begun', count(*) FROM outbox WHERE status <> 'pending'"],
  ['check_count', 'rank', 'rank, count(*) FROM link_check'],
] as const;
