/**
 * Something that went wrong for a known reason. `code` is from the closed vocabulary in docs/errors.md. `message` says
 * what happened to what, and what to do next. A retry may help after a transient fault, never after a terminal one.
 */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly kind: 'transient' | 'terminal';

  constructor(kind: 'transient' | 'terminal', code: FaultCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Fault';
    this.kind = kind;
    this.code = code;
  }
}

/** The fields of an error that a row of the store keeps. */
export function noteOf(error: unknown): { code: string; message: string } {
  if (error instanceof Fault) return { code: error.code, message: error.message };
  return { code: 'bug', message: error instanceof Error ? error.message : String(error) };
}

/** A fault of one link. */
export class LinkFault extends Fault {
  readonly linkKey: number;
  /** The reference of its order. */
  readonly reference: string;

  constructor({ linkKey, reference }: { linkKey: number; reference: string }, { kind, code, message, cause }: Fault) {
    super(kind, code, message, { cause });
    this.linkKey = linkKey;
    this.reference = reference;
  }
}

export const FAULT_CODES = [
  'configuration_invalid',
  'address_in_use',
  'store_missing',
  'store_in_use',
  'store_lost',
  'store_foreign',
  'store_moved',
  'store_incomplete',
  'store_corrupt',
  'store_newer',
  'store_migration_changed',
  'store_not_durable',
  'store_unwritable',
  'store_full',
  'store_busy',
  'store_failed',
  'store_unreachable',
  'store_stopped',
  'secrets_key_missing',
  'secrets_key_wrong',
  'secrets_key_in_use',
  'secret_undecipherable',
  'stored_event_damaged',
  'unreadable_event',
  'event_not_understood',
  'link_mismatch',
  'server_unreachable',
  'not_authorized',
  'service_unreachable',
  'service_timeout',
  'service_failed',
  'service_rate_limited',
  'service_answer_unusable',
  'service_answer_too_large',
  'service_key_refused',
  'service_forbidden',
  'service_not_found',
  'service_conflict',
  'service_refused',
  'api_budget_spent',
  'shop_unreachable',
  'shop_timeout',
  'shop_refused',
  'shop_redirects',
  'shop_gone',
  'shop_address_private',
] as const;
export type FaultCode = (typeof FAULT_CODES)[number];
