-- expands
-- "order" is a word of SQL, so the table is named in the plural.
CREATE TABLE orders (
  key                BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  reference          TEXT    NOT NULL UNIQUE,
  amount_minor       BIGINT  NOT NULL CHECK (amount_minor > 0),
  currency           TEXT    NOT NULL,
  state              TEXT    NOT NULL,
  flags              TEXT    NOT NULL DEFAULT '',
  version            BIGINT  NOT NULL DEFAULT 1,
  adopted_payment_id TEXT,
  resolution         TEXT    CHECK (resolution IN ('accept', 'reject')),
  last_reading       BIGINT,
  created_at_ms      BIGINT  NOT NULL,
  updated_at_ms      BIGINT  NOT NULL
);
CREATE INDEX orders_by_state ON orders (state, key);

-- An order may have several links; the newest is the one that its document shows.
CREATE TABLE link (
  key                BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_key          BIGINT  NOT NULL REFERENCES orders (key),
  link_id            TEXT    UNIQUE,
  token              TEXT    NOT NULL UNIQUE,
  sealed_secret      BYTEA   NOT NULL,
  secrets_key_id     TEXT    NOT NULL,
  secret_fingerprint BYTEA   NOT NULL,
  url                TEXT,
  short_url          TEXT,
  status             TEXT,
  created_at_ms      BIGINT  NOT NULL
);
-- With the key, so that the newest is found by it even before the server knows how many links an order has.
CREATE INDEX link_by_order ON link (order_key, key);

-- The guard against settling twice: an order is paid by the insertion of its one row here.
CREATE TABLE settlement (
  order_key   BIGINT  PRIMARY KEY REFERENCES orders (key),
  paid_at_ms  BIGINT  NOT NULL,
  payment_key TEXT,
  learned_by  TEXT    NOT NULL CHECK (learned_by IN ('webhook', 'reconciliation', 'person'))
);

-- Entries are only ever added; the balance is their sum. `number` is their order within an order.
CREATE TABLE ledger (
  order_key    BIGINT  NOT NULL REFERENCES orders (key),
  payment_key  TEXT    NOT NULL,
  kind         TEXT    NOT NULL CHECK (kind IN ('captured', 'refunded', 'disputed')),
  occurrence   INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  amount_minor BIGINT  NOT NULL,
  currency     TEXT    NOT NULL,
  at_ms        BIGINT  NOT NULL,
  PRIMARY KEY (order_key, payment_key, kind, occurrence)
);

CREATE TABLE hold (
  order_key    BIGINT  NOT NULL REFERENCES orders (key),
  id           TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  opened_at_ms BIGINT  NOT NULL,
  ended_at_ms  BIGINT,
  PRIMARY KEY (order_key, id)
);
CREATE INDEX hold_open ON hold (order_key, id) WHERE ended_at_ms IS NULL;

-- Every transition and every other change of an order, with its cause.
CREATE TABLE history (
  key        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_key  BIGINT  NOT NULL REFERENCES orders (key),
  at_ms      BIGINT  NOT NULL,
  what       TEXT    NOT NULL,
  outcome    TEXT,
  from_state TEXT,
  to_state   TEXT,
  cause_kind TEXT    NOT NULL CHECK (cause_kind IN ('event', 'reading', 'person')),
  cause_id   TEXT,
  effects    TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX history_by_order ON history (order_key, key);
