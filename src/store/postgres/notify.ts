import type { Cancel, Clock } from '../../work/clock.ts';
import { statement } from '../transaction.ts';
import type { ServerConnection } from './connection.ts';
import type { Database } from './database.ts';
import type { Servers } from './servers.ts';

/** What another replica may have work with: events that it recorded, notices that it wrote. */
export const WAKEUPS = ['events', 'notices'] as const;
export type Wakeup = (typeof WAKEUPS)[number];

/** Wakes other replicas. Their slow polls find the work too, so a lost wakeup only delays it. */
export type Wakeups = {
  /** Wakes the others a moment later. Equal wakeups of a moment are sent once. */
  send(wakeup: Wakeup): void;
  /** Calls `heard` with each wakeup from another replica. */
  listen(heard: (wakeup: Wakeup) => void): void;
  /** Sends pending wakeups and stops listening. */
  close(): Promise<void>;
};

const CHANNEL = 'settled';
const GATHER_MS = 50;
const RECONNECT_MS = { min: 200, max: 10_000 } as const;
/** A query detects a connection that was cut without notice. */
const ASK_EVERY_MS = 10_000;

const NOTIFY = statement(`SELECT pg_notify('${CHANNEL}', @payload)`);

export type WakeupOptions = {
  db: Pick<Database, 'once'>;
  servers: Servers;
  replica: string;
  clock: Clock;
  random: () => number;
};

/** Listens on a separate connection, and opens a new one when it is lost. */
export function openWakeups({ db, servers, replica, clock, random }: WakeupOptions): Wakeups {
  const heard = new Set<(wakeup: Wakeup) => void>();
  const unsent = new Set<Wakeup>();
  let client: ServerConnection | null = null;
  let connecting: Promise<void> | null = null;
  let isClosed = false;
  let failures = 0;
  let cancel: Cancel = () => {};

  function connect(): void {
    if (isClosed) return;
    connecting = servers.connect().then(listen, connectLater);
  }

  function listen(mine: ServerConnection): void {
    client = mine;
    let isLost = false;
    const lose = () => {
      if (isLost) return;
      isLost = true;
      servers.doubt(mine);
      // A connection cut without notice does not end by itself.
      mine.end().catch(() => {});
      cancel();
      connectLater();
    };
    mine.on('error', lose);
    mine.on('end', lose);
    mine.on('notification', ({ payload = '' }) => receive(payload));
    mine
      .query(`LISTEN ${CHANNEL}`)
      .then(() => {
        failures = 0;
        cancel = clock.every(ASK_EVERY_MS, () => void mine.query('SELECT 1').catch(lose));
        // A wakeup may have been sent while this replica did not listen.
        for (const wakeup of WAKEUPS) tell(wakeup);
      })
      .catch(lose);
  }

  function connectLater(): void {
    if (isClosed) return;
    const delayMs = Math.min(RECONNECT_MS.max, RECONNECT_MS.min * 2 ** failures++) * (0.5 + random() / 2);
    cancel = clock.after(delayMs, connect);
  }

  function tell(wakeup: Wakeup): void {
    for (const listener of heard) listener(wakeup);
  }

  function receive(payload: string): void {
    const [from, said] = payload.split(' ');
    const wakeup = WAKEUPS.find((one) => one === said);
    if (from !== replica && wakeup !== undefined) tell(wakeup);
  }

  async function flush(): Promise<void> {
    const wakeups = [...unsent];
    unsent.clear();
    const sent = wakeups.map((wakeup) => db.once((tx) => tx.run(NOTIFY, { payload: `${replica} ${wakeup}` })));
    // A replica that misses a wakeup finds the work by its poll.
    await Promise.allSettled(sent);
  }

  return {
    send: (wakeup) => {
      if (unsent.size === 0) clock.after(GATHER_MS, flush);
      unsent.add(wakeup);
    },
    listen: (listener) => {
      heard.add(listener);
      if (connecting === null) connect();
    },
    close: async () => {
      isClosed = true;
      cancel();
      await Promise.all([flush(), connecting]);
      await client?.end().catch(() => {});
    },
  };
}
