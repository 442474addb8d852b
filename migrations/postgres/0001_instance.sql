-- expands
-- One row that says what this database is, and under which key its secrets rest. `outage_ms`: how long the last
-- outage was, until every open link was made due after it.
CREATE TABLE instance (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  instance_id    TEXT    NOT NULL,
  secrets_key_id TEXT    NOT NULL,
  created_at_ms  BIGINT  NOT NULL,
  alive_at_ms    BIGINT  NOT NULL,
  outage_ms      BIGINT
);

-- The processes that work on this database: each writes its row now and then. `skew_ms`: how far its clock is ahead of the
-- database's. `settings`: a digest, keyed with the secrets key, of each setting that all must have alike, by its name.
CREATE TABLE replica (
  name           TEXT    PRIMARY KEY,
  version        TEXT    NOT NULL,
  secrets_key_id TEXT    NOT NULL,
  skew_ms        BIGINT  NOT NULL,
  started_at_ms  BIGINT  NOT NULL,
  alive_at_ms    BIGINT  NOT NULL,
  settings       TEXT    NOT NULL DEFAULT '{}'
);
