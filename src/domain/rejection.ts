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
 * Why a delivery to a known link was refused: because it is not authentic; because its authenticity cannot be told
 * (`secret_undecipherable`); or, for the last three, before its signature was verified. settled counts such deliveries and
 * keeps no byte of them.
 */
export const KEPT_REASONS = [
  ...REJECTION_REASONS,
  'secret_undecipherable',
  'method_not_allowed',
  'body_too_large',
  'content_encoding',
] as const;
export type KeptReason = (typeof KEPT_REASONS)[number];

/** Reasons that are one setting for all links: an authentic delivery of any link ends their matter. */
export const ENDED_BY_ANY: readonly string[] = ['signature_missing', 'timestamp_missing'];

/** Links whose deliveries are refused for one reason count together for this long. */
export const REFUSED_WITHIN_MS = 3_600_000;
