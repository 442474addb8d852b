-- How many notices have each status, and how many checks of each rank are in the queue. Both may be as many as the shop has
-- orders: where nobody takes notices, and where nobody may ask the service. Notices are never deleted.
CREATE TABLE notice_count (
  status TEXT    NOT NULL PRIMARY KEY,
  n      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO notice_count VALUES
  ('pending', (SELECT count(*) FROM outbox WHERE status = 'pending')),
  ('leased', (SELECT count(*) FROM outbox WHERE status = 'leased')),
  ('dead', (SELECT count(*) FROM outbox WHERE status = 'dead')),
  ('done', (SELECT count(*) FROM outbox));
-- The others have indexes of their own.
UPDATE notice_count SET n = n - (SELECT sum(n) FROM notice_count WHERE status <> 'done') WHERE status = 'done';
CREATE TRIGGER notice_count_new AFTER INSERT ON outbox BEGIN
  UPDATE notice_count SET n = n + 1 WHERE status = new.status;
END;
CREATE TRIGGER notice_count_change AFTER UPDATE OF status ON outbox WHEN new.status <> old.status BEGIN
  UPDATE notice_count SET n = n - 1 WHERE status = old.status;
  UPDATE notice_count SET n = n + 1 WHERE status = new.status;
END;

CREATE TABLE check_count (
  rank INTEGER NOT NULL PRIMARY KEY,
  n    INTEGER NOT NULL
) STRICT;
INSERT INTO check_count SELECT rank, count(*) FROM link_check GROUP BY rank;
CREATE TRIGGER check_count_new AFTER INSERT ON link_check BEGIN
  INSERT INTO check_count VALUES (new.rank, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER check_count_change AFTER UPDATE OF rank ON link_check WHEN new.rank <> old.rank BEGIN
  UPDATE check_count SET n = n - 1 WHERE rank = old.rank;
  INSERT INTO check_count VALUES (new.rank, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER check_count_gone AFTER DELETE ON link_check BEGIN
  UPDATE check_count SET n = n - 1 WHERE rank = old.rank;
END;
