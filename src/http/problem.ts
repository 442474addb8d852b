import type { Response } from 'express';

/** An error answer (RFC 9457). docs/errors.md explains each `code`. */
export type Problem = {
  status: number;
  code: ProblemCode;
  detail: string;
  /** For a request with several faults: each place, and what is wrong there. */
  errors?: { path: string; detail: string }[];
  /** For a 503: when to try again, if that is known. */
  retryAfterSeconds?: number;
};

export const PROBLEM_CODES = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'body_too_large',
  'content_type',
  'reference_conflict',
  'order_cancelled',
  'link_expired',
  'link_id_conflict',
  'link_id_taken',
  'correction_forbidden',
  'not_held',
  'nothing_left_to_accept',
  'bulk_ended',
  'event_in_work',
  'event_body_dropped',
  'notice_in_work',
  'token_name_taken',
  'token_needed',
  'cursor_from_before_restore',
  'key_not_ours_to_change',
  'backup_not_ours_to_make',
  'not_cancellable',
  'not_adoptable',
  'reference_taken',
  'refused_by_service',
  'link_withheld',
  'link_unknown',
  'api_not_configured',
  'api_key_refused',
  'public_url_not_public',
  'service_unavailable',
  'unavailable',
  'internal',
] as const;
export type ProblemCode = (typeof PROBLEM_CODES)[number];

const RETRY_AFTER_SECONDS = 5;

/** Retrying is useless until the configuration changes. */
const NEEDS_RESTART: ReadonlySet<ProblemCode> = new Set(['api_not_configured', 'public_url_not_public']);

export function sendProblem(response: Response, problem: Problem): void {
  const { status, code, detail, errors, retryAfterSeconds = RETRY_AFTER_SECONDS } = problem;
  if (response.headersSent) return;
  if (status === 503 && !NEEDS_RESTART.has(code)) response.setHeader('retry-after', String(retryAfterSeconds));
  if (status === 401) response.setHeader('www-authenticate', 'Bearer realm="settled"');
  const body = { type: `urn:settled:problem:${code}`, title: code, status, detail, ...(errors ? { errors } : {}) };
  response.status(status).type('application/problem+json').send(JSON.stringify(body));
}
