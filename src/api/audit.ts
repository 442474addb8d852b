import { z } from 'zod';
import { AUDIT_ACTIONS, type AuditHead, type AuditRow, type ChainFault, ORIGINS } from '../domain/access.ts';
import { iso } from '../explain/glossary.ts';
import * as field from './fields.ts';
import { readRows } from './lists.ts';
import { ok, operation } from './route.ts';

/** What people and named tokens did, and whether the chain of it is whole. */

const MAC = 'a3f1'.repeat(16);

const auditRow = field.component('AuditRow', 'One change that a person or a named token made.', {
  number: z.int().min(1).describe('The ids increase by 1. A gap means that a row was removed.'),
  at: field.time,
  actor: z.string().describe('The name of the token, or of the person that a proxy signed in.'),
  role: z.string(),
  origin: z.enum(ORIGINS).describe('`settled`: a restart of the chain, which no request caused.'),
  address: z.string().describe('Of the peer: behind a proxy, the proxy.'),
  action: z.enum(AUDIT_ACTIONS),
  subject: z.string().describe('The changed object: a reference, an id or a name.'),
  reason: z.string().nullable().describe('The reason that the person gave.'),
  before: z.looseObject({}).nullable(),
  after: z.looseObject({}).nullable(),
  mac: field.anyText('HMAC-SHA256 in hexadecimal, over the row and the one before it.', MAC),
});

export type AuditDocument = z.infer<typeof auditRow>;

export const listAudit = operation({
  summary: 'List what people did, the newest first',
  description: "Every change by a person or a named token. What the shop's token does is in the history of its orders.",
  query: z.strictObject({
    ...field.page,
    actor: field.text(128).optional().describe('Only what they did.'),
    subject: field.text(128).optional().describe('Only changes of this object: a reference, an id or a name.'),
  }),
  answers: ok('A page of the audit.', { audit: z.array(auditRow), nextCursor: field.nextCursor }),
  answer: async ({ store }, { query }) => {
    const { actor = null, subject = null } = query;
    const list = (at: { limit: number; after: number | null }) => store.listAudit({ ...at, actor, subject });
    const { rows, ...more } = await readRows(query, list, ({ number }) => number);
    return { audit: rows.map(auditDocument), ...more };
  },
});

function auditDocument({ atMs, before, after, mac, number, ...row }: AuditRow): object {
  const read = (json: string | null) => (json === null ? null : JSON.parse(json));
  const hex = Buffer.from(mac).toString('hex');
  return { number, at: iso(atMs), ...row, before: read(before), after: read(after), mac: hex };
}

const ROWS_AT_ONCE = 500;

const head = z
  .string()
  .regex(/^[0-9]{1,15}:[0-9a-f]{0,64}$/, 'must be NUMBER:MAC, as the log has it')
  .meta({ description: 'A head of the chain that the log has: `NUMBER:MAC`.', examples: [`812:${MAC}`] });

const FAULTS: Readonly<Record<ChainFault['what'], (number: number) => string>> = {
  removed: (number) => `Row ${number} is missing: it was removed.`,
  changed: (number) => `Row ${number} is not as settled wrote it: this row or the row before it was changed.`,
};

export const verifyAudit = operation({
  summary: 'Verify the audit chain',
  description: 'Computes the MAC of every row anew. With `head`, it also finds rows that were removed from the end.',
  query: z.strictObject({ head: head.optional() }),
  answers: ok('What was found.', {
    rows: field.count.describe('That were verified.'),
    lost: field.count.describe('Rows before these that cannot be verified, because their key was lost or damaged.'),
    isWhole: z.boolean().describe('Whether every row is verified: never if some are lost.'),
    detail: z.string().describe('What is wrong, and where; or that the chain is intact.'),
    head: z.string().describe('`NUMBER:MAC` of the last row. Keep it in another place.'),
  }),
  answer: async ({ store, auditKey }, { query }) => {
    const kept = await store.auditHead();
    const since = await store.auditStart(auditKey);
    let last = since;
    const wanted = query.head === undefined ? null : Buffer.from(query.head.split(':')[1] as string, 'hex');
    let isThere = wanted === null || wanted.length === 0;
    for (;;) {
      const page = await store.verifyAudit({ key: auditKey, from: last, limit: ROWS_AT_ONCE, wanted });
      last = page.last;
      isThere ||= page.has;
      if (page.fault !== null)
        return verdict(since, { last, head: kept, fault: FAULTS[page.fault.what](page.fault.number) });
      if (page.rows < ROWS_AT_ONCE) break;
    }
    // A row may have been added since the head was read.
    if (last.number < kept.number) {
      return verdict(since, { last, head: kept, fault: FAULTS.removed(last.number + 1) });
    }
    const fault = isThere ? null : `The chain has no row ${query.head}: rows were removed from its end.`;
    return verdict(since, { last, head: last, fault });
  },
});

function writeHead({ number, mac }: AuditHead): string {
  return `${number}:${Buffer.from(mac).toString('hex')}`;
}

function verdict(since: AuditHead, { last, head, fault }: { last: AuditHead; head: AuditHead; fault: string | null }) {
  const lost = since.number;
  const unverified = `The first ${lost} cannot be verified: their key was lost or damaged, as row ${lost + 1} says.`;
  const verified = `Every row ${lost === 0 ? '' : 'since then '}is as settled wrote it.`;
  return {
    rows: last.number - lost,
    lost,
    isWhole: fault === null && lost === 0,
    detail: `${lost === 0 ? '' : `${unverified} `}${fault ?? verified}`,
    head: writeHead(head),
  };
}
