import type { Request, RequestHandler, Response } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { Store } from '../store/contract.ts';
import type { Cancel, Clock } from '../work/clock.ts';
import { protect } from './send.ts';

/** A page shows a change within a second: half of it may pass before it is found, and the rest is for fetching the page. */
const LOOK_EVERY_MS = 500;
/** Once this many looks in a row have each found a change, pages are told less often: each refresh costs a few queries. */
const BUSY = { afterTold: 20, tellEveryMs: 3_000 } as const;
const PING_EVERY_MS = 3_000;
const RECONNECT_MS = 1_000;
const STREAMS_MAX = 200;
/** Of one reader: a browser's tabs share a stream, and one that is gone may be noticed late. */
const STREAMS_OF_READER_MAX = 20;

export type LiveOptions = {
  store: Pick<Store, 'changeMark'>;
  clock: Clock;
  /** Called when something changed, or may have, before pages are told. */
  onChange: () => void;
  /** Whether the session that opened a stream may still read; asked with each ping. If it rejects, it is asked again. */
  isStillValid: (request: Request, response: Response) => Promise<boolean>;
  /** The name of the person or token, however many sessions there are: no reader takes the streams of all others. */
  readerOf: (response: Response) => string;
  /** How many streams there are at most, up to `STREAMS_MAX`: each holds a connection of the listener. */
  streamsMax?: number;
};

/** Tells pages that something changed. `route` answers `GET /live`; `end` ends every stream, and refuses later ones. */
export function openLive(options: LiveOptions) {
  const { store, clock, onChange, isStillValid, readerOf } = options;
  const streamsMax = Math.min(options.streamsMax ?? STREAMS_MAX, STREAMS_MAX);
  const changes = watchChanges({ store, clock, onChange });
  /** What ends each stream, and whose it is. */
  const streams = new Map<() => void, string>();
  let hasEnded = false;

  /** Why no stream is opened for a reader; null if one is. */
  function refusalOf(reader: string): string | null {
    if (hasEnded) return 'settled is stopping.';
    const own = [...streams.values()].filter((one) => one === reader).length;
    if (own >= STREAMS_OF_READER_MAX) return `You follow ${own} pages already. Close some.`;
    return streams.size >= streamsMax ? `${streamsMax} pages are followed already. Close some.` : null;
  }

  const route: RequestHandler = (request, response) => {
    const reader = readerOf(response);
    const detail = refusalOf(reader);
    if (detail !== null) return sendProblem(response, { status: 503, code: 'unavailable', detail });
    protect(response);
    response.set({ 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    if (request.method === 'HEAD') return void response.end();
    const isValid = () => isStillValid(request, response);
    const end = openStream(response, { changes, clock, isValid });
    streams.set(end, reader);
    response.once('close', () => {
      streams.delete(end);
      end();
    });
  };

  return {
    route,
    end: () => {
      hasEnded = true;
      for (const end of streams.keys()) end();
    },
  };
}

type Streaming = { changes: Changes; clock: Clock; isValid: () => Promise<boolean> };

/** Sends events until the reader is gone or its session has ended. Returns what ends the stream. */
function openStream(response: Response, { changes, clock, isValid }: Streaming): () => void {
  let isAsking = false;
  const send = (event: 'ready' | 'changed' | 'ping' | 'ended') => {
    if (!response.writableEnded) response.write(`event: ${event}\ndata: ${new Date(clock.nowMs()).toISOString()}\n\n`);
  };
  const ping = async () => {
    // A reader that takes nothing would be kept in memory.
    if (response.writableNeedDrain) return void response.destroy();
    send('ping');
    if (isAsking) return;
    isAsking = true;
    const isOver = await isValid().then(
      (valid) => !valid,
      () => false,
    );
    isAsking = false;
    if (!isOver) return;
    send('ended');
    end();
  };
  response.write(`retry: ${RECONNECT_MS}\n\n`);
  const cancelPing = clock.every(PING_EVERY_MS, () => void ping());
  const unfollow = changes.follow({ ready: () => send('ready'), changed: () => send('changed') });

  function end(): void {
    cancelPing();
    unfollow();
    if (!response.writableEnded) response.end();
  }

  return end;
}

/** `ready` is called once, when every later change will be told. */
type Follower = { ready: () => void; changed: () => void };

type Changes = { follow(follower: Follower): Cancel };

/**
 * Looks at the store's change mark for all who follow, and not at all while there is no follower. A store that does not answer
 * has changed nothing that a page could show: the next look finds out.
 */
function watchChanges({ store, clock, onChange }: Pick<LiveOptions, 'store' | 'clock' | 'onChange'>): Changes {
  const followers = new Set<Follower>();
  const waiting = new Set<Follower>();
  let cancel: Cancel | null = null;
  let isLooking = false;
  let mark: string | null = null;
  let isDue = false;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let toldInARow = 0;

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    const beginners = [...waiting];
    const found = await store.changeMark().catch(() => null);
    isLooking = false;
    // No follower is left: what is found now says nothing to the next one.
    if (found === null || cancel === null) return;
    const hasChanged = mark !== null && mark !== found;
    // While there was no follower, what changed was not looked for: what was loaded meanwhile may be older.
    if (mark === null) onChange();
    mark = found;
    for (const beginner of beginners) if (waiting.delete(beginner)) beginner.ready();
    if (hasChanged) isDue = true;
    else if (!isDue) toldInARow = 0;
    if (isDue) tell();
  }

  function tell(): void {
    const isBusy = toldInARow >= BUSY.afterTold;
    if (isBusy && clock.monotonicMs() - toldAtMs < BUSY.tellEveryMs) return;
    toldAtMs = clock.monotonicMs();
    toldInARow++;
    isDue = false;
    onChange();
    for (const { changed } of followers) changed();
  }

  return {
    follow: (follower) => {
      followers.add(follower);
      waiting.add(follower);
      cancel ??= clock.every(LOOK_EVERY_MS, () => void look());
      void look();
      return () => {
        followers.delete(follower);
        waiting.delete(follower);
        if (followers.size > 0) return;
        cancel?.();
        cancel = null;
        mark = null;
        isDue = false;
      };
    },
  };
}
