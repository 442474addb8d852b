import { type Fault, terminalFault } from '../fault.ts';

export type KeysGiven = {
  /** The database in words for people: the path of its file, or its address without a password. */
  name: string;
  /** The id of the current secrets key. */
  secretsKeyId: string;
  /** Ids of further keys that can unseal. */
  olderKeyIds?: readonly string[];
  /** The places in which keys may be given, in words for people. */
  keyPlaces: { current: string; older: string };
  /** Opens the database although its secrets are sealed under a lost key. */
  adoptsKey?: boolean;
};

/** Key ids as an instance row has them: the first, and the others separated by spaces. */
export type KeysNoted = { secretsKeyId: string; otherKeyIds: string };

function keyIdsOf({ secretsKeyId, otherKeyIds }: KeysNoted): [string, ...string[]] {
  return [secretsKeyId, ...otherKeyIds.split(' ').filter((id) => id !== '')];
}

/** The keys that secrets are or will be sealed under, older ones first. Throws if one of them is not given. */
export function keysInUse(given: KeysGiven, noted: KeysNoted): string[] {
  const ids = [given.secretsKeyId, ...(given.olderKeyIds ?? [])];
  const needed = keyIdsOf(noted);
  const missing = needed.filter((id) => !ids.includes(id));
  if (missing.length > 0 && given.adoptsKey !== true) throw wrongKey(given, needed, missing);
  return [...new Set([...needed.filter((id) => ids.includes(id)), given.secretsKeyId])];
}

function wrongKey(
  { name, secretsKeyId, keyPlaces }: KeysGiven,
  needed: readonly string[],
  missing: readonly string[],
): Fault {
  const [id] = missing;
  const what =
    needed.length === 1
      ? `The secrets of ${name} are encrypted under another secrets key (id ${id}) than the one that is given (id ` +
        `${secretsKeyId}). Give that one: ${keyPlaces.current}. If the key was changed since, give it beside the new one:`
      : `The secrets key of ${name} is being changed: its secrets are encrypted under the keys ${needed.join(' and ')}, and ` +
        `all of them are needed until that has ended. Missing: ${missing.join(', ')}. Give the one that is to stay as ` +
        `${keyPlaces.current}, and beside it the other:`;
  const older = needed.length === 1 ? keyPlaces.older.replace('ID', id ?? 'ID') : keyPlaces.older;
  return terminalFault('secrets_key_wrong', `${what} ${older}. If it is lost for good: settled migrate --new-key`);
}

/** What a store may know about the secrets keys. */
export type KeysRead = {
  /** The current one first. */
  keyIds: readonly string[];
  /** The place of the current key, in words for people. */
  keyPlace: string;
};
