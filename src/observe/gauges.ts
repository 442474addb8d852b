import { Counter, Gauge, type Registry } from 'prom-client';
import { concernOf, MATTER_KINDS, type MatterKind } from '../domain/matter.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import type { Stats } from '../store/queries.ts';
import type { LeaseCounts } from '../store/replicas.ts';

/** What the gauges of a scrape are read from. */
export type Sources = {
  stats: () => Promise<Stats>;
  /** Free bytes for the database, null where the system does not tell. Null itself where it is on another machine. */
  freeBytes: (() => Promise<number | null>) | null;
  /** Of a store that replicas share; null of one that this process has for itself. */
  sharing: (() => Promise<Shared>) | null;
  /** As /readyz says it. */
  isReady: () => boolean;
  /** Connections of the public listener: open ones, and those that were closed before their time, by why. */
  connections: () => { open: number; max: number; closed: Readonly<Record<string, number>> };
  /** Whether the shop has a callback. Where it has none, notices wait for ever. */
  canTell: boolean;
  /** All slots of the API budget; null where there is no API, and checks wait for ever. */
  apiSlots: number | null;
};

export type Shared = {
  /** Replicas that are alive, this one among them. */
  replicas: number;
  /** Leases that lapsed and that nobody took over so far. */
  lapsed: LeaseCounts;
  /** How far this machine's clock is ahead of the database's. */
  skewMs: number;
};

/** Of an opening; those that are done are not counted. */
const OPENING_STATUSES = ['pending', 'leased', 'taken'] as const;

type NewGauge = (name: string, help: string, labelNames?: string[]) => Gauge;

/** Gauges that are read from the store; returns what reads them, and what they were read from. */
export function rowGauges(registers: [Registry], sources: Sources): () => Promise<Stats> {
  const gauge: NewGauge = (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers });
  const shows = [countGauges(gauge), lagGauges(gauge, sources), apiGauges(gauge, sources), storeGauges(gauge)];
  const ready = gauge('settled_ready', '1 while deliveries can be taken, as /readyz says it.');
  const showConnections = connectionGauges(registers, sources);
  const showOwn = [...diskGauge(gauge, sources), ...sharingGauges(gauge, sources)];
  return async () => {
    const [now] = await Promise.all([sources.stats(), ...showOwn.map((show) => show())]);
    for (const show of shows) show(now);
    ready.set(sources.isReady() ? 1 : 0);
    showConnections();
    return now;
  };
}

function connectionGauges(registers: [Registry], { connections }: Sources): () => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const open = gauge('settled_connections', 'Open connections of the public listener.');
  const most = gauge('settled_connections_max', 'How many of them there may be.');
  const closed = new Counter({
    name: 'settled_connections_closed_total',
    help: 'Connections of the public listener that were closed before their time, by why.',
    labelNames: ['why'],
    registers,
  });
  const shown = new Map<string, number>();
  return () => {
    const now = connections();
    open.set(now.open);
    most.set(now.max);
    for (const [why, count] of Object.entries(now.closed)) {
      closed.inc({ why }, count - (shown.get(why) ?? 0));
      shown.set(why, count);
    }
  };
}

function diskGauge(gauge: NewGauge, { freeBytes }: Sources): (() => Promise<void>)[] {
  if (freeBytes === null) return [];
  const free = gauge('settled_disk_free_bytes', 'Free space of the file system that holds the database.');
  return [async () => free.set((await freeBytes()) ?? Number.NaN)];
}

function sharingGauges(gauge: NewGauge, { sharing }: Sources): (() => Promise<void>)[] {
  if (sharing === null) return [];
  const alive = gauge('settled_replicas', 'Replicas that gave a sign of life within a minute.');
  const ahead = gauge('settled_store_clock_ahead_seconds', "How far this machine's clock is ahead of the database's.");
  const leases = gauge(
    'settled_leases_lapsed',
    'Leases that lapsed and that no replica took over so far, by what is leased.',
    ['what'],
  );
  return [
    async () => {
      const { replicas, lapsed, skewMs } = await sharing();
      alive.set(replicas);
      ahead.set(skewMs / 1000);
      for (const [what, count] of Object.entries(lapsed)) leases.set({ what }, count);
    },
  ];
}

function countGauges(gauge: NewGauge): (now: Stats) => void {
  const orders = gauge('settled_orders', 'Orders by state.', ['state']);
  const events = gauge('settled_inbox_events', 'Recorded events by status.', ['status']);
  const notices = gauge('settled_notices', 'Notices to the shop by status.', ['status']);
  const openings = gauge('settled_openings', 'Links that settled is opening, by status.', ['status']);
  const matters = gauge('settled_needs_person', 'Matters that need a person, as settled attention lists them.', [
    'concern',
    'kind',
  ]);
  const checks = gauge(
    'settled_checks_waiting',
    'Links that the service should be asked about, by the class of the request; scheduled ones aside.',
    ['class'],
  );
  const drift = gauge('settled_drift', 'Disagreements with the service that were found so far.');
  const missing = gauge(
    'settled_webhooks_missing',
    'Orders paid in the week that ended a day ago of which no webhook has told: the API said so.',
  );
  return (now) => {
    for (const state of ORDER_STATES) orders.set({ state }, now.orders[state] ?? 0);
    // A status that no row has is shown as 0, not as what it was before.
    for (const status of ROW_STATUSES) {
      events.set({ status }, now.events[status] ?? 0);
      notices.set({ status }, now.notices[status] ?? 0);
    }
    for (const status of OPENING_STATUSES) openings.set({ status }, now.openings[status] ?? 0);
    for (const [name, waiting] of Object.entries(now.checksByClass)) checks.set({ class: name }, waiting);
    matters.reset();
    for (const kind of MATTER_KINDS) matters.set(labelsOf(kind), 0);
    for (const { kind, count } of now.matters) matters.inc(labelsOf(kind), count);
    drift.set(now.drift);
    missing.set(now.webhooksMissing);
  };
}

function labelsOf(kind: MatterKind): { concern: string; kind: string } {
  return { concern: concernOf(kind) ?? 'other', kind };
}

function lagGauges(gauge: NewGauge, { canTell, apiSlots }: Sources): (now: Stats) => void {
  const events = gauge('settled_inbox_lag_seconds', 'Age of the oldest event that is due and not settled.');
  const notices = gauge(
    'settled_notices_lag_seconds',
    'Time since the oldest notice that the shop has not taken was due first; 0 where none is sent.',
  );
  const shopFailures = gauge(
    'settled_shop_failures',
    'Attempts to tell the shop that failed in a row; 0 once it takes a notice, and if none is sent.',
  );
  const checks = gauge(
    'settled_checks_lag_seconds',
    'Time since the oldest check was due, by the class of the request; 0 where nobody can be asked.',
    ['class'],
  );
  return ({ lagMs, noticesLagMs, shopFailures: failures, checksLagMs }) => {
    events.set(lagMs / 1000);
    notices.set(canTell ? noticesLagMs / 1000 : 0);
    shopFailures.set(canTell ? failures : 0);
    for (const [name, ms] of Object.entries(checksLagMs))
      checks.set({ class: name }, apiSlots === null ? 0 : ms / 1000);
  };
}

function apiGauges(gauge: NewGauge, { apiSlots }: Sources): (now: Stats) => void {
  const inUse = gauge('settled_api_slots_in_use', 'Slots of the API budget in use, of all replicas.');
  const all = gauge('settled_api_slots', 'Slots of the API budget; 0 where no API is configured.');
  const paused = gauge('settled_api_paused', '1 while checks are not sent, as the service asked for that.');
  return ({ api: { slotsInUse, pausedUntilMs } }) => {
    inUse.set(slotsInUse);
    all.set(apiSlots ?? 0);
    paused.set(pausedUntilMs === null ? 0 : 1);
  };
}

function storeGauges(gauge: NewGauge): (now: Stats) => void {
  const generation = gauge('settled_store_generation', 'Rises when a backup takes the place of the database.');
  const restored = gauge(
    'settled_store_restored',
    '1 after that, until the links made since the backup were looked for.',
  );
  return ({ feed }) => {
    generation.set(feed.generation);
    restored.set(feed.restoredFromMs === null ? 0 : 1);
  };
}
