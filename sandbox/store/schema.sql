-- Everything the sandbox knows. In memory by default, in a file with --data. Times are epoch milliseconds of its clock.
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE IF NOT EXISTS link (
  number             INTEGER PRIMARY KEY,
  id                 TEXT    NOT NULL UNIQUE,
  short              TEXT    NOT NULL UNIQUE,
  external_reference TEXT    UNIQUE,
  title              TEXT    NOT NULL,
  description        TEXT,
  amount             REAL    NOT NULL,
  currency           TEXT    NOT NULL,
  status             TEXT    NOT NULL CHECK (status IN ('ACTIVE', 'INACTIVE', 'EXPIRED')),
  expires_at_ms      INTEGER,
  metadata           TEXT,
  callback_url       TEXT,
  webhook_url        TEXT,
  webhook_secret     TEXT    NOT NULL,
  created_at_ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS link_expiring ON link (expires_at_ms) WHERE status = 'ACTIVE';

CREATE TABLE IF NOT EXISTS payment (
  number          INTEGER PRIMARY KEY,
  id              TEXT    NOT NULL UNIQUE,
  link_number     INTEGER NOT NULL REFERENCES link,
  status          TEXT    NOT NULL CHECK (status IN ('PENDING', 'COMPLETED', 'DISPUTED', 'REFUNDED')),
  created_at_ms   INTEGER NOT NULL,
  completed_at_ms INTEGER,
  available_at_ms INTEGER,
  customer_name   TEXT,
  customer_email  TEXT,
  method          TEXT    NOT NULL CHECK (method IN ('PIX', 'CREDIT_CARD')),
  installments    INTEGER NOT NULL,
  amount          REAL    NOT NULL,
  currency        TEXT    NOT NULL,
  total_brl       REAL    NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS payment_by_link ON payment (link_number);

CREATE TABLE IF NOT EXISTS event (
  number        INTEGER PRIMARY KEY,
  id            TEXT    NOT NULL UNIQUE,
  link_number   INTEGER NOT NULL REFERENCES link,
  kind          TEXT    NOT NULL,
  body          TEXT    NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS event_by_link ON event (link_number);

-- The sending of one event to its link's webhookUrl, with all its attempts.
CREATE TABLE IF NOT EXISTS delivery (
  number           INTEGER PRIMARY KEY,
  id               TEXT    NOT NULL UNIQUE,
  event_number     INTEGER NOT NULL REFERENCES event,
  link_number      INTEGER NOT NULL REFERENCES link,
  origin           TEXT    NOT NULL CHECK (origin IN ('automatic', 'resend', 'panel')),
  status           TEXT    NOT NULL CHECK (status IN ('waiting', 'acknowledged', 'given_up', 'lost')),
  due_at_ms        INTEGER,
  attempts         INTEGER NOT NULL DEFAULT 0,
  first_attempt_ms INTEGER,
  -- What the first attempt was stamped with; retries that are signed once carry it again.
  first_timestamp  TEXT,
  -- The faults of the next attempt, once they are drawn, as JSON.
  held             TEXT,
  created_at_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS delivery_due ON delivery (due_at_ms) WHERE status = 'waiting';
CREATE INDEX IF NOT EXISTS delivery_first ON delivery (link_number, number) WHERE status = 'waiting' AND attempts = 0;
CREATE INDEX IF NOT EXISTS delivery_by_link ON delivery (link_number);

CREATE TABLE IF NOT EXISTS attempt (
  number          INTEGER PRIMARY KEY,
  delivery_number INTEGER NOT NULL REFERENCES delivery,
  ordinal         INTEGER NOT NULL,
  at_ms           INTEGER NOT NULL,
  took_ms         INTEGER NOT NULL,
  faults          TEXT    NOT NULL,
  timestamp       TEXT    NOT NULL,
  signature       TEXT    NOT NULL,
  response_status INTEGER,
  response_body   TEXT,
  error           TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS attempt_by_delivery ON attempt (delivery_number);

CREATE TABLE IF NOT EXISTS fault_plan (
  number    INTEGER PRIMARY KEY,
  fault     TEXT    NOT NULL,
  plan      TEXT    NOT NULL,
  remaining INTEGER,
  applied   INTEGER NOT NULL DEFAULT 0
) STRICT;
