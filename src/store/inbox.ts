/** Bodies of one claim: some thousand usual ones, or a few of the largest. All of them are in memory at once. */
export const CLAIM_BYTES_MAX = 2 * 1024 * 1024;
