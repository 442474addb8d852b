-- Deliveries that wait to be settled, or were. The row is the job.
CREATE TABLE inbox (
  key            INTEGER PRIMARY KEY,
  link_key       INTEGER NOT NULL REFERENCES link (key),
  event_id       TEXT    NOT NULL,
  body_sha256    BLOB    NOT NULL,
  timestamp      TEXT    NOT NULL,
  mac            BLOB    NOT NULL,
  type           TEXT,
  conflict       INTEGER NOT NULL DEFAULT 0,
  duplicates     INTEGER NOT NULL DEFAULT 0,
  status         TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'dead')),
  attempt        INTEGER NOT NULL DEFAULT 0,
  received_at_ms INTEGER NOT NULL,
  due_at_ms      INTEGER NOT NULL,
  ended_at_ms    INTEGER,
  outcome        TEXT,
  rule           TEXT,
  fault_code     TEXT,
  fault_message  TEXT,
  UNIQUE (link_key, event_id, body_sha256)
) STRICT;
CREATE INDEX inbox_due ON inbox (due_at_ms, key) WHERE status = 'pending';
-- due_at_ms of a leased row is when its lease lapses.
CREATE INDEX inbox_leased ON inbox (due_at_ms) WHERE status = 'leased';
CREATE INDEX inbox_dead ON inbox (key) WHERE status = 'dead';

-- The bytes stand apart, so that a change of status does not rewrite them.
CREATE TABLE inbox_body (
  inbox_key INTEGER PRIMARY KEY REFERENCES inbox (key),
  body      BLOB    NOT NULL
) STRICT;

-- Authentic but stale deliveries: outside the dedupe key, never settled.
CREATE TABLE hint (
  key           INTEGER PRIMARY KEY,
  link_key      INTEGER NOT NULL REFERENCES link (key),
  event_id      TEXT    NOT NULL,
  body_sha256   BLOB    NOT NULL,
  body          BLOB    NOT NULL,
  timestamp     TEXT    NOT NULL,
  count         INTEGER NOT NULL DEFAULT 1,
  first_at_ms   INTEGER NOT NULL,
  last_at_ms    INTEGER NOT NULL,
  UNIQUE (link_key, body_sha256)
) STRICT;

-- Deliveries that were refused as not authentic: counted by reason, never their bodies.
CREATE TABLE rejection (
  key         INTEGER PRIMARY KEY,
  link_key    INTEGER NOT NULL REFERENCES link (key),
  reason      TEXT    NOT NULL,
  count       INTEGER NOT NULL,
  first_at_ms INTEGER NOT NULL,
  last_at_ms  INTEGER NOT NULL,
  UNIQUE (link_key, reason)
) STRICT;

-- Links about which the service's API should be asked: one row per link, whatever the number of reasons.
CREATE TABLE link_check (
  link_key        INTEGER PRIMARY KEY REFERENCES link (key),
  reason          TEXT    NOT NULL,
  requested_at_ms INTEGER NOT NULL
) STRICT;
