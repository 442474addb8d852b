-- A notice's way to the shop's callback: pending → leased → done | dead. `due_at_ms` is null while an earlier notice of the
-- same order is owed; of a leased row it is when the lease lapses. `first_tried_at_ms`: retries end so long after it. The
-- answer is the shop's last one.
ALTER TABLE outbox ADD COLUMN due_at_ms INTEGER;
ALTER TABLE outbox ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN first_tried_at_ms INTEGER;
ALTER TABLE outbox ADD COLUMN ended_at_ms INTEGER;
ALTER TABLE outbox ADD COLUMN fault_code TEXT;
ALTER TABLE outbox ADD COLUMN fault_message TEXT;
ALTER TABLE outbox ADD COLUMN answer_status INTEGER;
ALTER TABLE outbox ADD COLUMN answer_body TEXT;
UPDATE outbox SET due_at_ms = created_at_ms WHERE key IN (SELECT min(key) FROM outbox GROUP BY order_key);

-- Retries of many notices must not stand before those that were never tried.
CREATE INDEX outbox_new ON outbox (due_at_ms) WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL;
CREATE INDEX outbox_again ON outbox (due_at_ms) WHERE status = 'pending' AND attempt > 0 AND due_at_ms IS NOT NULL;
-- Most notices are done: the others are found without reading those.
DROP INDEX outbox_not_pending;
CREATE INDEX outbox_pending ON outbox (key) WHERE status = 'pending';
CREATE INDEX outbox_leased ON outbox (key, due_at_ms) WHERE status = 'leased';
CREATE INDEX outbox_dead ON outbox (key) WHERE status = 'dead';

-- The generation rises when a copy takes the place of the database: positions of the feed may then name other notices.
-- `is_copy` is set in backups. `restored_from_ms`: when the copy was made, until the links made since were looked for.
ALTER TABLE instance ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
ALTER TABLE instance ADD COLUMN is_copy INTEGER NOT NULL DEFAULT 0 CHECK (is_copy IN (0, 1));
ALTER TABLE instance ADD COLUMN restored_from_ms INTEGER;
