import { namesOf, ROLE_WORDS } from '../vocabulary.ts';

/** Roles of people and named tokens. Each may do all that the roles before it may. */
export type PersonRole = keyof typeof ROLE_WORDS;
export const PERSON_ROLES = namesOf(ROLE_WORDS);

/** The shop's role is not in that order: a broken shop must not be able to accept its own holds. */
export type Role = PersonRole | 'shop';

/** The surface that a person used; `settled` for what settled records of the audit itself. */
export const ORIGINS = ['console', 'api', 'cli', 'settled'] as const;
type Origin = (typeof ORIGINS)[number];

/** A person or a named token that requests a change; never the shop. `address` is the peer's. */
export type Actor = { name: string; role: PersonRole; origin: Origin; address: string };

/** Who may use a route: people and tokens with role `least` or a higher one, and the shop if `shop` is true. */
export type Access = { readonly least: PersonRole; readonly shop: boolean };

export function mayUse(role: Role, { least, shop }: Access): boolean {
  return role === 'shop' ? shop : hasRole(role, least);
}

/** Every role that may use a route. */
export function rolesOf(access: Access): Role[] {
  return [...PERSON_ROLES, 'shop' as const].filter((role) => mayUse(role, access));
}

/** Whether a role is `least` or one above it. */
export function hasRole(role: PersonRole, least: PersonRole): boolean {
  return PERSON_ROLES.indexOf(role) >= PERSON_ROLES.indexOf(least);
}

/** How long a session lasts without a request, and at most. */
export const SESSION_MS = { idle: 12 * 3_600_000, most: 7 * 86_400_000 } as const;

/** How long a sign-in link can be used. */
export const SIGN_IN_LINK_MS = 60_000;

/** The actions of people and named tokens that the audit chain records. */
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
  'restart_audit',
  'move',
  'add_token',
  'revoke_token',
  'add_sign_in_link',
  'sign_in',
  'sign_out',
  'end_session',
] as const;
type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** One audited change: the action, its subject, the person's reason, and the values before and after. */
export type Change = {
  action: AuditAction;
  /** A reference, or the id of an event, notice, matter, token or session. Empty if the action concerns all of them. */
  subject: string;
  reason?: string | null;
  before?: Readonly<Record<string, unknown>> | null;
  after?: Readonly<Record<string, unknown>> | null;
};

/** The head of the audit chain: the number and the MAC of its last row. The number is 0 if the chain is empty. */
export type AuditHead = { number: number; mac: Uint8Array };

/** A row of the audit chain. `before` and `after` are JSON texts. */
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

/** The first fault of a chain: a row removed or changed, and its number. */
export type ChainFault = { number: number; what: 'removed' | 'changed' };
