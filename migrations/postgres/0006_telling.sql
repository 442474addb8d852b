-- expands
-- A notice's way to the shop's callback: pending → leased → done | dead. `due_at_ms` is null while an earlier notice of the
-- same order is owed; of a leased row it is when the lease of its `holder` lapses. `first_tried_at_ms`: retries end so long
-- after it. The answer is the shop's last one.
ALTER TABLE outbox ADD COLUMN due_at_ms BIGINT;
ALTER TABLE outbox ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN holder TEXT;
ALTER TABLE outbox ADD COLUMN first_tried_at_ms BIGINT;
ALTER TABLE outbox ADD COLUMN ended_at_ms BIGINT;
ALTER TABLE outbox ADD COLUMN fault_code TEXT;
ALTER TABLE outbox ADD COLUMN fault_message TEXT;
ALTER TABLE outbox ADD COLUMN answer_status INTEGER;
ALTER TABLE outbox ADD COLUMN answer_body TEXT;

-- Retries of many notices must not stand before those that were never tried.
CREATE INDEX outbox_new ON outbox (due_at_ms) WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL;
CREATE INDEX outbox_again ON outbox (due_at_ms) WHERE status = 'pending' AND attempt > 0 AND due_at_ms IS NOT NULL;
-- Most notices are done: the others are found without reading those.
CREATE INDEX outbox_pending ON outbox (key) WHERE status = 'pending';
CREATE INDEX outbox_leased ON outbox (key, due_at_ms) WHERE status = 'leased';
CREATE INDEX outbox_dead ON outbox (key) WHERE status = 'dead';

-- Keys are given before commits, so a reader that follows them would miss a row that is committed late. A position is given
-- to committed rows only, one after the other, in the order of keys within an order.
ALTER TABLE outbox ADD COLUMN position BIGINT UNIQUE;
CREATE INDEX outbox_without_position ON outbox (key) WHERE position IS NULL;
