import { Fault } from '../fault.ts';
import type { Credentials, LinkCredentials } from '../secrets/credentials.ts';

/**
 * How many look-ups of links that no delivery has named before are in the store's queue at once. During a flood a turn of the event loop
 * takes 0.1 s, and ends those of the turn before: with 64, a new link waited for 5 s.
 */
const UNDER_WAY_MAX = 256;
/** How many wait for a place there: some tenths of a second. */
const WAITING_MAX = 2_000;

/**
 * Finds the credentials that a delivery is verified with; null if there is no such link. Throws if the store cannot
 * answer; the fault is `store_busy` if there are too many look-ups.
 */
export type FindLink = (by: { token: string } | { linkId: string }) => Promise<LinkCredentials | null>;

/**
 * Anyone can send tokens that no link has, so looking them up has a small share of the store's queue. A link that a
 * delivery named before, and every other call of the store, never waits behind them.
 */
export function openFindLink(credentials: Credentials): FindLink {
  const waiting: { enter: () => void; refuse: (fault: Fault) => void }[] = [];
  let underWay = 0;

  /** Gives the place to the look-up that has waited longest. */
  function leave(): void {
    const next = waiting.shift();
    if (next === undefined) underWay--;
    else next.enter();
  }

  /**
   * If too many wait, the one that has waited longest fails. Refusing new ones would shut out every new link while
   * others keep the queue full.
   */
  async function enter(): Promise<void> {
    if (underWay < UNDER_WAY_MAX) {
      underWay++;
      return;
    }
    if (waiting.length >= WAITING_MAX) waiting.shift()?.refuse(tooMany());
    await new Promise<void>((enter, refuse) => waiting.push({ enter, refuse }));
  }

  return async (by) => {
    const isToken = 'token' in by;
    const cached = isToken ? credentials.cachedByToken(by.token) : credentials.cachedByLinkId(by.linkId);
    if (cached !== undefined) return cached;
    if (credentials.knows(isToken ? by.token : by.linkId)) return credentials.find(by);
    await enter();
    try {
      return await credentials.find(by);
    } finally {
      leave();
    }
  };
}

function tooMany(): Fault {
  return new Fault(
    'transient',
    'store_busy',
    'Too many deliveries wait whose links have to be looked up first: most name none. They come again.',
  );
}
