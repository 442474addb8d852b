import { createHmac } from 'node:crypto';
import type { Origin } from './access.ts';

/** What people and named tokens do that the audit chain keeps. */
export const AUDIT_ACTIONS = [
  'open_order',
  'register_link',
  'check_order',
  'cancel_order',
  'accept_order',
  'reject_order',
  'adopt_link',
  'replay_event',
  'resend_notice',
  'end_attention',
  'start_bulk',
  'cancel_bulk',
  'catch_up',
  'backup',
  'rotate_key',
  'add_token',
  'revoke_token',
  'add_sign_in_link',
  'sign_in',
  'sign_out',
  'end_session',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** One change: what was done to what, why in the person's words, and what it was before and is after it. */
export type Change = {
  action: AuditAction;
  /** A reference, or the id of an event, a notice, a matter, a token or a session; empty if it concerns all of them. */
  subject: string;
  reason?: string | null;
  before?: Readonly<Record<string, unknown>> | null;
  after?: Readonly<Record<string, unknown>> | null;
};

/** The end of the chain: the number of its last row, and that row's MAC. The number is 0 if there is no row. */
export type AuditHead = { number: number; mac: Uint8Array };

/** A row of the chain. `before` and `after` are JSON texts. */
export type AuditRow = AuditHead & {
  atMs: number;
  actor: string;
  role: string;
  origin: Origin;
  address: string;
  action: AuditAction;
  subject: string;
  reason: string | null;
  before: string | null;
  after: string | null;
};

/** HMAC-SHA256 over a row and the MAC of the row before it (empty for the first). */
export function auditMac(key: Uint8Array, previous: Uint8Array, row: Omit<AuditRow, 'mac'>): Buffer {
  const { number, atMs, actor, role, origin, address, action, subject, reason, before, after } = row;
  const text = JSON.stringify([number, atMs, actor, role, origin, address, action, subject, reason, before, after]);
  return createHmac('sha256', key).update(previous).update(text).digest();
}

/** What is wrong with a chain, and at which number. */
export type ChainFault = { number: number; what: 'removed' | 'changed' };

/** The first fault in rows that follow `from`; null if they continue it. */
export function chainFault(key: Uint8Array, from: AuditHead, rows: readonly AuditRow[]): ChainFault | null {
  let last = from;
  for (const row of rows) {
    const number = last.number + 1;
    if (row.number !== number) return { number, what: 'removed' };
    if (!auditMac(key, last.mac, row).equals(row.mac)) return { number, what: 'changed' };
    last = row;
  }
  return null;
}
