/** Why a delivery is not authentic. docs/signature.md explains each. */
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
export type RejectionReason = (typeof REJECTION_REASONS)[number];

/**
 * Why settled refused a delivery to a known link: it is not authentic; settled could not tell
 * (`secret_undecipherable`); or, for the last four, settled refused it before verifying. settled counts such
 * deliveries and keeps none of their bytes.
 */
export const KEPT_REASONS = [
  ...REJECTION_REASONS,
  'secret_undecipherable',
  'method_not_allowed',
  'body_too_large',
  'content_encoding',
  'wrong_address',
] as const;
export type KeptReason = (typeof KEPT_REASONS)[number];

/** Reasons of deliveries that settled refused before it looked at their signature. */
export const UNREAD_REASONS: ReadonlySet<string> = new Set<KeptReason>([
  'method_not_allowed',
  'body_too_large',
  'content_encoding',
  'wrong_address',
]);

/** Reasons that come from one setting for all links. An authentic delivery of any link ends their matter. */
export const ENDED_BY_ANY: readonly string[] = ['signature_missing', 'timestamp_missing'];

/** Rejections of several links for one reason count together if they came within this time. */
export const REFUSED_WITHIN_MS = 3_600_000;
