-- expands
-- Why a link is in the queue: one row for each reason, so that none takes another's place. `heard_after` is the number of
-- the last request to the API before the reason was heard: an answer to a later request answers it.
CREATE TABLE check_reason (
  link_key    BIGINT  NOT NULL,
  reason      TEXT    NOT NULL,
  rank        INTEGER NOT NULL,
  heard_after BIGINT  NOT NULL,
  PRIMARY KEY (link_key, reason)
);

-- A row of `link_check` is a link's place in the queue, which its strongest reason gives it. `claimed_after` is the number of
-- the last request before the link was claimed last.
ALTER TABLE link_check ADD COLUMN claimed_after BIGINT DEFAULT 0;
ALTER TABLE link_check ALTER COLUMN claimed_after DROP DEFAULT;

-- Programs of the release before keep two reasons in columns of `link_check` and do not know the rows. Until none of them
-- serves, triggers make rows of what they write, and write the columns as they read them:
-- `reason_after` is when the place's reason was heard, `heard_after` when any was, `again_reason` the strongest other reason.
-- All who write these tables hold the link's order, so the triggers lock nothing.

-- A request of such a program names every reason that it hears, also the one that its columns have no room for.
CREATE FUNCTION hear_check_reason() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO check_reason (link_key, reason, rank, heard_after)
    VALUES (new.link_key, new.reason, new.rank, new.heard_after)
    ON CONFLICT (link_key, reason) DO UPDATE SET heard_after = greatest(check_reason.heard_after, excluded.heard_after);
  new.claimed_after := 0;
  RETURN new;
END $$;
CREATE TRIGGER check_reason_heard BEFORE INSERT ON link_check
  FOR EACH ROW WHEN (new.claimed_after IS NULL) EXECUTE FUNCTION hear_check_reason();

-- Such a program ends a reason by moving the other into its place, and empties the second column when it claims the link.
CREATE FUNCTION end_check_reason() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF new.again_reason IS NULL AND new.reason = old.reason AND new.reason_after = old.reason_after THEN
    new.claimed_after := (SELECT last_request FROM api_state);
  ELSIF new.again_reason IS NULL AND new.reason = old.again_reason AND new.reason <> old.reason
      AND new.rank <= old.rank THEN
    DELETE FROM check_reason WHERE link_key = old.link_key AND reason = old.reason;
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER check_reason_ended BEFORE UPDATE OF again_reason ON link_check
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION end_check_reason();

-- Come after the trigger above, in the order of their names.
CREATE FUNCTION show_check_reasons() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT coalesce(max(heard_after), new.heard_after),
      coalesce(max(heard_after) FILTER (WHERE reason = new.reason), new.reason_after)
    INTO new.heard_after, new.reason_after FROM check_reason WHERE link_key = new.link_key;
  new.again_reason := NULL;
  new.again_rank := NULL;
  SELECT reason, rank INTO new.again_reason, new.again_rank FROM check_reason
    WHERE link_key = new.link_key AND reason <> new.reason ORDER BY rank DESC, heard_after, reason LIMIT 1;
  -- The only reason, heard again since the link was claimed, takes its own place.
  IF new.again_reason IS NULL AND new.reason_after > new.claimed_after THEN
    new.again_reason := new.reason;
    new.again_rank := new.rank;
    new.reason_after := new.claimed_after;
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER check_reasons_shown BEFORE UPDATE OF heard_after, again_reason, claimed_after ON link_check
  FOR EACH ROW EXECUTE FUNCTION show_check_reasons();
CREATE TRIGGER check_reasons_shown_again BEFORE UPDATE OF reason ON link_check
  FOR EACH ROW WHEN (new.reason <> old.reason) EXECUTE FUNCTION show_check_reasons();

INSERT INTO check_reason (link_key, reason, rank, heard_after)
  SELECT link_key, reason, rank,
    CASE WHEN again_reason IS NULL OR again_reason = reason THEN heard_after ELSE reason_after END
  FROM link_check;
INSERT INTO check_reason (link_key, reason, rank, heard_after)
  SELECT link_key, again_reason, again_rank, heard_after FROM link_check WHERE again_reason <> reason;

-- Checked at the end of a transaction, because the first trigger writes a reason before the place that it refers to.
ALTER TABLE check_reason ADD FOREIGN KEY (link_key) REFERENCES link_check (link_key)
  ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;

CREATE FUNCTION tell_check_reasons() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND new.heard_after = old.heard_after THEN
    RETURN NULL;
  END IF;
  UPDATE link_check SET heard_after = heard_after WHERE link_key = coalesce(new.link_key, old.link_key);
  RETURN NULL;
END $$;
CREATE TRIGGER check_reason_told AFTER INSERT OR UPDATE OR DELETE ON check_reason
  FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION tell_check_reasons();
