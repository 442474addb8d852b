import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { openRequestLog } from './api/request_log.ts';
import { apiRoutes } from './api/routes.ts';
import { openClock, type TurnableClock } from './clock.ts';
import type { Context } from './context.ts';
import { controlRoutes } from './control/routes.ts';
import { openDispatcher } from './dispatch/dispatcher.ts';
import { openFaultPlans } from './fault_plans.ts';
import type { SandboxOptions } from './options.ts';
import { pageRoutes } from './page/routes.ts';
import { Service } from './service.ts';
import { openStore, type SandboxStore } from './store/store.ts';

export type Sandbox = {
  readonly url: string;
  readonly apiKey: string;
  readonly seed: string;
  readonly clock: TurnableClock;
  /** How far ahead of real time its clock was when it started. */
  readonly aheadMs: number;
  /** Resolves when no delivery that is due is waiting or in flight. */
  idle(): Promise<void>;
  /** Stopping twice is stopping once. */
  stop(): Promise<void>;
};

/** How long a request may take to come in, in milliseconds. */
const LIMITS = { headersTimeout: 5_000, requestTimeout: 30_000, connectionsCheckingInterval: 1_000 } as const;

/** Starts a local payment-link service. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  assertMayListen(options);
  const store = openStore(options.data ?? ':memory:', options.seed);
  const server = createServer(LIMITS);
  const url = await listen(server, options.listen).catch((error: unknown) => {
    store.close();
    throw error;
  });
  const { clock, aheadMs, rememberTime, forgetTime } = startClock(store, options.timeScale);
  const context = buildContext({ options, url, store, clock, rememberTime });
  const { service, dispatcher, apiKey } = context;
  // No request was accepted yet: nothing above waits after the server began to listen.
  server.on('request', routes(context));
  service.start();
  dispatcher.wake();
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    forgetTime();
    service.stop();
    await dispatcher.stop();
    rememberTime();
    clock.stop();
    store.close();
  };
  let stopping: Promise<void> | null = null;
  return {
    url,
    apiKey,
    seed: store.seed,
    clock,
    aheadMs,
    idle: dispatcher.idle,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Throws if the address is not loopback and `allowRemote` is not set. */
export function assertMayListen({ listen, allowRemote }: Pick<SandboxOptions, 'listen' | 'allowRemote'>): void {
  const isLoopback = listen.host === 'localhost' || listen.host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(listen.host);
  if (isLoopback || allowRemote) return;
  throw new Error(
    `The sandbox listens on loopback only: anyone who reaches it sees everything. ${listen.host} is not loopback; ` +
      'add --allow-remote if you mean it.',
  );
}

/** A server may listen on every address, but a client connects to one. */
const REACHED_AT: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Resolves with the address at which the server is reached. */
function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      const { port: boundPort } = server.address() as AddressInfo;
      const reached = REACHED_AT[host] ?? host;
      resolve(`http://${reached.includes(':') ? `[${reached}]` : reached}:${boundPort}`);
    });
  });
}

/** The clock, from the time at which this store was closed. */
function startClock(store: SandboxStore, timeScale: number) {
  const turnedMs = Number(store.setting('turned_ms') ?? 0);
  // A killed process did not write how far its clock was turned. Time must not go back before what happened.
  const startMs = Math.max(Date.now() + turnedMs, store.latestMs());
  const aheadMs = startMs - Date.now();
  const clock = openClock({ startMs, scale: timeScale });
  const rememberTime = () => store.setSetting('turned_ms', String(clock.nowMs() - Date.now()));
  // A clock that runs at another speed drifts from real time continuously.
  const remembering = timeScale === 1 ? undefined : setInterval(rememberTime, 1_000).unref();
  return { clock, aheadMs, rememberTime, forgetTime: () => clearInterval(remembering) };
}

type Built = Pick<Context, 'options' | 'url' | 'store' | 'clock'> & { rememberTime: () => void };

function buildContext({ options, url, store, clock, rememberTime }: Built): Context {
  let current = options.switches;
  const switches = () => current;
  const faults = openFaultPlans(store);
  const dispatcher = openDispatcher({ options, store, clock, faults, switches });
  const { environment } = options;
  const service = new Service({ store, clock, environment, url, switches, onDelivery: dispatcher.wake });
  return {
    options,
    url,
    apiKey: options.apiKey ?? store.ids.apiKey(),
    store,
    clock,
    service,
    dispatcher,
    faults,
    requests: openRequestLog(clock),
    switches,
    setSwitches: (changed) => {
      current = changed;
    },
    advance: async (byMs) => {
      await dispatcher.idle();
      await clock.advance(byMs);
      await dispatcher.idle();
      rememberTime();
    },
  };
}

function routes(context: Context): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use('/api/v1', apiRoutes(context));
  app.use('/_control', controlRoutes(context));
  app.use(pageRoutes(context));
  return app;
}
