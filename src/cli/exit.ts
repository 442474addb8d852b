import type { FaultCode } from '../fault.ts';
import type { ProblemCode } from '../http/problem.ts';

/** The command's exit codes, after sysexits.h where it has one. docs/errors.md and `settled help` list them. */
export const EXIT = {
  ok: 0,
  refused: 1,
  usage: 64,
  notAuthentic: 65,
  notFound: 66,
  unreachable: 69,
  bug: 70,
  cannotOpen: 73,
  diskFailed: 74,
  tryAgain: 75,
  notAllowed: 77,
  configuration: 78,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What each exit code means, in a line. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'the server refused, or doctor found something failing',
  64: 'the command line cannot be understood',
  65: 'verify: the delivery is not authentic, or not fresh',
  66: 'there is no such order or event',
  69: 'the server cannot be reached, or no fitting Node is installed',
  70: 'a bug in settled, here or in the server',
  73: 'the database cannot be opened, or is lost',
  74: 'the disk failed or is full',
  75: 'something else is in the way: try again when it is gone',
  77: 'not allowed: the token, or access to the files',
  78: 'the configuration cannot be used',
};

/** How the process ends when this fault ends it. Faults of one request or event end no process: there it is a bug. */
export const EXIT_OF_FAULT: Readonly<Record<FaultCode, ExitCode>> = {
  configuration_invalid: EXIT.configuration,
  address_in_use: EXIT.tryAgain,
  store_missing: EXIT.cannotOpen,
  store_in_use: EXIT.tryAgain,
  store_lost: EXIT.cannotOpen,
  store_foreign: EXIT.cannotOpen,
  store_corrupt: EXIT.cannotOpen,
  store_newer: EXIT.cannotOpen,
  store_migration_changed: EXIT.cannotOpen,
  store_not_durable: EXIT.cannotOpen,
  store_unwritable: EXIT.notAllowed,
  store_full: EXIT.diskFailed,
  store_busy: EXIT.tryAgain,
  store_failed: EXIT.diskFailed,
  store_stopped: EXIT.tryAgain,
  secrets_key_missing: EXIT.configuration,
  secrets_key_wrong: EXIT.configuration,
  secret_undecipherable: EXIT.bug,
  stored_event_damaged: EXIT.bug,
  unreadable_event: EXIT.bug,
  link_mismatch: EXIT.bug,
  server_unreachable: EXIT.unreachable,
  not_authorized: EXIT.notAllowed,
};

/** How a command ends when the server answers with this problem. */
export const EXIT_OF_PROBLEM: Readonly<Record<ProblemCode, ExitCode>> = {
  invalid_request: EXIT.refused,
  unauthorized: EXIT.notAllowed,
  forbidden: EXIT.notAllowed,
  not_found: EXIT.notFound,
  method_not_allowed: EXIT.refused,
  body_too_large: EXIT.refused,
  content_type: EXIT.refused,
  reference_conflict: EXIT.refused,
  link_id_conflict: EXIT.refused,
  link_id_taken: EXIT.refused,
  correction_forbidden: EXIT.notAllowed,
  not_held: EXIT.refused,
  nothing_left_to_accept: EXIT.refused,
  event_in_work: EXIT.refused,
  unavailable: EXIT.tryAgain,
  internal: EXIT.bug,
};
