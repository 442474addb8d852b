/** A word as a shell takes it for one, in a command that a person is told to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What is said of a link that has an order's reference and is not ours. Kept as the opening's fault, and read again. */
export function foreignSentence(id: string): string {
  return `The service has a link ${id} of this reference that settled did not make.`;
}

/** What it means that a copy took the place of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${new Date(restoredFromMs).toISOString()}: cursors of the feed from before it was put to use ` +
    "are answered 410, and links that were made since are not known until they are found in the service's list."
  );
}

/** The subject of the matter that links made since cannot be looked for. */
export function searchSubject(restoredFromMs: number): string {
  return `since ${new Date(restoredFromMs).toISOString()}`;
}

/** The time in what `searchSubject` wrote; NaN where it is another subject. */
export function readSearchSubject(subject: string): number {
  return Date.parse(subject.replace(/^since /, ''));
}

const FOREIGN = /^The service has a link (.+) of this reference that settled did not make\.$/;

/** The link's id in what `foreignSentence` wrote; null where it says something else. */
export function readForeign(sentence: string): string | null {
  return FOREIGN.exec(sentence)?.[1] ?? null;
}

/** The command with which a person gives an order its link. */
export function adoptCommand(reference: string, id: string | null): string {
  return `settled orders adopt ${shellWord(reference)} --id ${id === null ? 'ID' : shellWord(id)}`;
}
