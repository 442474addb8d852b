/** The name that was probably meant, for error messages; null if none is similar. */
export function nearest(given: string, names: readonly string[]): string | null {
  const most = Math.max(1, Math.floor(given.length / 4));
  let found: string | null = null;
  let least = most + 1;
  for (const name of names) {
    const edits = isBeginning(given, name) ? 1 : editsBetween(given, name);
    if (edits < least) [found, least] = [name, edits];
  }
  return found;
}

/** Shorter texts begin too many names. */
const BEGINNING_LENGTH_MIN = 4;

function isBeginning(given: string, name: string): boolean {
  return given.length >= BEGINNING_LENGTH_MIN && name.startsWith(given);
}

/**
 * How many characters must be added, left out, changed, or exchanged with their neighbour (optimal string alignment).
 */
function editsBetween(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      const isExchanged = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (isSame ? 0 : 1),
        isExchanged ? (before[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, row];
  }
  return last[other.length] as number;
}
