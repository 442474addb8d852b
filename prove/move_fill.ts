import Database from 'better-sqlite3';

/** Tables of an order, and the columns that a copy of its rows must have of its own. */
const COPIED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  orders: { key: 'key + n', reference: "reference || '-' || n" },
  link: {
    key: 'key + n',
    order_key: 'order_key + n',
    link_id: "link_id || '-' || n",
    token: "token || '-' || n",
    next_check_at_ms: 'NULL',
  },
  settlement: { order_key: 'order_key + n' },
  ledger: { order_key: 'order_key + n', payment_key: "payment_key || '-' || n" },
  history: { key: 'key + n', order_key: 'order_key + n' },
  inbox: { key: 'key + n', link_key: 'link_key + n', event_id: "event_id || '-' || n" },
  inbox_body: { inbox_key: 'inbox_key + n' },
  outbox: { key: 'key + n', notice_id: "notice_id || '-' || n", order_key: 'order_key + n' },
};

/** Above every key that a store of the proof has. */
const FREE = 1_000;

/** Copies the rows of the first order, so that the store has so many more events. */
export function fillStore(path: string, events: number): void {
  const db = new Database(path);
  db.pragma('synchronous = OFF');
  db.pragma('foreign_keys = OFF');
  const one = { key: 1, order_key: 1, link_key: 1, inbox_key: 1 };
  db.transaction(() => {
    for (const [table, made] of Object.entries(COPIED)) {
      const columns = (db.pragma(`table_info(${table})`) as { name: string; pk: number }[]).map(({ name }) => name);
      const lead = columns.find((name) => name in one) as string;
      const values = columns.map((name) => made[name] ?? name).join(', ');
      db.exec(`INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values} FROM ${table},
        (WITH RECURSIVE c (n) AS (SELECT ${FREE} UNION ALL SELECT n + 1 FROM c WHERE n < ${FREE + events - 1}) SELECT n FROM c) WHERE ${lead} = 1 ORDER BY n`);
    }
  })();
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}
