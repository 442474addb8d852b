-- expands
-- The channels by which people are told of attention, while they are configured. `number` counts the messages of a channel.
-- It has one message at a time: `message_id` and `body`, until it is taken. `due_at_ms`: the next attempt, or the end of the
-- lease. `failing_since_ms`: the first of the attempts in a row that failed. `answer`: what the channel said last.
CREATE TABLE alert_channel (
  name             text    NOT NULL PRIMARY KEY,
  number           bigint  NOT NULL DEFAULT 0,
  message_id       text,
  body             text,
  composed_at_ms   bigint,
  attempt          integer NOT NULL DEFAULT 0,
  holder           text,
  due_at_ms        bigint,
  failing_since_ms bigint,
  fault_code       text,
  fault_message    text,
  taken_at_ms      bigint,
  answer           text,
  reminded_at_ms   bigint,
  digested_at_ms   bigint  NOT NULL
);

-- What a channel has still to tell: that a matter opened, or is over. Without `attention_key`: that the order is held. A row
-- leaves with the message that tells it. It outlives its matter and its order, which a person may have settled forget.
CREATE TABLE alert_entry (
  key           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel       text   NOT NULL,
  kind          text   NOT NULL,
  subject       text   NOT NULL,
  opened_at_ms  bigint,
  attention_key bigint,
  order_key     bigint,
  what          text   NOT NULL CHECK (what IN ('opened', 'over')),
  at_ms         bigint NOT NULL
);
CREATE INDEX alert_entry_by_channel ON alert_entry (channel, key);

-- Every verb that raises or ends a matter writes entries by these, and none if no channel is configured. So do the verbs of
-- a replica of the release before.
CREATE FUNCTION alert_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, attention_key, order_key, what, at_ms)
  SELECT name, new.kind, new.subject, new.opened_at_ms, new.key, new.order_key, 'opened', new.opened_at_ms FROM alert_channel;
  RETURN NULL;
END $$;
CREATE TRIGGER alert_opened AFTER INSERT ON attention FOR EACH ROW EXECUTE FUNCTION alert_opened();
CREATE FUNCTION alert_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO alert_entry (channel, kind, subject, opened_at_ms, attention_key, order_key, what, at_ms)
  SELECT name, old.kind, old.subject, old.opened_at_ms, old.key, old.order_key, 'over',
    CASE WHEN TG_OP = 'DELETE' THEN old.last_at_ms ELSE new.ended_at_ms END FROM alert_channel;
  RETURN NULL;
END $$;
CREATE TRIGGER alert_over AFTER UPDATE OF ended_at_ms ON attention FOR EACH ROW
WHEN (old.ended_at_ms IS NULL AND new.ended_at_ms IS NOT NULL) EXECUTE FUNCTION alert_over();
CREATE TRIGGER alert_gone AFTER DELETE ON attention FOR EACH ROW
WHEN (old.ended_at_ms IS NULL) EXECUTE FUNCTION alert_over();
