-- What people look for in lists of orders. Each index is cheap for deliveries: most are of columns that no delivery changes.
CREATE INDEX orders_by_money ON orders (currency, amount_minor);
CREATE INDEX orders_flagged ON orders (flags) WHERE flags <> '';
CREATE INDEX link_by_url ON link (url) WHERE url IS NOT NULL;
CREATE INDEX link_by_short_url ON link (short_url) WHERE short_url IS NOT NULL;
CREATE INDEX settlement_by_time ON settlement (paid_at_ms);

-- Ids that the service makes are in no order: these indexes have them by groups of 1 024 rows that came together, so that a
-- delivery writes a page that is written anyhow.
CREATE INDEX inbox_by_event ON inbox (key >> 10, event_id);
CREATE INDEX ledger_by_payment ON ledger (order_key >> 10, payment_key);

-- Whether an entry is of the money that its order asks; null in rows of before. Those that are not are looked for by amount.
ALTER TABLE ledger ADD COLUMN is_asked INTEGER CHECK (is_asked IN (0, 1));
CREATE INDEX ledger_other_amount ON ledger (amount_minor, order_key) WHERE kind = 'captured' AND is_asked IS NOT TRUE;

-- Work on all rows that a filter let through when a person started it. The rows are listed then, so that what comes under the
-- filter later is not touched. `author`: JSON of who started it; null if it was no person. `token_sha256`: of the named token
-- that started it, without which it goes no further. `detail`: why settled cancelled it. `is_more`: there were more rows than
-- one run takes. `due_at_ms`: when the lease of its `holder` lapses.
CREATE TABLE bulk_run (
  key           INTEGER PRIMARY KEY,
  action        TEXT    NOT NULL,
  filter        TEXT    NOT NULL,
  reason        TEXT,
  author        TEXT,
  token_sha256  BLOB,
  status        TEXT    NOT NULL DEFAULT 'running' CHECK (status = 'running' OR status = 'done' OR status = 'cancelled'),
  detail        TEXT,
  total         INTEGER NOT NULL,
  is_more       INTEGER NOT NULL CHECK (is_more IN (0, 1)),
  started_at_ms INTEGER NOT NULL,
  ended_at_ms   INTEGER,
  holder        TEXT,
  due_at_ms     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX bulk_run_open ON bulk_run (key) WHERE status = 'running';

-- A row of a run by its key. `outcome`: null until it is the row's turn; then changed, skipped or failed, and why.
CREATE TABLE bulk_item (
  run_key  INTEGER NOT NULL REFERENCES bulk_run (key),
  item_key INTEGER NOT NULL,
  outcome  TEXT,
  detail   TEXT,
  PRIMARY KEY (run_key, item_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX bulk_item_waiting ON bulk_item (run_key, item_key) WHERE outcome IS NULL;
