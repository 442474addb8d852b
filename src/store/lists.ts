/** Lists go from the newest key down; this is the one above them all. */
export const KEY_MAX = Number.MAX_SAFE_INTEGER;

/** Where a clock was set back by so much at most, a list of what came since a time misses no row. */
export const CLOCK_STEP_MS = 3_600_000;

/** Rows from the first key since this time on came after a time, even if the clock was set back. */
export function firstMsAfter(untilMs: number): number {
  return untilMs + 2 * CLOCK_STEP_MS + 1;
}

/** A pattern for LIKE, with `\` as its escape character, that finds a text wherever it stands. */
export function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`;
}
