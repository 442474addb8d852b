-- expands
-- A row of the inbox is an event, or what the service's API answered: then this is the reading's number, `mac` is the
-- SHA-256 of its body, and `type` is why the service was asked.
ALTER TABLE inbox ADD COLUMN reading BIGINT;

-- Links that settled opened itself are hidden from the shop until their address is known, and while they are withheld.
ALTER TABLE link ADD COLUMN opened BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE link ADD COLUMN withheld TEXT;
ALTER TABLE link ADD COLUMN expires_at_ms BIGINT;
-- Where the customer is sent after paying, and the token of our own address that sends them there.
ALTER TABLE link ADD COLUMN callback_url TEXT;
ALTER TABLE link ADD COLUMN return_token TEXT;
ALTER TABLE link ADD COLUMN returned_at_ms BIGINT;
-- When the link was last read, when a hint was last followed, when the schedule asks next.
ALTER TABLE link ADD COLUMN checked_at_ms BIGINT;
ALTER TABLE link ADD COLUMN hinted_at_ms BIGINT;
ALTER TABLE link ADD COLUMN next_check_at_ms BIGINT;
ALTER TABLE link ADD COLUMN check_failures INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX link_by_return_token ON link (return_token) WHERE return_token IS NOT NULL;
CREATE INDEX link_next_check ON link (next_check_at_ms, key) WHERE next_check_at_ms IS NOT NULL;
-- Counts the hints of the last minute.
CREATE INDEX link_hinted ON link (hinted_at_ms) WHERE hinted_at_ms IS NOT NULL;

-- The links that somebody or something wants asked about now: one row per link, whatever the number of reasons. A higher
-- rank is asked about first. `confirm_since_ms`: since when a completion waits for the API to confirm it. Requests to the
-- API tell what an answer is to: `reason_after` is the number of the last one before the reason was heard, `heard_after`
-- before something was heard last. `again_reason` is the strongest that was heard beside the reason since it was claimed.
CREATE TABLE link_check (
  link_key         BIGINT  PRIMARY KEY REFERENCES link (key),
  reason           TEXT    NOT NULL,
  rank             INTEGER NOT NULL,
  requested_at_ms  BIGINT  NOT NULL,
  due_at_ms        BIGINT  NOT NULL,
  failures         INTEGER NOT NULL DEFAULT 0,
  confirm_since_ms BIGINT,
  reason_after     BIGINT  NOT NULL DEFAULT 0,
  heard_after      BIGINT  NOT NULL DEFAULT 0,
  again_reason     TEXT,
  again_rank       INTEGER
);
CREATE INDEX link_check_due ON link_check (rank, due_at_ms, link_key);

-- Links that settled is opening. The row is committed before the service hears of the link. `may_exist`: a request left
-- whose answer never came, so the service may have made the link. `holder` is the replica that leased it.
CREATE TABLE opening (
  link_key      BIGINT  PRIMARY KEY REFERENCES link (key),
  request       TEXT    NOT NULL,
  status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'taken')),
  attempt       INTEGER NOT NULL DEFAULT 0,
  holder        TEXT,
  may_exist     BOOLEAN NOT NULL DEFAULT false,
  due_at_ms     BIGINT  NOT NULL,
  ended_at_ms   BIGINT,
  fault_code    TEXT,
  fault_message TEXT
);
CREATE INDEX opening_due ON opening (due_at_ms) WHERE status = 'pending';
CREATE INDEX opening_leased ON opening (due_at_ms) WHERE status = 'leased';
CREATE INDEX opening_taken ON opening (link_key) WHERE status = 'taken';

-- Requests to the API whose slot is not free again. The number orders readings, so it is never used twice.
CREATE TABLE api_request (
  number        BIGINT  PRIMARY KEY,
  class         TEXT    NOT NULL,
  started_at_ms BIGINT  NOT NULL,
  free_at_ms    BIGINT  NOT NULL
);

-- What is known of the API as a whole, in one row that who takes a slot holds: the number of the last request that left, or
-- is about to; a pause that the API asked for, a pause that spares creations, how much of its limit others use, and how
-- many quotes in a row named other money than their links.
CREATE TABLE api_state (
  one                    INTEGER PRIMARY KEY CHECK (one = 1),
  last_request           BIGINT  NOT NULL DEFAULT 0,
  paused_until_ms        BIGINT  NOT NULL DEFAULT 0,
  asking_paused_until_ms BIGINT  NOT NULL DEFAULT 0,
  foreign_slots          INTEGER NOT NULL DEFAULT 0,
  foreign_until_ms       BIGINT  NOT NULL DEFAULT 0,
  quote_mismatches       INTEGER NOT NULL DEFAULT 0
);
INSERT INTO api_state (one) VALUES (1);

-- Where the service knew something else than settled: what, who was right, and how it was learned.
CREATE TABLE drift (
  key        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_key  BIGINT  NOT NULL REFERENCES orders (key),
  reading    BIGINT  NOT NULL,
  at_ms      BIGINT  NOT NULL,
  ours       TEXT    NOT NULL,
  theirs     TEXT    NOT NULL,
  rule       TEXT    NOT NULL,
  right_side TEXT    NOT NULL CHECK (right_side IN ('service', 'undecided')),
  learned_by TEXT    NOT NULL
);
CREATE INDEX drift_by_order ON drift (order_key, key);
