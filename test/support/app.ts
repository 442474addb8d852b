import crypto, { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, onTestFinished, type TestContext, vi } from 'vitest';
import { OPERATOR_TOKEN } from '../../prove/harness/settled.ts';
import { type App, startApp } from '../../src/app/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { type Log, openLog } from '../../src/observe/log.ts';
import { type OpenedStore, openStore } from '../../src/store/open.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { signedHeaders } from './deliveries.ts';
import { expectDocumented } from './document.ts';
import { ask } from './http.ts';
import { type Calls, counted, type TestDatabase, testDatabase } from './test_database.ts';
import { startWithoutThread } from './threadless.ts';

/** The engine of this vitest project. */
const ENGINE = process.env.SETTLED_TEST_ENGINE === 'postgres' ? 'postgres' : 'sqlite';

export { OPERATOR_TOKEN };
export const SHOP_TOKEN = 'shop-token-of-the-tests';

export type TestApp = {
  app: App;
  /** The SQLite file; with PostgreSQL only a name for the database. */
  storePath: string;
  /** The PostgreSQL database; null with SQLite. */
  database: TestDatabase | null;
  calls: Calls;
  hooksUrl: string;
  apiUrl: string;
  /** Calls the private API as the operator, or with another token. Expects the answer to be documented. */
  api(path: string, options?: { method?: string; body?: unknown; token?: string }): Promise<ApiAnswer>;
  /** Reserves a link for a new order. */
  reserve(reference: string, amount?: string, fields?: object): Promise<ReservedLink>;
  /** Signs and sends a body to a link's webhookUrl. */
  deliver(link: ReservedLink, body: string, headers?: Record<string, string>): Promise<Response>;
  order(reference: string): Promise<Record<string, unknown>>;
};

// biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
type ApiAnswer = { status: number; headers: Headers; body: any };
export type ReservedLink = { webhookUrl: string; webhookSecret: string; reference: string };

/** A folder that is removed after the test. If the test failed, it is kept and its path is printed. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  onTestFinished(({ task }) => {
    if (!hasFailed(task)) rmSync(folder, { recursive: true, force: true });
    else console.error(`the files of the failed test are kept in ${folder}`);
  });
  return folder;
}

/** Whether a finished test failed. `onTestFailed` cannot tell: its hooks run after those of `onTestFinished`. */
export function hasFailed({ result }: TestContext['task']): boolean {
  return result?.state === 'fail';
}

/**
 * settled in this process: real HTTP on free ports, a real SQLite file or a PostgreSQL database, and the test's clock.
 */
export async function startTestApp(
  options: {
    environment?: Record<string, string>;
    clock?: Clock;
    storePath?: string;
    /** Default: the engine of this vitest project. */
    engine?: 'sqlite' | 'postgres';
    /** Whether SQLite's database has threads of its own, as in a process of settled. */
    threads?: boolean;
    /** Default: a silent one. */
    log?: Log;
    /** How many files it may assume that it can open. */
    openFiles?: number;
    /** Registers the function that stops it; default: at the end of the test. */
    atEnd?: (stop: () => void) => void;
  } = {},
): Promise<TestApp> {
  const storePath = options.storePath ?? join(testFolder(), 'settled.db');
  const { engine = ENGINE } = options;
  const { clock = systemClock } = options;
  const calls: Calls = {
    made: 0,
    underWay: new Set(),
    stats: () => Promise.reject(new Error('the store is not open')),
  };
  const noted = { calls, clock: passing(clock) };
  const threads = options.threads === true ? {} : { startDatabase: startWithoutThread };
  const database =
    engine === 'sqlite'
      ? null
      : await testDatabase(storePath, {
          calls,
          clock: options.clock === undefined ? undefined : passing(clock),
          isOfTest: options.storePath === undefined,
        });
  const config = readConfig({
    ...(database === null ? { SETTLED_STORE: `sqlite:${storePath}` } : database.environment),
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
    SETTLED_SHOP_TOKEN: SHOP_TOKEN,
    SETTLED_LOG_LEVEL: 'silent',
    ...options.environment,
  });
  const app = await startApp({
    config,
    clock,
    random: Math.random,
    newId: randomUUID,
    log: options.log ?? openLog(config.logLevel),
    ...(options.openFiles === undefined ? {} : { openFiles: options.openFiles }),
    open:
      database?.open ?? (async (address, given) => noting(await openStore(address, { ...given, ...threads }), noted)),
  });
  // Stopping takes a second of grace, for which the next test need not wait.
  (options.atEnd ?? onTestFinished)(() => void app.stop());
  const hooksUrl = `http://127.0.0.1:${app.hooksAddress.port}`;
  const apiUrl = `http://127.0.0.1:${app.operatorAddress.port}`;

  const api: TestApp['api'] = async (path, { method, body, token = OPERATOR_TOKEN } = {}) => {
    const asked = method ?? (body === undefined ? 'GET' : 'POST');
    const response = await ask(`${apiUrl}${path}`, {
      method: asked,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    const { status, headers } = response;
    const answer = { status, headers, body: isJson && text !== '' ? JSON.parse(text) : text };
    const header = (name: string) => headers.get(name);
    expectDocumented({ ...answer, method: asked, path, contentType: header('content-type'), header });
    return answer;
  };

  return {
    app,
    storePath,
    database,
    calls,
    hooksUrl,
    apiUrl,
    api,
    reserve: async (reference, amount = '100.00', fields = {}) => {
      const { status, body } = await api('/v1/links', { body: { reference, amount, ...fields } });
      if (status !== 201) throw new Error(`reserving failed: ${status} ${JSON.stringify(body)}`);
      const webhookUrl = body.link.webhookUrl.replace('http://127.0.0.1:8787', hooksUrl);
      return { webhookUrl, webhookSecret: body.link.webhookSecret, reference };
    },
    deliver: (link, body, headers) =>
      ask(link.webhookUrl, { method: 'POST', body, headers: headers ?? signedHeaders(link.webhookSecret, body) }),
    order: async (reference) => (await api(`/v1/orders/${encodeURIComponent(reference)}`)).body.order,
  };
}

function noting(opened: OpenedStore, { calls, clock }: { calls: Calls; clock: Clock }): OpenedStore {
  return { ...opened, store: counted(opened.store, calls), clock };
}

/**
 * A clock whose turns count as time that has passed, so that settled does not take them for steps of the clock. The
 * store itself uses the clock as it is, because no call takes as long as a turn.
 */
function passing(clock: Clock): Clock {
  return 'advance' in clock ? { ...clock, monotonicMs: () => clock.nowMs() } : clock;
}

/**
 * Notes how a function of node:crypto is called, also by modules that import it by its name. Its calls are forgotten
 * before each test of the file.
 */
export function spiedCrypto<Name extends 'createHmac' | 'timingSafeEqual'>(name: Name) {
  const spy = vi.spyOn(crypto, name);
  syncBuiltinESMExports();
  beforeEach(() => void spy.mockClear());
  afterAll(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  return spy;
}
