-- expands
-- Notices owed to the shop, written in the transaction of the change that they tell.
CREATE TABLE outbox (
  key           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notice_id     TEXT    NOT NULL,
  order_key     BIGINT  NOT NULL REFERENCES orders (key),
  type          TEXT    NOT NULL,
  version       BIGINT  NOT NULL,
  body          TEXT    NOT NULL,
  status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'dead')),
  created_at_ms BIGINT  NOT NULL
);
CREATE INDEX outbox_by_order ON outbox (order_key, key);

-- Standing matters for a person. One open row per kind and subject.
CREATE TABLE attention (
  key          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  order_key    BIGINT  REFERENCES orders (key),
  detail       TEXT    NOT NULL,
  count        INTEGER NOT NULL DEFAULT 1,
  opened_at_ms BIGINT  NOT NULL,
  last_at_ms   BIGINT  NOT NULL,
  ended_at_ms  BIGINT
);
CREATE UNIQUE INDEX attention_open ON attention (kind, subject) WHERE ended_at_ms IS NULL;
CREATE INDEX attention_by_order ON attention (order_key);
