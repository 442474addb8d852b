/** Why a command ended: a code, what happened and what to do next, and the exit code; of a bug the stack. */
export class Failure extends Error {
  readonly code: string;
  readonly exit: number;

  constructor(code: string, message: string, exit: number) {
    super(message);
    this.code = code;
    this.exit = exit;
  }
}

/** Exit codes that every program has, after sysexits.h. */
export const EXIT_USAGE = 64;
export const EXIT_BUG = 70;

/** The command line cannot be understood. The message says what is possible. */
export class UsageError extends Failure {
  constructor(message: string) {
    super('usage', message, EXIT_USAGE);
  }
}

/** What an error means for the person at the command line. An error that nothing foresees is a bug of `program`. */
export function failureOf(error: unknown, program: string): Failure {
  if (error instanceof Failure) return error;
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new Failure('bug', `This is a bug in ${program}. Please report it.\n${stack}`, EXIT_BUG);
}

/** Completes a sentence about a file or folder that could not be read. */
export function whyUnreadable(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'does not exist';
  if (code === 'EISDIR') return 'is a folder';
  return code === 'EACCES' ? 'may not be read by this user' : `cannot be read (${code})`;
}

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

/** ` Did you mean …?` for an error message; empty if nothing is similar. */
export function didYouMean(given: string, names: readonly string[]): string {
  const meant = nearest(given, names);
  return meant === null ? '' : ` Did you mean ${/[ -]/.test(meant) ? `\`${meant}\`` : meant}?`;
}

/** Shorter texts are the beginning of too many names. */
const BEGINNING_LENGTH_MIN = 4;

function isBeginning(given: string, name: string): boolean {
  return given.length >= BEGINNING_LENGTH_MIN && name.startsWith(given);
}

/** How many characters to add, leave out, change, or swap with a neighbour (optimal string alignment). */
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
