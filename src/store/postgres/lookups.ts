import dns from 'node:dns';
import type { LookupFunction } from 'node:net';

/**
 * Looks up servers' names. Node uses few threads for that, which look-ups of the shop and the service need too. A
 * resolver that does not answer keeps a thread for ten seconds and more, and settled asks each server every few
 * seconds. Therefore each name is looked up once at a time, and all silent names together use one thread.
 */

type Answered = Parameters<LookupFunction>[2];
type Asked = { options: Parameters<LookupFunction>[1]; answered: Answered[]; isUnderWay: boolean };

const asked = new Map<string, Asked>();
/** Names that were asked for again before there was an answer, until they have an address. */
const silent = new Set<string>();

/** Looks up the name of a server. Callers who ask for one name at the same time share the answer. */
export const lookUpServer: LookupFunction = (name, options, answered) => {
  const other = asked.get(name);
  if (other !== undefined) {
    silent.add(name);
    other.answered.push(answered);
    return;
  }
  asked.set(name, { options, answered: [answered], isUnderWay: false });
  begin();
};

/** Begins the look-ups that may begin. */
function begin(): void {
  for (const [name, one] of asked) {
    const mustWait = silent.has(name) && [...asked].some(([other, { isUnderWay }]) => isUnderWay && silent.has(other));
    if (one.isUnderWay || mustWait) continue;
    one.isUnderWay = true;
    dns.lookup(name, one.options, (...answer: Parameters<Answered>) => {
      asked.delete(name);
      if (answer[0] === null) silent.delete(name);
      for (const answered of one.answered) answered(...answer);
      begin();
    });
  }
}
