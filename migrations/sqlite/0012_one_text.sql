-- The columns that PostgreSQL's tables have, so that one text of SQL serves both: the holder of a lease, and the number of
-- the last request to the API. Keys of links are never given again, by SQLite's own means.
ALTER TABLE inbox ADD COLUMN holder TEXT;
ALTER TABLE outbox ADD COLUMN holder TEXT;
ALTER TABLE opening ADD COLUMN holder TEXT;

ALTER TABLE api_state ADD COLUMN last_request INTEGER NOT NULL DEFAULT 0;
UPDATE api_state SET last_request = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'api_request'), 0);

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
  'key                INTEGER PRIMARY KEY,', 'key                INTEGER PRIMARY KEY AUTOINCREMENT,') WHERE name = 'link';
PRAGMA writable_schema = RESET;
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'link', max(highest_key, coalesce((SELECT max(key) FROM link), 0)) FROM forgotten_link;

-- What a sentence for people said is kept as data, and src/explain makes the sentence when it is read. Rows of before have
-- null: their sentences stay in attention.detail, opening.fault_message and history.what. params: JSON by kind.
ALTER TABLE attention ADD COLUMN params TEXT;
ALTER TABLE attention ADD COLUMN ended_reason TEXT;
ALTER TABLE opening ADD COLUMN foreign_id TEXT;
ALTER TABLE link ADD COLUMN service_secret_flaw TEXT;
ALTER TABLE opening ADD COLUMN needs_id INTEGER NOT NULL DEFAULT 0 CHECK (needs_id IN (0, 1));
