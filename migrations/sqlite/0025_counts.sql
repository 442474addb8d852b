-- expands
-- A statement with a trigger keeps copies of the pages that it changes, and each settlement had two. The writer counts
-- orders that change their state, once for a batch. A new notice needs no count: its key is one. Counted are the notices
-- that are no longer pending, because only these and the pending ones may be as many as the shop has orders.
DROP TRIGGER order_count_change;
DROP TRIGGER notice_count_new;
DROP TRIGGER notice_count_change;
DELETE FROM notice_count;
INSERT INTO notice_count SELECT 'begun', count(*) FROM outbox WHERE status <> 'pending';
CREATE TRIGGER notice_count_change AFTER UPDATE OF status ON outbox
WHEN (new.status = 'pending') <> (old.status = 'pending') BEGIN
  UPDATE notice_count SET n = n + (old.status = 'pending') - (new.status = 'pending');
END;
