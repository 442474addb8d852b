-- expands
-- The channels by which people are told of attention, while they are configured. `number` counts the messages of a channel.
-- It has one message at a time: `message_id` and `body`, until it is taken. `due_at_ms`: the next attempt, or the end of the
-- lease. `failing_since_ms`: the first of the attempts in a row that failed. `answer`: what the channel said last.
CREATE TABLE alert_channel (
  name             TEXT    NOT NULL PRIMARY KEY,
  number           INTEGER NOT NULL DEFAULT 0,
  message_id       TEXT,
  body             TEXT,
  composed_at_ms   INTEGER,
  attempt          INTEGER NOT NULL DEFAULT 0,
  holder           TEXT,
  due_at_ms        INTEGER,
  failing_since_ms INTEGER,
  fault_code       TEXT,
  fault_message    TEXT,
  taken_at_ms      INTEGER,
  answer           TEXT,
  reminded_at_ms   INTEGER,
  digested_at_ms   INTEGER NOT NULL
) STRICT;

-- What a channel has still to tell: that a matter opened, or is over. Without `attention_key`: that the order is held. A row
-- leaves with the message that tells it. It outlives its matter and its order, which a person may have settled forget.
CREATE TABLE alert_entry (
  key           INTEGER PRIMARY KEY,
  channel       TEXT    NOT NULL,
  kind          TEXT    NOT NULL,
  subject       TEXT    NOT NULL,
  opened_at_ms  INTEGER,
  attention_key INTEGER,
  order_key     INTEGER,
  what          TEXT    NOT NULL CHECK (what IN ('opened', 'over')),
  at_ms         INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_entry_by_channel ON alert_entry (channel, key);

-- Every verb that raises or ends a matter writes entries by these, and none if no channel is configured.
CREATE TRIGGER alert_opened AFTER INSERT ON attention BEGIN
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, attention_key, order_key, what, at_ms)
  SELECT name, new.kind, new.subject, new.opened_at_ms, new.key, new.order_key, 'opened', new.opened_at_ms FROM alert_channel;
END;
CREATE TRIGGER alert_over AFTER UPDATE OF ended_at_ms ON attention
WHEN old.ended_at_ms IS NULL AND new.ended_at_ms IS NOT NULL BEGIN
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, attention_key, order_key, what, at_ms)
  SELECT name, new.kind, new.subject, new.opened_at_ms, new.key, new.order_key, 'over', new.ended_at_ms FROM alert_channel;
END;
CREATE TRIGGER alert_gone AFTER DELETE ON attention WHEN old.ended_at_ms IS NULL BEGIN
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, attention_key, order_key, what, at_ms)
  SELECT name, old.kind, old.subject, old.opened_at_ms, old.key, old.order_key, 'over', old.last_at_ms FROM alert_channel;
END;
