import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { openRequestLog, type RequestLog } from './api/request_log.ts';
import { apiRoutes } from './api/routes.ts';
import { openClock, type TurnableClock } from './clock.ts';
import { controlRoutes } from './control/routes.ts';
import { openDispatcher } from './dispatch/dispatcher.ts';
import { type FaultPlans, openFaultPlans } from './fault_plans.ts';
import type { SandboxOptions, Silences } from './options.ts';
import { pageRoutes } from './page/routes.ts';
import { Service } from './service.ts';
import { type Chance, openChance } from './store/statements.ts';
import { openStore, type SandboxStore } from './store/store.ts';

/** What the routes work with. */
export type Parts = {
  options: SandboxOptions;
  store: SandboxStore;
  chance: Chance;
  clock: TurnableClock;
  service: Service;
  faults: FaultPlans;
  requests: RequestLog;
  apiKey: string;
  /** `http://127.0.0.1:8790`: where this sandbox is reached. */
  baseUrl: () => string;
  silences: () => Silences;
  /** Sets switches while it runs. */
  setSilences: (silences: Silences) => void;
  /** Turns the clock forward and remembers that it was turned. */
  advance: (byMs: number) => Promise<void>;
  /** Resolves when no delivery that is due is waiting or on its way. */
  idle: () => Promise<void>;
  /** Sends what is held back by a reorder, whatever it waits for. */
  letGo: () => void;
};

export type Sandbox = {
  readonly url: string;
  readonly apiKey: string;
  readonly seed: string;
  readonly clock: TurnableClock;
  /** How far ahead of the true clock it was when it started. */
  readonly aheadMs: number;
  /** Resolves when no delivery that is due is waiting or on its way. */
  idle(): Promise<void>;
  /** Stopping twice is stopping once. */
  stop(): Promise<void>;
};

/** A request has so many milliseconds to come in. */
const LIMITS = { headersTimeout: 5_000, requestTimeout: 30_000, connectionsCheckingInterval: 1_000 } as const;

/** Throws where the address is not loopback and `allowRemote` is not said. */
export function assertMayListen({ listen, allowRemote }: Pick<SandboxOptions, 'listen' | 'allowRemote'>): void {
  const isLoopback = listen.host === 'localhost' || listen.host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(listen.host);
  if (isLoopback || allowRemote) return;
  throw new Error(
    `The sandbox listens on loopback only: it shows everything to everybody. ${listen.host} is not loopback; ` +
      'say --allow-remote where that is meant.',
  );
}

/** Starts a payment-link service of one's own. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  assertMayListen(options);
  const store = openStore(options.data ?? ':memory:');
  const seedBefore = store.setting('seed');
  const seed = options.seed ?? seedBefore ?? randomBytes(8).toString('hex');
  if (seedBefore !== null && seed !== seedBefore) {
    store.close();
    const message = `it has the seed "${seedBefore}", not "${seed}"; leave --seed out, or name another file`;
    throw Object.assign(new Error(message), { code: 'SEED_DIFFERS' });
  }
  store.setSetting('seed', seed);
  const chance = openChance(seed);
  const turnedMs = Number(store.setting('turned_ms') ?? 0);
  // A process that was killed has not said how far its clock was turned: time never goes back before what happened.
  const startMs = Math.max(Date.now() + turnedMs, store.latestMs());
  const aheadMs = startMs - Date.now();
  const clock = openClock({ startMs, scale: options.timeScale });
  const rememberTime = () => store.setSetting('turned_ms', String(clock.nowMs() - Date.now()));
  // A clock that runs at another speed is always somewhere else.
  const remembering = options.timeScale === 1 ? undefined : setInterval(rememberTime, 1_000).unref();
  let silences = options.silences;
  let url = '';
  const faults = openFaultPlans(store);
  const parts = { options, store, chance, clock, faults, silences: () => silences, baseUrl: () => url };
  const dispatcher = openDispatcher(parts);
  const { environment } = options;
  const service = new Service({ ...parts, environment, onDelivery: dispatcher.wake });
  const apiKey = options.apiKey ?? chance.apiKey();
  const server = createServer(
    LIMITS,
    createApp({
      ...parts,
      service,
      apiKey,
      idle: dispatcher.idle,
      letGo: dispatcher.letGo,
      setSilences: (changed) => {
        silences = changed;
      },
      advance: async (byMs) => {
        await dispatcher.idle();
        await clock.advance(byMs);
        await dispatcher.idle();
        rememberTime();
      },
    }),
  );
  const end = async () => {
    clearInterval(remembering);
    service.stop();
    await dispatcher.stop();
    rememberTime();
    clock.stop();
    store.close();
  };
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    await end();
  };
  let stopping: Promise<void> | null = null;
  const { port } = await listen(server, options.listen).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  const { host } = options.listen;
  url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  service.start();
  dispatcher.wake();
  return {
    url,
    apiKey,
    seed,
    clock,
    aheadMs,
    idle: dispatcher.idle,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

function createApp(given: Omit<Parts, 'requests'>): express.Express {
  const parts: Parts = { ...given, requests: openRequestLog(given.clock) };
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use('/api/v1', apiRoutes(parts));
  app.use('/_control', controlRoutes(parts));
  app.use(pageRoutes(parts));
  return app;
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}
