import { type PersonRole, SESSION_MS } from '../../domain/access.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { type Author, writeAudit } from './audit.ts';

/**
 * Tokens, sessions and sign-in links. The store keeps only the SHA-256 of their secrets.
 *
 * A change to a token or session locks its row first and the audit chain last. Sessions and sign-in links hold the
 * SHA-256 of the token that they came from, and are valid only while it is.
 */

const TOKEN = `SELECT key, name, role, created_at_ms AS createdAtMs, expires_at_ms AS expiresAtMs,
  revoked_at_ms AS revokedAtMs FROM access_token`;
const TOKEN_BY_NAME = statement(`${TOKEN} WHERE name = @name AND revoked_at_ms IS NULL FOR NO KEY UPDATE`);
const TOKEN_BY_DIGEST = statement(`
  ${TOKEN} WHERE sha256 = @sha256 AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > @nowMs)`);
/** Finds a token that is neither revoked nor expired. */
export function* findToken(tx: Transaction, asked: { sha256: Uint8Array; nowMs: number }): Work<TokenSummary | null> {
  return (yield* tx.one<TokenSummary>(TOKEN_BY_DIGEST, asked)) ?? null;
}

const TOKENS = statement(`${TOKEN} ORDER BY revoked_at_ms IS NOT NULL, name, key LIMIT 1000`);
const INSERT_TOKEN = statement(`
  INSERT INTO access_token (name, role, sha256, created_at_ms, expires_at_ms)
  VALUES (@name, @role, @sha256, @atMs, @expiresAtMs)
  ON CONFLICT (name) WHERE revoked_at_ms IS NULL DO NOTHING RETURNING key`);
const REVOKE_TOKEN = statement('UPDATE access_token SET revoked_at_ms = @atMs WHERE key = @key');

const SESSION = `SELECT s.key, s.name, s.role, s.created_at_ms AS createdAtMs, s.used_at_ms AS usedAtMs,
  s.ended_at_ms AS endedAtMs FROM session s`;
/** The token is the bootstrap token, or a named one that is neither revoked nor expired. */
const tokenIsValid = (of: 's' | 'l') => `(${of}.token_sha256 = @bootstrapSha256 OR EXISTS (
    SELECT 1 FROM access_token t WHERE t.sha256 = ${of}.token_sha256 AND t.revoked_at_ms IS NULL
      AND (t.expires_at_ms IS NULL OR t.expires_at_ms > @nowMs)))`;
const IS_LIVE = `s.ended_at_ms IS NULL AND s.used_at_ms > @nowMs::bigint - ${SESSION_MS.idle}
  AND s.created_at_ms > @nowMs::bigint - ${SESSION_MS.most} AND ${tokenIsValid('s')}`;
const FIND_SESSION = statement(
  `${SESSION.replace(' FROM', ', s.token_sha256 AS tokenSha256 FROM')} WHERE s.sha256 = @sha256 AND ${IS_LIVE}`,
);
const SESSIONS = statement(`${SESSION} WHERE ${IS_LIVE} ORDER BY s.key DESC LIMIT 1000`);
const INSERT_SESSION = statement(`
  INSERT INTO session (sha256, name, role, token_sha256, created_at_ms, used_at_ms)
  VALUES (@sha256, @name, @role, @tokenSha256, @atMs, @atMs) RETURNING key`);
const FORGET_SESSIONS = statement('DELETE FROM session WHERE created_at_ms <= @atMs::bigint - 2592000000');
const TOUCH = statement('UPDATE session SET used_at_ms = @atMs WHERE key = @key AND used_at_ms < @atMs');
const LOCK_SESSION = statement(`${SESSION} WHERE s.key = @key AND s.ended_at_ms IS NULL FOR NO KEY UPDATE`);
const END_SESSION = statement('UPDATE session SET ended_at_ms = @atMs WHERE key = @key');

const INSERT_LINK = statement(`
  INSERT INTO sign_in_link (sha256, name, role, token_sha256, expires_at_ms)
  VALUES (@sha256, @name, @role, @tokenSha256, @expiresAtMs)`);
const FORGET_LINKS = statement('DELETE FROM sign_in_link WHERE expires_at_ms <= @atMs');
const TAKE_LINK = statement(`
  DELETE FROM sign_in_link AS l WHERE l.sha256 = @linkSha256 AND l.expires_at_ms > @nowMs AND ${tokenIsValid('l')}
  RETURNING name, role, token_sha256 AS tokenSha256`);

export type TokenSummary = {
  key: number;
  name: string;
  role: PersonRole;
  createdAtMs: number;
  expiresAtMs: number | null;
  revokedAtMs: number | null;
};

export type SessionSummary = {
  key: number;
  name: string;
  role: PersonRole;
  createdAtMs: number;
  usedAtMs: number;
  endedAtMs: number | null;
};

/** Who the bearer of a session or sign-in link is. `tokenSha256`: of the token that the person signed in with. */
type Bearer = { name: string; role: PersonRole; tokenSha256: Uint8Array };
type SignIn = Bearer & { sha256: Uint8Array; by: Author; atMs: number };
type NewToken = Pick<TokenSummary, 'name' | 'role' | 'expiresAtMs'> & { sha256: Uint8Array; by: Author; atMs: number };

export const accessVerbs = {
  /** `taken`: another token has this name and is not revoked. */
  *addToken(tx: Transaction, { by, ...token }: NewToken): Work<TokenSummary | 'taken'> {
    const { name, role, expiresAtMs, atMs } = token;
    const row = yield* tx.one<{ key: number }>(INSERT_TOKEN, token);
    if (row === undefined) return 'taken';
    const after = { role, expiresAt: expiresAtMs };
    yield* writeAudit(tx, by, { action: 'add_token', subject: name, after }, atMs);
    return { key: row.key, name, role, createdAtMs: atMs, expiresAtMs, revokedAtMs: null };
  },
  /** Revokes a token by name, and ends its sessions and sign-in links. Null if there is no such token. */
  *revokeToken(tx: Transaction, revoked: { name: string; by: Author; atMs: number }): Work<TokenSummary | null> {
    const { name, by, atMs } = revoked;
    const found = yield* tx.one<TokenSummary>(TOKEN_BY_NAME, { name });
    if (found === undefined) return null;
    tx.send(REVOKE_TOKEN, { key: found.key, atMs });
    yield* writeAudit(tx, by, { action: 'revoke_token', subject: name, before: { role: found.role } }, atMs);
    return { ...found, revokedAtMs: atMs };
  },
  /** Stores a link that signs in once, and deletes expired ones. */
  *addSignInLink(tx: Transaction, { by, ...link }: SignIn & { expiresAtMs: number }): Work<void> {
    tx.send(FORGET_LINKS, { atMs: link.atMs });
    tx.send(INSERT_LINK, link);
    yield* writeAudit(tx, by, { action: 'add_sign_in_link', subject: link.name }, link.atMs);
  },
  /**
   * Consumes a sign-in link and begins a session for its person. Null if the link does not exist or has expired, or if
   * its token was revoked.
   */
  *consumeSignInLink(
    tx: Transaction,
    used: {
      linkSha256: Uint8Array;
      sha256: Uint8Array;
      bootstrapSha256: Uint8Array;
      from: Pick<Author, 'origin' | 'address' | 'auditKey'>;
      atMs: number;
    },
  ): Work<SessionSummary | null> {
    const { linkSha256, sha256, bootstrapSha256, from, atMs } = used;
    const link = yield* tx.one<Bearer>(TAKE_LINK, { linkSha256, bootstrapSha256, nowMs: atMs });
    if (link === undefined) return null;
    const { name, role } = link;
    return yield* beginSession(tx, { ...link, sha256, by: { ...from, name, role }, atMs });
  },
  beginSession,
  /** Records that a session was used. */
  *touchSession(tx: Transaction, touched: { key: number; atMs: number }): Work<void> {
    tx.send(TOUCH, touched);
  },
  /** Ends a session. Null if it does not exist or has ended. */
  *endSession(tx: Transaction, ended: { key: number; by: Author; atMs: number }): Work<SessionSummary | null> {
    const { key, by, atMs } = ended;
    const found = yield* tx.one<SessionSummary>(LOCK_SESSION, { key });
    if (found === undefined) return null;
    tx.send(END_SESSION, { key, atMs });
    const { name, role } = found;
    const action = by.name === name && by.origin === 'console' ? 'sign_out' : 'end_session';
    yield* writeAudit(tx, by, { action, subject: String(key), before: { name, role } }, atMs);
    return { ...found, endedAtMs: atMs };
  },
};

function* beginSession(tx: Transaction, { by, ...session }: SignIn): Work<SessionSummary> {
  const { name, role, atMs } = session;
  tx.send(FORGET_SESSIONS, { atMs });
  const { key } = (yield* tx.one<{ key: number }>(INSERT_SESSION, session)) as { key: number };
  yield* writeAudit(tx, by, { action: 'sign_in', subject: String(key), after: { name, role } }, atMs);
  return { key, name, role, createdAtMs: atMs, usedAtMs: atMs, endedAtMs: null };
}

type AtTime = { bootstrapSha256: Uint8Array; nowMs: number };

export const accessQueries = {
  findToken,
  /** Finds a session that has not ended or expired and whose token is valid: the bootstrap token or a named one. */
  *findSession(
    tx: Transaction,
    asked: AtTime & { sha256: Uint8Array },
  ): Work<(SessionSummary & { tokenSha256: Uint8Array }) | null> {
    return (yield* tx.one<SessionSummary & { tokenSha256: Uint8Array }>(FIND_SESSION, asked)) ?? null;
  },
  /** Every named token, revoked ones last. */
  *listTokens(tx: Transaction): Work<TokenSummary[]> {
    return yield* tx.all<TokenSummary>(TOKENS);
  },
  /** Sessions that have not ended, newest first. */
  *listSessions(tx: Transaction, asked: AtTime): Work<SessionSummary[]> {
    return yield* tx.all<SessionSummary>(SESSIONS, asked);
  },
};
