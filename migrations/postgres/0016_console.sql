-- expands
-- What people look for in lists of orders. Replicas build these indexes after their start. Each is cheap for deliveries: most are of columns that no delivery changes.
CREATE INDEX CONCURRENTLY orders_by_money ON orders (currency, amount_minor, key);
CREATE INDEX CONCURRENTLY orders_flagged ON orders (flags, key) WHERE flags <> '';
-- References in the order of their bytes, so that their beginnings are found in a database of any collation.
CREATE INDEX CONCURRENTLY orders_by_bytes ON orders (reference COLLATE "C");
CREATE INDEX CONCURRENTLY link_by_url ON link (url) WHERE url IS NOT NULL;
CREATE INDEX CONCURRENTLY link_by_short_url ON link (short_url) WHERE short_url IS NOT NULL;
CREATE INDEX CONCURRENTLY settlement_by_time ON settlement (paid_at_ms);

-- Ids that the service makes are in no order: these indexes have them by groups of 1 024 rows that came together, so that a
-- delivery writes a page that is written anyhow.
CREATE INDEX CONCURRENTLY inbox_by_event ON inbox ((key >> 10), event_id);
CREATE INDEX CONCURRENTLY ledger_by_payment ON ledger ((order_key >> 10), payment_key);

-- Whether an entry is of the money that its order asks; null in rows of before, and in those of a replica of the release
-- before. Those that are not are looked for by amount.
ALTER TABLE ledger ADD COLUMN is_asked boolean;
CREATE INDEX CONCURRENTLY ledger_other_amount ON ledger (amount_minor, order_key) WHERE kind = 'captured' AND is_asked IS NOT TRUE;

-- Work on all rows that a filter let through when a person started it. The rows are listed then, so that what comes under the
-- filter later is not touched. `author`: JSON of who started it; null if it was no person. `token_sha256`: of the named token
-- that started it, without which it goes no further. `detail`: why settled cancelled it. `is_more`: there were more rows than
-- one run takes. `due_at_ms`: when the lease of its `holder` lapses.
CREATE TABLE bulk_run (
  key           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  action        text    NOT NULL,
  filter        text    NOT NULL,
  reason        text,
  author        text,
  token_sha256  bytea,
  status        text    NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'cancelled')),
  detail        text,
  total         integer NOT NULL,
  is_more       boolean NOT NULL,
  started_at_ms bigint  NOT NULL,
  ended_at_ms   bigint,
  holder        text,
  due_at_ms     bigint  NOT NULL DEFAULT 0
);
CREATE INDEX bulk_run_open ON bulk_run (key) WHERE status = 'running';

-- A row of a run by its key. `outcome`: null until it is the row's turn; then changed, skipped or failed, and why.
CREATE TABLE bulk_item (
  run_key  bigint  NOT NULL REFERENCES bulk_run (key),
  item_key bigint  NOT NULL,
  outcome  text,
  detail   text,
  PRIMARY KEY (run_key, item_key)
);
CREATE INDEX bulk_item_waiting ON bulk_item (run_key, item_key) WHERE outcome IS NULL;
