import { createHmac } from 'node:crypto';
import type { Actor, AuditHead, AuditRow, ChainFault, Change } from '../../domain/access.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { KEY_MAX } from './list_pages.ts';

/** The author of a change, and the key for its row in the audit chain. */
export type Author = Actor & {
  readonly auditKey: Uint8Array;
  /** Of the author's named token; null for the bootstrap token and for people signed in by a proxy. */
  readonly tokenSha256?: Uint8Array | null;
  /** The bulk run that the change is part of. */
  readonly bulk?: string;
};

const LOCK_HEAD = statement('SELECT number, mac FROM audit_head FOR NO KEY UPDATE');
const HEAD = statement('SELECT number, mac FROM audit_head');
const INSERT = statement(`
  INSERT INTO audit (number, at_ms, actor, role, origin, address, action, subject, reason, before, after, mac)
  VALUES (@number, @atMs, @actor, @role, @origin, @address, @action, @subject, @reason, @before, @after, @mac)`);
const MOVE_HEAD = statement('UPDATE audit_head SET number = @number, mac = @mac');

/**
 * Appends a change to the audit chain. Call it last in a transaction, so that the head is locked briefly and after
 * everything else. Writes nothing if `by` is null, because no person or named token made the change.
 */
export function* writeAudit(tx: Transaction, by: Author | null, change: Change, atMs: number): Work<void> {
  if (by === null) return;
  const head = (yield* tx.one<AuditHead>(LOCK_HEAD)) as AuditHead;
  const { name: actor, role, origin, address, auditKey } = by;
  const { action, subject, reason = null } = change;
  const after = asJson(by.bulk === undefined ? change.after : { ...change.after, bulk: by.bulk });
  const before = asJson(change.before);
  const number = head.number + 1;
  const row = { number, atMs, actor, role, origin, address, action, subject, reason, before, after };
  const mac = auditMac(auditKey, head.mac, row);
  tx.send(INSERT, { ...row, mac });
  tx.send(MOVE_HEAD, { number, mac });
}

function asJson(value: Change['before']): string | null {
  return value == null ? null : JSON.stringify(value);
}

/** HMAC-SHA256 over the MAC of the row before (empty for the first) and this row. */
function auditMac(key: Uint8Array, previous: Uint8Array, row: Omit<AuditRow, 'mac'>): Buffer {
  const { number, atMs, actor, role, origin, address, action, subject, reason, before, after } = row;
  const text = JSON.stringify([number, atMs, actor, role, origin, address, action, subject, reason, before, after]);
  return createHmac('sha256', key).update(previous).update(text).digest();
}

const KEEP_KEY = statement(`
  UPDATE audit_head SET sealed_key = @sealed, secrets_key_id = @keyId WHERE sealed_key IS NULL AND number = 0`);
const FIND_KEY = statement('SELECT sealed_key AS sealed, secrets_key_id AS keyId FROM audit_head');
const RESTART = statement(`
  UPDATE audit_head SET sealed_key = @sealed, secrets_key_id = @keyId WHERE sealed_key IS NOT DISTINCT FROM @was`);
const RESEAL_KEY = statement(`
  UPDATE audit_head SET sealed_key = @sealed, secrets_key_id = @keyId WHERE sealed_key = @was`);

export type SealedKey = { sealed: Uint8Array; keyId: string };
/** The stored key of the audit chain; null if it was removed. */
export type KeptKey = SealedKey | { sealed: null; keyId: string | null };

export const auditVerbs = {
  /** Records in the audit chain an action that is no change of one row, before settled carries it out. */
  *recordAction(tx: Transaction, { by, change, atMs }: { by: Author; change: Change; atMs: number }): Work<void> {
    yield* writeAudit(tx, by, change, atMs);
  },
  /** Stores the sealed key of an empty chain, unless another process stored one before. Returns the stored one. */
  *keepAuditKey(tx: Transaction, key: SealedKey): Work<KeptKey> {
    tx.send(KEEP_KEY, key);
    return (yield* tx.one(FIND_KEY)) as KeptKey;
  },
  /**
   * Replaces the sealed key `was`, which cannot be opened, by a new one. Earlier rows can no longer be verified, so the
   * first row under the new key carries their end, which cannot be moved unnoticed. Nothing if `was` is no longer there.
   */
  *restartAudit(
    tx: Transaction,
    restart: SealedKey & { was: KeptKey['sealed']; by: Author; reason: string; atMs: number },
  ): Work<void> {
    const { by, reason, atMs, ...keys } = restart;
    if ((yield* tx.run(RESTART, keys)) === 0) return;
    const { number, mac } = (yield* tx.one<AuditHead>(LOCK_HEAD)) as AuditHead;
    const before = { number, mac: Buffer.from(mac).toString('hex') };
    yield* writeAudit(tx, by, { action: 'restart_audit', subject: '', reason, before }, atMs);
  },
  /** Replaces the sealed key `was` by the same key sealed under another secrets key. */
  *resealAuditKey(tx: Transaction, resealed: SealedKey & { was: Uint8Array }): Work<void> {
    tx.send(RESEAL_KEY, resealed);
  },
};

const COLUMNS = 'number, at_ms AS atMs, actor, role, origin, address, action, subject, reason, before, after, mac';
const CHAIN = statement(`SELECT ${COLUMNS} FROM audit WHERE number > @after ORDER BY number LIMIT @limit`);

const RESTARTS = statement(`
  SELECT ${COLUMNS} FROM audit WHERE action = 'restart_audit' ORDER BY number DESC LIMIT 100`);
const OLD_END = /^\{"number":[0-9]+,"mac":"([0-9a-f]*)"\}$/;

type AuditPage = { limit: number; after: number | null; actor: string | null; subject: string | null };

function auditList({ actor, subject }: AuditPage) {
  const conditions = ['number < @below'];
  if (actor !== null) conditions.push('actor = @actor');
  if (subject !== null) conditions.push('subject = @subject');
  return statement(`SELECT ${COLUMNS} FROM audit WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT @limit`);
}

/** Rows of the chain to verify, after the row `from`. */
type AuditSlice = { key: Uint8Array; from: AuditHead; limit: number; wanted: Uint8Array | null };

/** `last`: the last row that verified. `rows`: how many rows were verified. */
type VerifiedAudit = { fault: ChainFault | null; last: AuditHead; rows: number; has: boolean };

export const auditQueries = {
  /** A page of the audit chain, newest first, of rows numbered below `after`. */
  *listAudit(tx: Transaction, page: AuditPage): Work<AuditRow[]> {
    return yield* tx.all<AuditRow>(auditList(page), { ...page, below: page.after ?? KEY_MAX });
  },
  *auditHead(tx: Transaction): Work<AuditHead> {
    return (yield* tx.one<AuditHead>(HEAD)) as AuditHead;
  },
  /** The row after which the chain can be verified with this key; number 0 if all of it can. */
  *auditStart(tx: Transaction, key: Uint8Array): Work<AuditHead> {
    for (const row of yield* tx.all<AuditRow>(RESTARTS)) {
      const mac = Buffer.from(OLD_END.exec(row.before ?? '')?.[1] ?? '', 'hex');
      if (auditMac(key, mac, row).equals(row.mac)) return { number: row.number - 1, mac };
    }
    return { number: 0, mac: Buffer.alloc(0) };
  },
  /** Recomputes the MACs of `limit` rows after the row `from`. `has`: whether one of them has the MAC `wanted`. */
  *verifyAudit(tx: Transaction, { key, from, limit, wanted }: AuditSlice): Work<VerifiedAudit> {
    const rows = yield* tx.all<AuditRow>(CHAIN, { after: from.number, limit });
    const verified: VerifiedAudit = { fault: null, last: from, rows: 0, has: false };
    for (const row of rows) {
      const number = verified.last.number + 1;
      const isNext = row.number === number;
      if (!isNext || !auditMac(key, verified.last.mac, row).equals(row.mac)) {
        return { ...verified, fault: { number, what: isNext ? 'changed' : 'removed' } };
      }
      const { mac } = row;
      verified.last = { number, mac };
      verified.rows++;
      verified.has ||= wanted !== null && Buffer.from(mac).equals(wanted);
    }
    return verified;
  },
};
