import type { Actor, AuditHead, AuditRow, ChainFault, Change, PersonRole } from '../domain/access.ts';

/** The author of a change, and the key for its row in the audit chain. */
export type Author = Actor & {
  readonly auditKey: Uint8Array;
  /** Of the author's named token; null for the bootstrap token and for people signed in by a proxy. */
  readonly tokenSha256?: Uint8Array | null;
  /** The bulk run that the change is part of. */
  readonly bulk?: string;
};

/** Tokens, sessions and sign-in links. The store keeps only the SHA-256 of their secrets. */
export type AccessControl = {
  /** `taken`: another token has this name and is not revoked. */
  addToken(token: NewToken & { by: Author; atMs: number }): Promise<TokenSummary | 'taken'>;
  /** Revokes a token by name, and ends its sessions and sign-in links. Null if there is no such token. */
  revokeToken(revoked: { name: string; by: Author; atMs: number }): Promise<TokenSummary | null>;
  /** Stores a link that signs in once, and deletes expired ones. */
  addSignInLink(link: SignIn & { expiresAtMs: number; by: Author; atMs: number }): Promise<void>;
  /**
   * Consumes a sign-in link and begins a session for its person. Null if the link does not exist or has expired, or if
   * its token was revoked.
   */
  consumeSignInLink(used: {
    linkSha256: Uint8Array;
    sha256: Uint8Array;
    bootstrapSha256: Uint8Array;
    from: Pick<Author, 'origin' | 'address' | 'auditKey'>;
    atMs: number;
  }): Promise<SessionSummary | null>;
  beginSession(session: SignIn & { by: Author; atMs: number }): Promise<SessionSummary>;
  /** Records that a session was used. */
  touchSession(touched: { key: number; atMs: number }): Promise<void>;
  /** Ends a session. Null if it does not exist or has ended. */
  endSession(ended: { key: number; by: Author; atMs: number }): Promise<SessionSummary | null>;
  /** Records in the audit chain an action that is no change of one row, before settled carries it out. */
  recordAction(asked: { by: Author; change: Change; atMs: number }): Promise<void>;
  /** Stores the sealed key of an empty chain, unless another process stored one before. Returns the stored one. */
  keepAuditKey(key: SealedKey): Promise<KeptKey>;
  /**
   * Replaces the sealed key `was`, which cannot be opened, by a new one. Earlier rows can no longer be verified, so the
   * first row under the new key carries their end: nobody can move that unnoticed. Nothing if `was` is there no more.
   */
  restartAudit(
    restart: SealedKey & { was: KeptKey['sealed']; by: Author; reason: string; atMs: number },
  ): Promise<void>;
  /** Replaces the sealed key `was` by the same key sealed under another secrets key. */
  resealAuditKey(resealed: SealedKey & { was: Uint8Array }): Promise<void>;
};

/** Who the bearer of a session or sign-in link is. `tokenSha256`: of the token that the person signed in with. */
type SignIn = { name: string; role: PersonRole; sha256: Uint8Array; tokenSha256: Uint8Array };
type NewToken = { name: string; role: PersonRole; sha256: Uint8Array; expiresAtMs: number | null };
export type SealedKey = { sealed: Uint8Array; keyId: string };
/** The stored key of the audit chain; null if somebody removed it. */
export type KeptKey = SealedKey | { sealed: null; keyId: string | null };

export type AccessQueries = {
  /** Finds a token that is neither revoked nor expired. */
  findToken(asked: { sha256: Uint8Array; nowMs: number }): Promise<TokenSummary | null>;
  /** Finds a session that has not ended or expired and whose token is valid: the bootstrap token or a named one. */
  findSession(asked: {
    sha256: Uint8Array;
    bootstrapSha256: Uint8Array;
    nowMs: number;
  }): Promise<(SessionSummary & { tokenSha256: Uint8Array }) | null>;
  /** Every named token, revoked ones last. */
  listTokens(): Promise<TokenSummary[]>;
  /** Sessions that have not ended, newest first. */
  listSessions(asked: { bootstrapSha256: Uint8Array; nowMs: number }): Promise<SessionSummary[]>;
  /** A page of the audit chain, newest first, of rows numbered below `after`. */
  listAudit(page: AuditPage): Promise<AuditRow[]>;
  auditHead(): Promise<AuditHead>;
  /** The row after which the chain can be verified with this key; number 0 if all of it can. */
  auditStart(key: Uint8Array): Promise<AuditHead>;
  /** Recomputes the MACs of `limit` rows after the row `from`. `has`: whether one of them has the MAC `wanted`. */
  verifyAudit(page: {
    key: Uint8Array;
    from: AuditHead;
    limit: number;
    wanted: Uint8Array | null;
  }): Promise<VerifiedAudit>;
};

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

/** `last`: the last row that verified. `rows`: how many rows were verified. */
export type VerifiedAudit = { fault: ChainFault | null; last: AuditHead; rows: number; has: boolean };

export type AuditPage = { limit: number; after: number | null; actor: string | null; subject: string | null };
