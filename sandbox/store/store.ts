import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { attemptRows, deliveryRows } from './deliveries.ts';
import { eventRows } from './events.ts';
import { linkRows } from './links.ts';
import { paymentRows } from './payments.ts';
import { statements } from './statements.ts';

export type SandboxStore = ReturnType<typeof openStore>;

/**
 * Everything that the sandbox knows.
 *
 * @param path a file, or `:memory:`
 */
export function openStore(path: string) {
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec(readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'));
  const { one, run } = statements(db);
  const setting = one('SELECT value FROM setting WHERE name = ?');
  const setSetting = run(
    'INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  );
  return {
    /** For rooms that keep rows of their own. */
    db,
    transaction: <T>(work: () => T): T => db.transaction(work).immediate(),
    close: () => void db.close(),
    setting: (name: string) => (setting(name)?.value as string | undefined) ?? null,
    setSetting: (name: string, value: string) => setSetting(name, value),
    ...linkRows(db),
    ...paymentRows(db),
    ...eventRows(db),
    ...deliveryRows(db),
    ...attemptRows(db),
  };
}
