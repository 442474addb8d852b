-- expands
-- Beside status `dead`: true if a later notice of the order made this one needless, so that nobody need look; false if a
-- person had it sent again after that, so that it is sent whatever the shop has taken since. Null of all others.
ALTER TABLE outbox ADD COLUMN superseded boolean;
CREATE INDEX CONCURRENTLY outbox_superseded ON outbox (key) WHERE superseded;
