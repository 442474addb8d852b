-- expands
-- Named tokens of people and programs. The token itself is kept nowhere: only its SHA-256.
CREATE TABLE access_token (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  sha256        BLOB   NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  revoked_at_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX access_token_name ON access_token (name) WHERE revoked_at_ms IS NULL;

-- Signed-in browsers, by the SHA-256 of their session id. `token_sha256` is the token that the person signed in with: its
-- sessions end with it.
CREATE TABLE session (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  sha256        BLOB   NOT NULL UNIQUE,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  token_sha256  BLOB   NOT NULL,
  created_at_ms INTEGER NOT NULL,
  used_at_ms    INTEGER NOT NULL,
  ended_at_ms   INTEGER
) STRICT;
CREATE INDEX session_open ON session (key) WHERE ended_at_ms IS NULL;

-- Links that sign a browser in once, by the SHA-256 of their secret part.
CREATE TABLE sign_in_link (
  sha256        BLOB   PRIMARY KEY,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  token_sha256  BLOB   NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT;

-- What people and named tokens changed. Each row's `mac` covers the row and the `mac` of the one before it.
CREATE TABLE audit (
  number  INTEGER PRIMARY KEY,
  at_ms   INTEGER NOT NULL,
  actor   TEXT   NOT NULL,
  role    TEXT   NOT NULL,
  origin  TEXT   NOT NULL,
  address TEXT   NOT NULL,
  action  TEXT   NOT NULL,
  subject TEXT   NOT NULL,
  reason  TEXT,
  before  TEXT,
  after   TEXT,
  mac     BLOB   NOT NULL
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, number);
CREATE INDEX audit_by_actor ON audit (actor, number);

-- The end of that chain, in one row, which is locked last; and its key, sealed under the secrets key. If a person gave up the
-- secrets key, the chain goes on under a new key after the row `since_number`; the rows up to it cannot be verified.
CREATE TABLE audit_head (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  number         INTEGER NOT NULL,
  mac            BLOB NOT NULL,
  since_number   INTEGER NOT NULL,
  since_mac      BLOB NOT NULL,
  sealed_key     BLOB,
  secrets_key_id TEXT
) STRICT;
INSERT INTO audit_head (one, number, mac, since_number, since_mac) VALUES (1, 0, x'', 0, x'');
