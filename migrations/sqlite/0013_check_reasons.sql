-- Why a link is in the queue: one row for each reason, so that none takes another's place. `heard_after` is the number of
-- the last request to the API before the reason was heard: an answer to a later request answers it.
CREATE TABLE check_reason (
  link_key    INTEGER NOT NULL REFERENCES link_check (link_key) ON DELETE CASCADE,
  reason      TEXT    NOT NULL,
  rank        INTEGER NOT NULL,
  heard_after INTEGER NOT NULL,
  PRIMARY KEY (link_key, reason)
) STRICT, WITHOUT ROWID;
INSERT INTO check_reason (link_key, reason, rank, heard_after)
  SELECT link_key, reason, rank,
    CASE WHEN again_reason IS NULL OR again_reason = reason THEN heard_after ELSE reason_after END
  FROM link_check;
INSERT INTO check_reason (link_key, reason, rank, heard_after)
  SELECT link_key, again_reason, again_rank, heard_after FROM link_check WHERE again_reason <> reason;

-- A row of `link_check` is a link's place in the queue, which its strongest reason gives it. `claimed_after` is the number of
-- the last request before the link was claimed last.
ALTER TABLE link_check ADD COLUMN claimed_after INTEGER NOT NULL DEFAULT 0;
ALTER TABLE link_check DROP COLUMN reason_after;
ALTER TABLE link_check DROP COLUMN heard_after;
ALTER TABLE link_check DROP COLUMN again_reason;
ALTER TABLE link_check DROP COLUMN again_rank;
