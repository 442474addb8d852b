-- For a check against a list of three or more SQLite builds a table of the list at every statement; words that are joined by
-- OR it compares in place. Nothing but the text of the schema changes, which is then read anew:
-- https://sqlite.org/lang_altertable.html#otheralter
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
  'learned_by IN (''webhook'', ''reconciliation'', ''person'')',
  'learned_by = ''webhook'' OR learned_by = ''reconciliation'' OR learned_by = ''person''') WHERE name = 'settlement';
UPDATE sqlite_schema SET sql = replace(sql,
  'kind IN (''captured'', ''refunded'', ''disputed'')',
  'kind = ''captured'' OR kind = ''refunded'' OR kind = ''disputed''') WHERE name = 'ledger';
UPDATE sqlite_schema SET sql = replace(sql,
  'cause_kind IN (''event'', ''reading'', ''person'')',
  'cause_kind = ''event'' OR cause_kind = ''reading'' OR cause_kind = ''person''') WHERE name = 'history';
UPDATE sqlite_schema SET sql = replace(sql,
  'status IN (''pending'', ''leased'', ''done'', ''dead'')',
  'status = ''pending'' OR status = ''leased'' OR status = ''done'' OR status = ''dead''')
  WHERE name IN ('inbox', 'outbox');
PRAGMA writable_schema = RESET;

-- How many orders have each state: counting them reads an entry of every order there is.
CREATE TABLE order_count (
  state TEXT    NOT NULL PRIMARY KEY,
  -- Without a check: a count that somebody damaged must not refuse a settlement.
  n     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO order_count SELECT state, count(*) FROM orders GROUP BY state;
CREATE TRIGGER order_count_new AFTER INSERT ON orders BEGIN
  INSERT INTO order_count VALUES (new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER order_count_change AFTER UPDATE OF state ON orders WHEN new.state <> old.state BEGIN
  UPDATE order_count SET n = n - 1 WHERE state = old.state;
  INSERT INTO order_count VALUES (new.state, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER order_count_forgotten AFTER DELETE ON orders BEGIN
  UPDATE order_count SET n = n - 1 WHERE state = old.state;
END;
