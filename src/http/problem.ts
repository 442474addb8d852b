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

/** What each code means. docs/errors.md has the same words, and what to do. */
export const PROBLEM_MEANINGS = {
  invalid_request: 'a part of the request is missing, unknown or out of range',
  unauthorized: 'no token or session, or one that is unknown or has expired',
  forbidden: "the caller's role may not do this, or a browser sent the request from another page than the console",
  not_found: 'the order, event or address does not exist',
  method_not_allowed: 'the address takes other methods; `Allow` lists them',
  body_too_large: 'the body has more than 65536 bytes',
  content_type: 'the body is not declared as JSON',
  reference_conflict:
    'the order exists with other content, or the other side (the shop or settled) makes its link; the sentence says which',
  order_cancelled: 'the order was cancelled, so settled does not give out its link',
  link_expired: "the order's link has expired or is inactive, so settled does not give it out",
  link_id_conflict: 'the order already has another link and is no longer open',
  link_id_taken: 'the link belongs to another order',
  correction_forbidden: "only an admin may replace a signing secret or a link's id",
  not_held: 'only a held order can be resolved',
  nothing_left_to_accept: 'the held money has gone back',
  bulk_ended: 'the bulk work is done, or was cancelled',
  event_in_work: 'the event is already waiting or being settled',
  event_body_dropped: 'settled dropped the body of the event after `SETTLED_KEEP_BODIES` and cannot settle it again',
  notice_in_work: 'settled is sending the notice, or sends it as soon as its turn comes',
  token_name_taken: 'a valid token already has this name',
  token_needed: 'only a request with a token may do this, not a signed-in browser',
  cursor_from_before_restore: 'the cursor is from before the store was restored from a backup',
  key_not_ours_to_change: 'the secrets key comes from `SETTLED_SECRETS_KEY`, so settled cannot replace it',
  backup_not_ours_to_make: 'the store is PostgreSQL, which settled does not copy',
  alerts_not_configured: 'no channel of alerts is configured, so there is none to test',
  not_cancellable: 'the order is paid, being paid, held, refunded or disputed: settled asked the service',
  not_adoptable:
    'the order is not open or needs no link, or the named link does not fit it: its money, its reference, or a payment on it',
  reference_taken: 'the service has a link with this reference that settled did not create',
  refused_by_service: "the service refuses to create the link; the sentence is the service's",
  link_withheld: 'the service created the link with another amount or currency than settled asked for',
  link_unknown:
    '503: settled is still opening the link, so it cannot ask about it. 409: settled asked, and the service has no link for this order',
  api_not_configured: "this needs the service's API",
  api_key_refused: 'the service refuses the API key, or the merchant is inactive',
  public_url_not_public: 'a link keeps its webhook address, and the service cannot deliver to the configured one',
  service_unavailable: 'settled cannot ask the service now; the sentence says why',
  unavailable: 'the store cannot answer now',
  internal: "a bug; the log has the request's id",
} as const;
export type ProblemCode = keyof typeof PROBLEM_MEANINGS;
export const PROBLEM_CODES = Object.keys(PROBLEM_MEANINGS) as ProblemCode[];

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
