import type { Actor, AuditHead, AuditRow, ChainFault, Change, PersonRole } from '../domain/access.ts';

/** Who makes a change, and the key that seals its row in the audit chain. */
export type Author = Actor & {
  readonly auditKey: Uint8Array;
  /** Of the named token by which it was asked; null for the bootstrap token and a proxy's person. */
  readonly tokenSha256?: Uint8Array | null;
  /** The run for which settled does it, if a person started work on many rows. */
  readonly bulk?: string;
};

/** Tokens, sessions and sign-in links. Of their secrets, the store has only the SHA-256. */
export type AccessControl = {
  /** `taken`: a token of this name was not revoked. */
  addToken(token: NewToken & { by: Author; atMs: number }): Promise<TokenSummary | 'taken'>;
  /** Revokes a token by its name; its sessions and sign-in links end with it. Null if there is none. */
  revokeToken(revoked: { name: string; by: Author; atMs: number }): Promise<TokenSummary | null>;
  /** Keeps a link that signs in once, and forgets those that have expired. */
  addSignInLink(link: SignIn & { expiresAtMs: number; by: Author; atMs: number }): Promise<void>;
  /**
   * Takes a link away and begins a session for the person that it was made for. Null if there is no such link, if it has
   * expired, or if its token was revoked.
   */
  consumeSignInLink(used: {
    linkSha256: Uint8Array;
    sha256: Uint8Array;
    bootstrapSha256: Uint8Array;
    from: Pick<Author, 'origin' | 'address' | 'auditKey'>;
    atMs: number;
  }): Promise<SessionSummary | null>;
  beginSession(session: SignIn & { by: Author; atMs: number }): Promise<SessionSummary>;
  /** Notes that a session is used. */
  touchSession(touched: { key: number; atMs: number }): Promise<void>;
  /** Ends a session. Null if there is no such session, or if it has ended. */
  endSession(ended: { key: number; by: Author; atMs: number }): Promise<SessionSummary | null>;
  /** Keeps in the audit chain what a person asks for that is no change of one row, before it is carried out. */
  recordAction(asked: { by: Author; change: Change; atMs: number }): Promise<void>;
  /** Keeps the chain's key, sealed, unless another process kept one before. Returns the one that is kept. */
  keepAuditKey(key: SealedKey): Promise<SealedKey>;
  /** Replaces the sealed key `was`, which a person gave up, by a new one: the rows so far cannot be verified any longer. */
  restartAudit(restart: SealedKey & { was: Uint8Array }): Promise<void>;
  /** Replaces the sealed key `was` by the same one sealed under another key. */
  resealAuditKey(resealed: SealedKey & { was: Uint8Array }): Promise<void>;
};

/** What a token, a session or a link lets its bearer be. `tokenSha256`: of the token by which a person signed in. */
type SignIn = { name: string; role: PersonRole; sha256: Uint8Array; tokenSha256: Uint8Array };
type NewToken = { name: string; role: PersonRole; sha256: Uint8Array; expiresAtMs: number | null };
export type SealedKey = { sealed: Uint8Array; keyId: string };

export type AccessQueries = {
  /** A token that is neither revoked nor expired. */
  findToken(asked: { sha256: Uint8Array; nowMs: number }): Promise<TokenSummary | null>;
  /** A session that has not ended or expired, and whose token is valid: the bootstrap token, or a named one. */
  findSession(asked: {
    sha256: Uint8Array;
    bootstrapSha256: Uint8Array;
    nowMs: number;
  }): Promise<(SessionSummary & { tokenSha256: Uint8Array }) | null>;
  /** Every named token, revoked ones last. */
  listTokens(): Promise<TokenSummary[]>;
  /** Sessions that have not ended, the newest first. */
  listSessions(asked: { bootstrapSha256: Uint8Array; nowMs: number }): Promise<SessionSummary[]>;
  /** A page of the audit chain, the newest first; numbers above `after` are left out. */
  listAudit(page: AuditPage): Promise<AuditRow[]>;
  /** `since`: the row after which the chain can be verified; 0 if that is all of it. */
  auditHead(): Promise<AuditHead & { since: AuditHead }>;
  /** Computes the MACs of `limit` rows after the row `from` anew. `has`: whether one of them has the MAC `wanted`. */
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

/** `last`: the last row that is as settled wrote it. `rows`: how many were verified. */
export type VerifiedAudit = { fault: ChainFault | null; last: AuditHead; rows: number; has: boolean };

export type AuditPage = { limit: number; after: number | null; actor: string | null; subject: string | null };
