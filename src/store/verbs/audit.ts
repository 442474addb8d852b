import { createHmac } from 'node:crypto';
import type { AuditHead, AuditRow, Change } from '../../domain/access.ts';
import type { AccessControl, AccessQueries, AuditPage, Author, KeptKey, VerifiedAudit } from '../contract_access.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { KEY_MAX } from './list_pages.ts';

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

type AuditVerbs = 'recordAction' | 'keepAuditKey' | 'restartAudit' | 'resealAuditKey';

export const auditVerbs: InTransaction<Pick<AccessControl, AuditVerbs>> = {
  *recordAction(tx, { by, change, atMs }) {
    yield* writeAudit(tx, by, change, atMs);
  },
  *keepAuditKey(tx, key) {
    tx.send(KEEP_KEY, key);
    return (yield* tx.one(FIND_KEY)) as KeptKey;
  },
  *restartAudit(tx, { by, reason, atMs, ...keys }) {
    if ((yield* tx.run(RESTART, keys)) === 0) return;
    const { number, mac } = (yield* tx.one<AuditHead>(LOCK_HEAD)) as AuditHead;
    const before = { number, mac: Buffer.from(mac).toString('hex') };
    yield* writeAudit(tx, by, { action: 'restart_audit', subject: '', reason, before }, atMs);
  },
  *resealAuditKey(tx, resealed) {
    tx.send(RESEAL_KEY, resealed);
  },
};

const COLUMNS = 'number, at_ms AS atMs, actor, role, origin, address, action, subject, reason, before, after, mac';
const CHAIN = statement(`SELECT ${COLUMNS} FROM audit WHERE number > @after ORDER BY number LIMIT @limit`);

const RESTARTS = statement(`
  SELECT ${COLUMNS} FROM audit WHERE action = 'restart_audit' ORDER BY number DESC LIMIT 100`);
const OLD_END = /^\{"number":[0-9]+,"mac":"([0-9a-f]*)"\}$/;

function auditList({ actor, subject }: AuditPage) {
  const conditions = ['number < @below'];
  if (actor !== null) conditions.push('actor = @actor');
  if (subject !== null) conditions.push('subject = @subject');
  return statement(`SELECT ${COLUMNS} FROM audit WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT @limit`);
}

export const auditQueries: InTransaction<
  Pick<AccessQueries, 'listAudit' | 'auditHead' | 'auditStart' | 'verifyAudit'>
> = {
  *listAudit(tx, page) {
    return yield* tx.all<AuditRow>(auditList(page), { ...page, below: page.after ?? KEY_MAX });
  },
  *auditHead(tx) {
    return (yield* tx.one<AuditHead>(HEAD)) as AuditHead;
  },
  *auditStart(tx, key) {
    for (const row of yield* tx.all<AuditRow>(RESTARTS)) {
      const mac = Buffer.from(OLD_END.exec(row.before ?? '')?.[1] ?? '', 'hex');
      if (auditMac(key, mac, row).equals(row.mac)) return { number: row.number - 1, mac };
    }
    return { number: 0, mac: Buffer.alloc(0) };
  },
  *verifyAudit(tx, { key, from, limit, wanted }) {
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
