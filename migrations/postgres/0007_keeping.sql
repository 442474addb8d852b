-- expands
-- The generation rises when a copy takes the place of the database: positions of the feed may then name other notices.
-- `restored_from_ms`: when the copy was made, until the links made since were looked for.
ALTER TABLE instance ADD COLUMN generation BIGINT NOT NULL DEFAULT 1;
ALTER TABLE instance ADD COLUMN restored_from_ms BIGINT;
-- While the secrets key is being changed: the ids of the other keys under which secrets may rest, a space between two.
ALTER TABLE instance ADD COLUMN secrets_key_others TEXT NOT NULL DEFAULT '';

-- Each link is told of once, although the matter has ended since.
CREATE INDEX attention_link_not_known ON attention (subject) WHERE kind = 'link_not_known';

-- Hints whose bytes are still there.
CREATE INDEX hint_with_body ON hint (last_at_ms) WHERE length(body) > 0;

-- Set where the service's API was the first to say that an order was paid; cleared by the first webhook that says so.
ALTER TABLE settlement ADD COLUMN webhook_missing BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX settlement_webhook_missing ON settlement (paid_at_ms) WHERE webhook_missing;

-- Notices that wait to be tried again, by when each was tried first.
CREATE INDEX outbox_tried ON outbox (first_tried_at_ms) WHERE status = 'pending' AND attempt > 0;

-- Rows of these tables are never deleted, and keys have gaps: so many rows there are up to a key. Those after it are counted
-- when somebody asks.
CREATE TABLE counted (
  name   TEXT   PRIMARY KEY CHECK (name IN ('inbox', 'outbox')),
  to_key BIGINT NOT NULL DEFAULT 0,
  n      BIGINT NOT NULL DEFAULT 0
);
INSERT INTO counted (name) VALUES ('inbox'), ('outbox');
