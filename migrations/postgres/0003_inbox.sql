-- expands
-- Deliveries that wait to be settled, or were. The row is the job. `holder` is the replica that leased it.
CREATE TABLE inbox (
  key            BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  link_key       BIGINT  NOT NULL REFERENCES link (key),
  event_id       TEXT    NOT NULL,
  body_sha256    BYTEA   NOT NULL,
  timestamp      TEXT    NOT NULL,
  mac            BYTEA   NOT NULL,
  type           TEXT,
  conflict       BOOLEAN NOT NULL DEFAULT false,
  duplicates     INTEGER NOT NULL DEFAULT 0,
  status         TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'dead')),
  attempt        INTEGER NOT NULL DEFAULT 0,
  holder         TEXT,
  received_at_ms BIGINT  NOT NULL,
  due_at_ms      BIGINT  NOT NULL,
  ended_at_ms    BIGINT,
  outcome        TEXT,
  rule           TEXT,
  fault_code     TEXT,
  fault_message  TEXT
);
-- Each event id once, but for those that came again with other content: each content of theirs once. One index without a
-- condition, so that it also finds all rows of a link.
CREATE UNIQUE INDEX inbox_once ON inbox (link_key, event_id, (CASE WHEN conflict THEN body_sha256 ELSE '' END));
CREATE INDEX inbox_due ON inbox (due_at_ms, key) WHERE status = 'pending';
-- due_at_ms of a leased row is when its lease lapses.
CREATE INDEX inbox_leased ON inbox (due_at_ms) WHERE status = 'leased';
CREATE INDEX inbox_dead ON inbox (key) WHERE status = 'dead';

-- The bytes stand apart, so that a change of status does not rewrite them. Each row is written in the statement of its
-- inbox row, so no constraint looks for that: where the server last looked at an empty table, it would read all of it.
CREATE TABLE inbox_body (
  inbox_key BIGINT  PRIMARY KEY,
  body      BYTEA   NOT NULL
);

-- Authentic but stale deliveries: outside the dedupe key, never settled.
CREATE TABLE hint (
  key           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  link_key      BIGINT  NOT NULL REFERENCES link (key),
  event_id      TEXT    NOT NULL,
  body_sha256   BYTEA   NOT NULL,
  body          BYTEA   NOT NULL,
  timestamp     TEXT    NOT NULL,
  count         INTEGER NOT NULL DEFAULT 1,
  first_at_ms   BIGINT  NOT NULL,
  last_at_ms    BIGINT  NOT NULL,
  UNIQUE (link_key, body_sha256)
);

-- Deliveries that were refused as not authentic: counted by reason, never their bodies.
CREATE TABLE rejection (
  key         BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  link_key    BIGINT  NOT NULL REFERENCES link (key),
  reason      TEXT    NOT NULL,
  count       BIGINT  NOT NULL,
  first_at_ms BIGINT  NOT NULL,
  last_at_ms  BIGINT  NOT NULL,
  UNIQUE (link_key, reason)
);
