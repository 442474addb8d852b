-- A row of the inbox is an event, or what the service's API answered: then this is the reading's number, `mac` is the
-- SHA-256 of its body, and `type` is why the service was asked.
ALTER TABLE inbox ADD COLUMN reading INTEGER;

-- Links that settled opened itself are hidden from the shop until their address is known, and while they are withheld.
ALTER TABLE link ADD COLUMN opened INTEGER NOT NULL DEFAULT 0 CHECK (opened IN (0, 1));
ALTER TABLE link ADD COLUMN withheld TEXT;
ALTER TABLE link ADD COLUMN expires_at_ms INTEGER;
-- Where the customer is sent after paying, and the token of our own address that sends them there.
ALTER TABLE link ADD COLUMN callback_url TEXT;
ALTER TABLE link ADD COLUMN return_token TEXT;
ALTER TABLE link ADD COLUMN returned_at_ms INTEGER;
-- When the link was last read, when a hint was last followed, when the schedule asks next.
ALTER TABLE link ADD COLUMN checked_at_ms INTEGER;
ALTER TABLE link ADD COLUMN hinted_at_ms INTEGER;
ALTER TABLE link ADD COLUMN next_check_at_ms INTEGER;
ALTER TABLE link ADD COLUMN check_failures INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX link_by_return_token ON link (return_token) WHERE return_token IS NOT NULL;
CREATE INDEX link_next_check ON link (next_check_at_ms) WHERE next_check_at_ms IS NOT NULL;
-- Counts the hints of the last minute.
CREATE INDEX link_hinted ON link (hinted_at_ms) WHERE hinted_at_ms IS NOT NULL;
UPDATE link SET next_check_at_ms = created_at_ms + 120000;

-- The links that somebody or something wants asked about now: one row per link, whatever the number of reasons. A higher
-- rank is asked about first. `confirm_since_ms`: since when a completion waits for the API to confirm it. Requests to the
-- API tell what an answer is to: `reason_after` is the number of the last one before the reason was heard, `heard_after`
-- before something was heard last. `again_reason` is the strongest that was heard beside the reason since it was claimed.
CREATE TABLE link_check_ranked (
  link_key         INTEGER PRIMARY KEY REFERENCES link (key),
  reason           TEXT    NOT NULL,
  rank             INTEGER NOT NULL,
  requested_at_ms  INTEGER NOT NULL,
  due_at_ms        INTEGER NOT NULL,
  failures         INTEGER NOT NULL DEFAULT 0,
  confirm_since_ms INTEGER,
  reason_after     INTEGER NOT NULL DEFAULT 0,
  heard_after      INTEGER NOT NULL DEFAULT 0,
  again_reason     TEXT,
  again_rank       INTEGER
) STRICT;
INSERT INTO link_check_ranked (link_key, reason, rank, requested_at_ms, due_at_ms)
  SELECT link_key, reason,
    CASE reason WHEN 'registered' THEN 0 WHEN 'link_changed' THEN 2 WHEN 'rejected' THEN 3 WHEN 'doubtful_money' THEN 6
      ELSE 4 END,
    requested_at_ms, requested_at_ms
  FROM link_check;
DROP TABLE link_check;
ALTER TABLE link_check_ranked RENAME TO link_check;
CREATE INDEX link_check_due ON link_check (rank, due_at_ms);

-- Links that settled is opening. The row is committed before the service hears of the link. `may_exist`: a request left
-- whose answer never came, so the service may have made the link.
CREATE TABLE opening (
  link_key      INTEGER PRIMARY KEY REFERENCES link (key),
  request       TEXT    NOT NULL,
  status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'done', 'taken')),
  attempt       INTEGER NOT NULL DEFAULT 0,
  may_exist     INTEGER NOT NULL DEFAULT 0 CHECK (may_exist IN (0, 1)),
  due_at_ms     INTEGER NOT NULL,
  ended_at_ms   INTEGER,
  fault_code    TEXT,
  fault_message TEXT
) STRICT;
CREATE INDEX opening_due ON opening (due_at_ms) WHERE status = 'pending';
CREATE INDEX opening_leased ON opening (due_at_ms) WHERE status = 'leased';
CREATE INDEX opening_taken ON opening (link_key) WHERE status = 'taken';

-- The highest key of a link that was forgotten: no other link gets it, for somebody may still speak of the forgotten one.
CREATE TABLE forgotten_link (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  highest_key INTEGER NOT NULL
) STRICT;
INSERT INTO forgotten_link VALUES (1, 0);

-- Requests to the API whose slot is not free again. The number orders readings, so it is never used twice.
CREATE TABLE api_request (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  class         TEXT    NOT NULL,
  started_at_ms INTEGER NOT NULL,
  free_at_ms    INTEGER NOT NULL
) STRICT;

-- What is known of the API as a whole, in one row: a pause that it asked for, a pause that spares creations, how much of
-- its limit others use, and how many quotes in a row named other money than their links.
CREATE TABLE api_state (
  one                    INTEGER PRIMARY KEY CHECK (one = 1),
  paused_until_ms        INTEGER NOT NULL DEFAULT 0,
  asking_paused_until_ms INTEGER NOT NULL DEFAULT 0,
  foreign_slots          INTEGER NOT NULL DEFAULT 0,
  foreign_until_ms       INTEGER NOT NULL DEFAULT 0,
  quote_mismatches       INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO api_state (one) VALUES (1);

-- Where the service knew something else than settled: what, who was right, and how it was learned.
CREATE TABLE drift (
  key        INTEGER PRIMARY KEY,
  order_key  INTEGER NOT NULL REFERENCES orders (key),
  reading    INTEGER NOT NULL,
  at_ms      INTEGER NOT NULL,
  ours       TEXT    NOT NULL,
  theirs     TEXT    NOT NULL,
  rule       TEXT    NOT NULL,
  right_side TEXT    NOT NULL CHECK (right_side IN ('service', 'undecided')),
  learned_by TEXT    NOT NULL
) STRICT;
CREATE INDEX drift_by_order ON drift (order_key, key);
