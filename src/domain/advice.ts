/** A word as a shell takes it for one, in a command that a person is told to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What is said of a link that has an order's reference and is not ours. Kept as the opening's fault, and read again. */
export function foreignSentence(id: string): string {
  return `The service has a link ${id} of this reference that settled did not make.`;
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
