import pg from 'pg';
import type { Cancel, Clock } from '../../work/clock.ts';
import { statement } from '../transaction.ts';
import { connectionOptions } from './connection.ts';
import type { Database } from './database.ts';

/** What another replica may have work with: events that it recorded, notices that it wrote. */
export const HINTS = ['events', 'notices'] as const;
export type Hint = (typeof HINTS)[number];

/** Tells other replicas that something happened. Each finds it by its slow poll as well: a hint that is lost delays only. */
export type Hints = {
  /** Tells the others, now or a moment later: those of a moment go as one. */
  send(hint: Hint): void;
  /** Called with what others tell. */
  listen(heard: (hint: Hint) => void): void;
  /** Tells what is not told so far, and listens no more. */
  close(): Promise<void>;
};

const CHANNEL = 'settled';
const GATHER_MS = 50;
const RECONNECT_MS = { min: 200, max: 10_000 } as const;
/** A connection that was cut without a word is found by asking on it. */
const ASK_EVERY_MS = 10_000;

const NOTIFY = statement(`SELECT pg_notify('${CHANNEL}', @payload)`);

export type HintsOptions = {
  db: Pick<Database, 'once'>;
  url: string;
  replica: string;
  clock: Clock;
  random: () => number;
};

/** Holds a connection of its own on which it listens, and opens another when that is lost. */
export function openHints({ db, url, replica, clock, random }: HintsOptions): Hints {
  const heard = new Set<(hint: Hint) => void>();
  const unsent = new Set<Hint>();
  let client: pg.Client | null = null;
  let isClosed = false;
  let failures = 0;
  let cancel: Cancel = () => {};

  function connect(): void {
    if (isClosed) return;
    let mine: pg.Client;
    try {
      mine = new pg.Client(connectionOptions(url));
    } catch {
      // It reads the files of TLS, and one of them is being replaced.
      connectLater();
      return;
    }
    client = mine;
    let isLost = false;
    const lose = () => {
      if (isLost) return;
      isLost = true;
      // What is cut without a word does not end by itself.
      mine.end().catch(() => {});
      cancel();
      connectLater();
    };
    mine.on('error', lose);
    mine.on('end', lose);
    mine.on('notification', ({ payload = '' }) => receive(payload));
    mine
      .connect()
      .then(() => mine.query(`LISTEN ${CHANNEL}`))
      .then(() => {
        failures = 0;
        cancel = clock.every(ASK_EVERY_MS, () => void mine.query('SELECT 1').catch(lose));
        // What was told while nobody listened.
        for (const hint of HINTS) tell(hint);
      })
      .catch(lose);
  }

  function connectLater(): void {
    if (isClosed) return;
    const delayMs = Math.min(RECONNECT_MS.max, RECONNECT_MS.min * 2 ** failures++) * (0.5 + random() / 2);
    cancel = clock.after(delayMs, connect);
  }

  function tell(hint: Hint): void {
    for (const listener of heard) listener(hint);
  }

  function receive(payload: string): void {
    const [from, said] = payload.split(' ');
    const hint = HINTS.find((one) => one === said);
    if (from !== replica && hint !== undefined) tell(hint);
  }

  async function flush(): Promise<void> {
    const hints = [...unsent];
    unsent.clear();
    const sent = hints.map((hint) => db.once((tx) => tx.run(NOTIFY, { payload: `${replica} ${hint}` })));
    // Whoever is not told looks by itself.
    await Promise.allSettled(sent);
  }

  return {
    send: (hint) => {
      if (unsent.size === 0) clock.after(GATHER_MS, flush);
      unsent.add(hint);
    },
    listen: (listener) => {
      heard.add(listener);
      if (client === null) connect();
    },
    close: async () => {
      isClosed = true;
      cancel();
      await Promise.all([flush(), client?.end().catch(() => {})]);
    },
  };
}
