-- expands
-- Named tokens of people and programs. The token itself is kept nowhere: only its SHA-256.
CREATE TABLE access_token (
  key           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  sha256        BYTEA  NOT NULL UNIQUE,
  created_at_ms BIGINT NOT NULL,
  expires_at_ms BIGINT,
  revoked_at_ms BIGINT
);
CREATE UNIQUE INDEX access_token_name ON access_token (name) WHERE revoked_at_ms IS NULL;

-- Signed-in browsers, by the SHA-256 of their session id. `token_sha256` is the token that the person signed in with: its
-- sessions end with it.
CREATE TABLE session (
  key           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sha256        BYTEA  NOT NULL UNIQUE,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  token_sha256  BYTEA  NOT NULL,
  created_at_ms BIGINT NOT NULL,
  used_at_ms    BIGINT NOT NULL,
  ended_at_ms   BIGINT
);
CREATE INDEX session_open ON session (key) WHERE ended_at_ms IS NULL;

-- Links that sign a browser in once, by the SHA-256 of their secret part.
CREATE TABLE sign_in_link (
  sha256        BYTEA  PRIMARY KEY,
  name          TEXT   NOT NULL,
  role          TEXT   NOT NULL,
  token_sha256  BYTEA  NOT NULL,
  expires_at_ms BIGINT NOT NULL
);

-- What people and named tokens changed. Each row's `mac` covers the row and the `mac` of the one before it.
CREATE TABLE audit (
  number  BIGINT PRIMARY KEY,
  at_ms   BIGINT NOT NULL,
  actor   TEXT   NOT NULL,
  role    TEXT   NOT NULL,
  origin  TEXT   NOT NULL,
  address TEXT   NOT NULL,
  action  TEXT   NOT NULL,
  subject TEXT   NOT NULL,
  reason  TEXT,
  before  TEXT,
  after   TEXT,
  mac     BYTEA  NOT NULL
);
CREATE INDEX audit_by_subject ON audit (subject, number);
CREATE INDEX audit_by_actor ON audit (actor, number);

-- The end of that chain, in one row, which is locked last; and its key, sealed under the secrets key. If a person gave up the
-- secrets key, the chain goes on under a new key after the row `since_number`; the rows up to it cannot be verified.
CREATE TABLE audit_head (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  number         BIGINT NOT NULL,
  mac            BYTEA NOT NULL,
  since_number   BIGINT NOT NULL,
  since_mac      BYTEA NOT NULL,
  sealed_key     BYTEA,
  secrets_key_id TEXT
);
INSERT INTO audit_head (one, number, mac, since_number, since_mac) VALUES (1, 0, '\x', 0, '\x');
