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

/** A fault after which no retry helps. */
export function terminalFault(code: FaultCode, message: string, options?: ErrorOptions): Fault {
  return new Fault('terminal', code, message, options);
}

/** A fault after which a retry may help. */
export function transientFault(code: FaultCode, message: string, options?: ErrorOptions): Fault {
  return new Fault('transient', code, message, options);
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

/** Every fault, with the exit code of a process that it ends; null if it concerns one request, link or event. */
export const FAULTS = {
  configuration_invalid: 78,
  address_in_use: 75,
  store_missing: 73,
  store_in_use: 75,
  store_lost: 73,
  store_foreign: 73,
  store_moved: 78,
  store_incomplete: 73,
  store_corrupt: 73,
  store_newer: 73,
  store_migration_changed: 73,
  store_not_durable: 73,
  store_unwritable: 77,
  store_full: 74,
  store_busy: 75,
  store_failed: 74,
  store_unreachable: 69,
  store_stopped: 75,
  secrets_key_missing: 78,
  secrets_key_wrong: 78,
  secrets_key_in_use: null,
  secret_undecipherable: null,
  stored_event_damaged: null,
  unreadable_event: null,
  event_not_understood: null,
  link_mismatch: null,
  server_unreachable: 69,
  not_authorized: 77,
  service_unreachable: 75,
  service_timeout: 75,
  service_failed: 75,
  service_rate_limited: 75,
  service_answer_unusable: 78,
  service_answer_too_large: 78,
  service_key_refused: 78,
  service_forbidden: 78,
  service_not_found: 78,
  service_conflict: 1,
  service_refused: 1,
  api_budget_spent: null,
  shop_unreachable: null,
  shop_timeout: null,
  shop_refused: null,
  shop_redirects: null,
  shop_gone: null,
  shop_address_private: null,
  alert_unreachable: null,
  alert_timeout: null,
  alert_refused: null,
  alert_address_private: null,
} as const;
export type FaultCode = keyof typeof FAULTS;
export const FAULT_CODES = Object.keys(FAULTS) as FaultCode[];
