import { ENDED_BY_ANY } from '../domain/advice.ts';

/** Deliveries to known links that were refused: what is kept of them, which is never their bytes. */

export const REJECTION_REASONS = [
  'signature_missing',
  'signature_malformed',
  'signature_repeated',
  'signature_wrong',
  'timestamp_missing',
  'timestamp_malformed',
  'timestamp_repeated',
  'secret_unusable',
] as const;
/** Why a delivery is not authentic. */
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/**
 * Why a delivery to a known link was not taken: not authentic; or nobody can tell whether it is; or refused before its
 * signature was looked at.
 */
export const KEPT_REASONS = [
  ...REJECTION_REASONS,
  'secret_undecipherable',
  'method_not_allowed',
  'body_too_large',
  'content_encoding',
] as const;
export type KeptReason = (typeof KEPT_REASONS)[number];

export type Rejection = {
  linkKey: number;
  reason: KeptReason;
  count: number;
  lastAtMs: number;
  /** JSON of what the last of them turned out to be; null: what is known already stays. */
  diagnosis?: string | null;
  /**
   * A person is told once so many links had deliveries refused for this reason within an hour, and no authentic one
   * since. `atFirst`: one link is enough as long as no authentic delivery is among what came lately, of any link.
   */
  matter?: { fromLinks: number; atFirst?: boolean };
};

/** `ENDED_BY_ANY`, as SQL lists them. */
export const ENDED_BY_ANY_SQL = ENDED_BY_ANY.map((reason) => `'${reason}'`).join(', ');

/** Links whose deliveries are refused for one reason count together for so long. */
export const REFUSED_WITHIN_MS = 3_600_000;

/** What concerns refused deliveries beside counting them, which is a verb of intake. */
export type Refusals = {
  /**
   * Ends the matter of each reason for which deliveries were refused, once an authentic one came for a link of it: after it
   * was refused last, and after the matter was raised; of `ENDED_BY_ANY`, for any link after the matter was raised. Returns how many matters stay open.
   */
  endRefusals(atMs: number): Promise<{ open: number }>;
};
