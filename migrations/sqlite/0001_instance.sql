-- One row that says what this database is, and under which key its secrets rest.
CREATE TABLE instance (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  instance_id    TEXT    NOT NULL,
  secrets_key_id TEXT    NOT NULL,
  created_at_ms  INTEGER NOT NULL,
  alive_at_ms    INTEGER NOT NULL
) STRICT;
