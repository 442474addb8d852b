-- Notices owed to the shop, written in the transaction of the change that they tell.
CREATE TABLE outbox (
  key           INTEGER PRIMARY KEY,
  notice_id     TEXT    NOT NULL,
  order_key     INTEGER NOT NULL REFERENCES orders (key),
  type          TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  body          TEXT    NOT NULL,
  status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'dead')),
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_by_order ON outbox (order_key, key);

-- Counts the notices that are not pending; most are pending, done soon, or counted by what is left.
CREATE INDEX outbox_not_pending ON outbox (status, key) WHERE status <> 'pending';

-- Standing matters for a person. One open row per kind and subject.
CREATE TABLE attention (
  key          INTEGER PRIMARY KEY,
  kind         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  order_key    INTEGER REFERENCES orders (key),
  detail       TEXT    NOT NULL,
  count        INTEGER NOT NULL DEFAULT 1,
  opened_at_ms INTEGER NOT NULL,
  last_at_ms   INTEGER NOT NULL,
  ended_at_ms  INTEGER
) STRICT;
CREATE UNIQUE INDEX attention_open ON attention (kind, subject) WHERE ended_at_ms IS NULL;
CREATE INDEX attention_by_order ON attention (order_key);
