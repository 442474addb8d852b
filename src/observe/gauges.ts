import { concernOf, MATTER_KINDS, type MatterKind } from '../domain/matter.ts';
import { OPENING_STATUSES } from '../domain/opening.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import type { ServerState } from '../store/contract.ts';
import type { AlertState } from '../store/verbs/alerts.ts';
import type { LeaseCounts, Stats } from '../store/verbs/stats.ts';
import { Counter, Gauge, type Registry } from './prometheus.ts';

/** The sources of a scrape's gauges. */
export type Sources = {
  stats: () => Promise<Stats>;
  /** Free bytes for the database; null if the system does not say. Absent for a database on another machine. */
  freeBytes: (() => Promise<number | null>) | null;
  /** Null if no other process uses the store. */
  sharing: (() => Promise<Shared>) | null;
  /** The channels by which people are told; empty if none is configured. */
  alerts: () => Promise<readonly Pick<AlertState, 'name' | 'failingSinceMs' | 'hasMessage' | 'waiting'>[]>;
  /** What `/readyz` of the private listener answers. */
  readiness: () => { ready: boolean; troubles?: readonly string[] };
  /** The connections of each listener. */
  connections: Readonly<Record<string, () => ConnectionCounts>>;
  /** Whether the shop has a callback. Without one, settled sends no notices. */
  canTell: boolean;
  /** The size of the API budget; null if there is no API, so that settled makes no checks. */
  apiSlots: number | null;
};

/** The open connections; those closed early, by reason; and what came that is no request, by kind. */
type ConnectionCounts = {
  open: number;
  max: number;
  closed: Readonly<Record<string, number>>;
  unreadable: Readonly<Record<string, number>>;
};

type Shared = {
  /** Live replicas, including this one. */
  replicas: number;
  /** Expired leases that no replica has taken over. */
  lapsed: LeaseCounts;
  servers: readonly ServerState[];
  /** How far this machine's clock is ahead of the database's. */
  skewMs: number;
};

type NewGauge = (name: string, help: string, labelNames?: string[]) => Gauge;

/** Registers gauges that are read from the store. Returns a function that reads them and returns their values. */
export function rowGauges(registers: [Registry], sources: Sources): () => Promise<Stats> {
  const gauge: NewGauge = (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers });
  const shows = [...storeGauges(sources).map((one) => storeGauge(gauge, one)), mattersGauge(gauge)];
  const ready = gauge('settled_ready', '1 while deliveries can be taken, as /readyz says it.');
  const troubles = gauge('settled_troubles', 'What is wrong although deliveries can be taken, as /readyz says it.');
  const showConnections = connectionGauges(registers, gauge, sources);
  const showOwn = [...diskGauge(gauge, sources), ...sharingGauges(gauge, sources), alertGauges(gauge, sources)];
  return async () => {
    const [now] = await Promise.all([sources.stats(), ...showOwn.map((show) => show())]);
    for (const show of shows) show(now);
    const state = sources.readiness();
    ready.set(state.ready ? 1 : 0);
    troubles.set(state.troubles?.length ?? 0);
    showConnections();
    return now;
  };
}

/** A gauge: its name, its help, and its value in a scrape, or a value for each value of its label. */
type StoreGauge = [name: string, help: string, read: (now: Stats) => number | Record<string, number>, label?: string];

/** Shows a state without rows as 0, instead of its former value. */
function all(states: readonly string[], counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(states.map((state) => [state, counts[state] ?? 0]));
}

function storeGauges({ canTell, apiSlots }: Sources): StoreGauge[] {
  const canAsk = apiSlots !== null;
  return [
    ['settled_orders', 'Orders by state.', ({ orders }) => all(ORDER_STATES, orders), 'state'],
    ['settled_inbox_events', 'Recorded events by status.', ({ events }) => all(ROW_STATUSES, events), 'status'],
    ['settled_notices', 'Notices to the shop by status.', ({ notices }) => all(ROW_STATUSES, notices), 'status'],
    [
      'settled_openings',
      'Links that settled is opening, by status.',
      ({ openings }) => all(OPENING_STATUSES, openings),
      'status',
    ],
    [
      'settled_checks_waiting',
      'Links that the service should be asked about, by the class of the request; scheduled ones aside.',
      ({ checksByClass }) => checksByClass,
      'class',
    ],
    ['settled_drift', 'Disagreements with the service that were found so far.', ({ drift }) => drift],
    [
      'settled_webhooks_missing',
      'Orders paid in the week that ended a day ago that only the API told of: no webhook came.',
      ({ webhooksMissing }) => webhooksMissing,
    ],
    ['settled_inbox_lag_seconds', 'Age of the oldest event that is due and not settled.', ({ lagMs }) => lagMs / 1000],
    [
      'settled_notices_lag_seconds',
      'Time since the oldest notice that the shop has not taken was due first; 0 if none is sent.',
      ({ noticesLagMs }) => (canTell ? noticesLagMs / 1000 : 0),
    ],
    [
      'settled_shop_failures',
      'Attempts to tell the shop that failed in a row; 0 once it takes a notice, and if none is sent.',
      ({ shopFailures }) => (canTell ? shopFailures : 0),
    ],
    [
      'settled_checks_lag_seconds',
      'Time since the oldest check was due, by the class of the request; 0 if no API is configured.',
      ({ checksLagMs }) =>
        Object.fromEntries(Object.entries(checksLagMs).map(([name, ms]) => [name, canAsk ? ms / 1000 : 0])),
      'class',
    ],
    ['settled_api_slots_in_use', 'Slots of the API budget in use, of all replicas.', ({ api }) => api.slotsInUse],
    ['settled_api_slots', 'Slots of the API budget; 0 if no API is configured.', () => apiSlots ?? 0],
    [
      'settled_api_paused',
      '1 while checks are not sent, because the service asked for a pause.',
      ({ api }) => (api.pausedUntilMs === null ? 0 : 1),
    ],
    ['settled_store_generation', 'Rises when a backup replaces the database.', ({ feed }) => feed.generation],
    [
      'settled_store_restored',
      '1 after a backup replaced the database, until the links made since the backup were looked for.',
      ({ feed }) => (feed.restoredFromMs === null ? 0 : 1),
    ],
  ];
}

function storeGauge(gauge: NewGauge, [name, help, read, label]: StoreGauge): (now: Stats) => void {
  const made = gauge(name, help, label === undefined ? [] : [label]);
  return (now) => {
    const value = read(now);
    if (typeof value === 'number') made.set(value);
    else for (const [key, count] of Object.entries(value)) made.set({ [label as string]: key }, count);
  };
}

function mattersGauge(gauge: NewGauge): (now: Stats) => void {
  const help = 'Matters that need a person, as settled attention lists them.';
  const matters = gauge('settled_needs_person', help, ['concern', 'kind']);
  const labelsOf = (kind: MatterKind) => ({ concern: concernOf(kind) ?? 'other', kind });
  return (now) => {
    matters.reset();
    for (const kind of MATTER_KINDS) matters.set(labelsOf(kind), 0);
    for (const { kind, count } of now.matters) matters.inc(labelsOf(kind), count);
  };
}

function connectionGauges(registers: [Registry], gauge: NewGauge, { connections }: Sources): () => void {
  const open = gauge('settled_connections', 'Open connections, by listener.', ['listener']);
  const most = gauge('settled_connections_max', 'How many of them there may be.', ['listener']);
  const counter = (name: string, help: string, label: string) =>
    new Counter({ name, help, labelNames: ['listener', label], registers });
  const closed = counter(
    'settled_connections_closed_total',
    'Connections that were closed early, by listener and reason.',
    'why',
  );
  const unreadable = counter(
    'settled_connections_unreadable_total',
    'Connections that sent what settled does not read, by listener and kind.',
    'kind',
  );
  return () => {
    // The listeners count: each scrape shows their counts.
    closed.reset();
    unreadable.reset();
    for (const [listener, counts] of Object.entries(connections)) {
      const now = counts();
      open.set({ listener }, now.open);
      most.set({ listener }, now.max);
      for (const [why, count] of Object.entries(now.closed)) closed.inc({ listener, why }, count);
      for (const [kind, count] of Object.entries(now.unreadable)) unreadable.inc({ listener, kind }, count);
    }
  };
}

function diskGauge(gauge: NewGauge, { freeBytes }: Sources): (() => Promise<void>)[] {
  if (freeBytes === null) return [];
  const free = gauge('settled_disk_free_bytes', 'Free space of the file system that holds the database.');
  return [async () => free.set((await freeBytes()) ?? Number.NaN)];
}

function alertGauges(gauge: NewGauge, { alerts }: Sources): () => Promise<void> {
  const failing = gauge('settled_alerts_failing', '1 while a channel takes no alert.', ['channel']);
  const waiting = gauge('settled_alerts_waiting', 'What a channel has to tell: a message, and entries.', ['channel']);
  return async () => {
    for (const { name, failingSinceMs, hasMessage, waiting: entries } of await alerts()) {
      failing.set({ channel: name }, failingSinceMs === null ? 0 : 1);
      waiting.set({ channel: name }, entries + (hasMessage ? 1 : 0));
    }
  };
}

const SERVER_ROLES: readonly ServerState['role'][] = ['primary', 'replaced', 'standby', 'unusable', 'unreachable'];

function sharingGauges(gauge: NewGauge, { sharing }: Sources): (() => Promise<void>)[] {
  if (sharing === null) return [];
  const alive = gauge('settled_replicas', 'Replicas with a heartbeat within the last minute.');
  const ahead = gauge('settled_store_clock_ahead_seconds', "How far this machine's clock is ahead of the database's.");
  const leases = gauge(
    'settled_leases_lapsed',
    'Leases that lapsed and that no replica has taken over yet, by what is leased.',
    ['what'],
  );
  const byRole = gauge('settled_store_servers', 'Servers that the address of the database names, by role.', ['role']);
  const waits = gauge('settled_store_waits_for_standby', '1 while commits wait until a standby has them as well.');
  return [
    async () => {
      const { servers, replicas, lapsed, skewMs } = await sharing();
      for (const one of SERVER_ROLES) byRole.set({ role: one }, servers.filter(({ role }) => role === one).length);
      waits.set(servers.some(({ waitsFor }) => waitsFor !== null) ? 1 : 0);
      alive.set(replicas);
      ahead.set(skewMs / 1000);
      for (const [what, count] of Object.entries(lapsed)) leases.set({ what }, count);
    },
  ];
}
