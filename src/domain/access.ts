/** What people and named tokens may do: each role may do all that the roles before it may. */
export const PERSON_ROLES = ['viewer', 'operator', 'admin'] as const;
export type PersonRole = (typeof PERSON_ROLES)[number];

/** The shop's role stands apart: a broken shop must not accept its own holds. */
export type Role = PersonRole | 'shop';

/** How a person reached settled. */
type Origin = 'console' | 'api' | 'cli';

/** Who asks for a change: a person or a named token, never the shop. `address` is the peer's. */
export type Actor = { name: string; role: PersonRole; origin: Origin; address: string };

/** Who may use a route: people and tokens of the role `least` or of one above it, and perhaps the shop. */
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

/** A session ends after this time without a request, and this long after it began. */
export const SESSION_MS = { idle: 12 * 3_600_000, most: 7 * 86_400_000 } as const;

/** A link that signs in can be used this long. */
export const SIGN_IN_LINK_MS = 60_000;

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
  'move',
  'add_token',
  'revoke_token',
  'add_sign_in_link',
  'sign_in',
  'sign_out',
  'end_session',
] as const;
type AuditAction = (typeof AUDIT_ACTIONS)[number];

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

/** What is wrong with a chain, and at which number. */
export type ChainFault = { number: number; what: 'removed' | 'changed' };
