import pino from 'pino';
import type { Sources } from '../../src/observe/gauges.ts';
import type { Log } from '../../src/observe/log.ts';
import type { Stats } from '../../src/store/verbs/stats.ts';

type Line = { level: string; msg: string } & Record<string, unknown>;

/** A log whose lines the test reads. */
export function readableLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const formatters = { level: (level: string) => ({ level }) };
  const log = pino({ base: null, formatters }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

/** The counts of an empty store. */
export const NOTHING: Stats = {
  orders: {},
  events: {},
  notices: {},
  matters: [],
  checks: 0,
  checksByClass: { confirm: 0, hint: 0, janitor: 0 },
  openings: {},
  drift: 0,
  api: { slotsInUse: 0, pausedUntilMs: null },
  rejections: 0,
  lagMs: 0,
  noticesLagMs: 0,
  shopFailures: 0,
  checksLagMs: { confirm: 0, hint: 0, janitor: 0 },
  webhooksMissing: 0,
  feed: { newest: 0, generation: 1, restoredFromMs: null },
};

export const SOURCES: Sources = {
  stats: async () => NOTHING,
  freeBytes: async () => null,
  sharing: null,
  alerts: async () => [{ name: 'url', failingSinceMs: null, hasMessage: true, waiting: 0 }],
  readiness: () => ({ ready: true }),
  connections: {
    public: () => ({
      open: 0,
      max: 4096,
      closed: { idle: 0, slow: 0, pipelined: 0, dropped: 0 },
      unreadable: { tls: 0, malformed: 0 },
    }),
  },
  canTell: true,
  apiSlots: 50,
};

/** The same for a store that replicas share. */
export const SHARED: Pick<Sources, 'sharing'> = {
  sharing: async () => ({ servers: [], replicas: 1, lapsed: { events: 0, openings: 0, notices: 0 }, skewMs: 0 }),
};

/** The samples of a scrape, by name and labels as written. */
export function samples(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
