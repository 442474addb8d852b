import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { resolve } from 'node:path';
import type { App } from '../app/app.ts';
import type { Config } from '../config/config.ts';
import { inNumber, restoredSentence } from '../explain/glossary.ts';
import type { Log } from '../observe/log.ts';
import { releaseVersion } from '../release.ts';
import { operatorTokenPath, type StoreAddress, storeFile } from '../store/address.ts';
import type { Migrated } from '../store/migrate.ts';
import { failureText } from '../terminal/output.ts';
import { endProcess, stopAsked } from '../terminal/process.ts';
import { stayAlive, systemClock } from '../work/clock.ts';
import { watchMemory } from '../work/memory.ts';
import { defineCommand } from './command.ts';
import { urlOf } from './connection.ts';
import { EXIT, failure } from './exit.ts';

/** A stop takes 5 s at most, whatever the disk does. */
const STOP_DEADLINE_MS = 4_800;

export const serve = defineCommand({
  usage: 'serve',
  about: 'receive deliveries and settle them, until SIGTERM or SIGINT',
  details: [
    'The log goes to standard output: as text on a terminal, otherwise and with --json as lines of JSON.',
    'It also says why the server ends. docs/errors.md lists the exit codes.',
  ],
  isLocal: true,
  async run({ config, json, screen }) {
    // The database, its log and its backups hold what customers paid: other users of this machine must not read them.
    process.umask(0o077);
    const stopped = stopAsked();
    const started = await start(config, { format: json ? 'json' : null, colours: screen.colours }, stopped);
    return typeof started === 'number' ? started : untilStopped(started.app, stopped, started.log);
  },
});

/** The exit code if it cannot serve, or was stopped while it waited for a database on another machine. */
async function start(
  readConfig: () => Config,
  lines: Lines,
  stopped: Promise<string>,
): Promise<{ app: App; log: Log } | number> {
  const { openLog } = await import('../observe/log.ts');
  // Faulty settings are logged too, as if no setting was given.
  let log = openLog('info', await asLines(lines));
  const what = 'settled has a bug and ends; please report it';
  process.prependListener('uncaughtException', (fault) => endProcess(logFatal(log, fault, what)));
  // Waiting for a database alone does not keep a process alive.
  const release = stayAlive();
  try {
    const config = readConfig();
    log = openLog(config.logLevel, await asLines({ ...lines, format: lines.format ?? config.logFormat }));
    if (config.envFile !== null) log.info(config.envFile, 'settings were taken from a file');
    const starting = startHere(config, log);
    const mayWait = config.store.engine === 'postgres';
    const app = await (mayWait ? Promise.race([starting, stopped]) : starting);
    if (typeof app === 'string') {
      starting.catch(() => {});
      log.info({ why: app }, 'stopped before it served');
      return EXIT.ok;
    }
    log.info(describeApp(app, config), 'settled is serving');
    // Written now, because a process that is killed cannot write it at its end.
    flushCompileCache();
    watchMemory(systemClock);
    return { app, log };
  } catch (fault) {
    return logFatal(log, fault, 'settled cannot serve');
  } finally {
    release();
  }
}

/** Starts settled in this process, by the clock and the chance of this machine. */
export async function startHere(config: Config, log: Log): Promise<App> {
  if (config.store.engine === 'sqlite') (await import('../store/sqlite/threads.ts')).beginThread();
  const { startApp } = await import('../app/app.ts');
  return startApp({ config, clock: systemClock, random: Math.random, newId: randomUUID, log });
}

/** What is asked of the log's lines. `format`: null if that is left to where they go. */
type Lines = { format: Config['logFormat']; colours: boolean };

/** How the log is written. The code for a readable log is loaded only if needed. */
async function asLines({ format, colours }: Lines): Promise<((json: string) => string) | undefined> {
  if ((format ?? (process.stdout.isTTY ? 'pretty' : 'json')) === 'json') return undefined;
  const { prettyLines } = await import('../observe/pretty.ts');
  return prettyLines({ colours });
}

/** What a person looks for after a start. Never the token itself. */
function describeApp({ hooksAddress, operatorAddress, replica }: App, config: Config): object {
  const { store, storeDirect, storeDurability, operatorToken, consoleUrl } = config;
  return {
    version: releaseVersion(),
    hooks: hooksAddress,
    operator: operatorAddress,
    console: consoleUrl ?? `${urlOf(operatorAddress)}/`,
    operatorToken: operatorToken === null ? resolve(operatorTokenPath(storeFile(store))) : 'SETTLED_OPERATOR_TOKEN',
    store: store.name,
    ...(storeDirect === null ? {} : { storeDirect: storeDirect.name }),
    ...(storeDurability === null ? {} : { durabilityDeclared: storeDurability }),
    ...(replica === null ? {} : { replica }),
  };
}

/**
 * Says once what ends the process: in the log, which programs and people read; on standard error only if the log is to
 * say nothing at all. Returns the exit code.
 */
function logFatal(log: Log, fault: unknown, what: string): number {
  const failed = failure(fault);
  if (log.isLevelEnabled('fatal')) log.fatal({ exit: failed.exit, fault }, what);
  else process.stderr.write(failureText(failed, false));
  return failed.exit;
}

/** Serves until it is to stop, or the store cannot go on; then answers what can still be answered. */
async function untilStopped(app: App, stopped: Promise<string>, log: Log): Promise<number> {
  const end = await Promise.race([stopped, app.failed]).then(
    (why) => ({ why }),
    (fault: unknown) => ({ fault }),
  );
  const isFailed = 'fault' in end;
  const exit = isFailed ? logFatal(log, end.fault, 'the store failed; stopping') : EXIT.ok;
  if (!isFailed) log.info(end, 'stopping');
  process.exitCode = exit;
  await stopInTime(app, log);
  if (!isFailed) log.info('stopped');
  return exit;
}

/**
 * A thread that hangs in a system call, as on a disk that does not answer, would delay `process.exit` without end. Only
 * a kill ends it; what is lost by that was never acknowledged.
 */
async function stopInTime(app: App, log: Log): Promise<void> {
  const cancel = systemClock.after(STOP_DEADLINE_MS, () => {
    log.error('the disk does not answer: ended by SIGKILL; nothing that was acknowledged is lost');
    log.flush();
    process.kill(process.pid, 'SIGKILL');
  });
  await app.stop();
  cancel();
}

export const migrateDatabase = defineCommand({
  usage: 'migrate',
  about: 'bring the database to the newest schema without serving; `settled serve` does this at its start',
  details: [
    'With SQLite, stop the server first: one process works on one database.',
    'With PostgreSQL, replicas of the version before continue to serve meanwhile and after.',
    'For --restored and --new-key, stop every replica.',
    '--restored is for copies that settled did not make itself: backups of `settled backup` say what they are. It is also',
    'for a PostgreSQL that was replaced as the primary, and is kept after all: docs/postgres.md, Failover.',
    '--new-key gives up the secrets that the lost key encrypts: docs/operations.md, Keys.',
  ],
  options: {
    restored: { about: 'the database is a copy that took the place of the one before' },
    'new-key': { about: 'the secrets key is lost: take the one that is given, or make a new one' },
  },
  isLocal: true,
  async run({ options, config }) {
    const source = config();
    const { store } = source;
    const { migrateStore } = await import('../store/open.ts');
    const { readKeyIds } = await import('../secrets/key_files.ts');
    const migrated = await migrateStore({
      store,
      direct: source.storeDirect,
      trustsStorage: source.storeDurability !== null,
      readKeys: (how) => readKeyIds(source, how),
      isRestored: options.restored === true,
      keyIsLost: options['new-key'] === true,
      clock: systemClock,
    });
    const { applied, restoredFromMs, newKey } = migrated;
    const data = {
      ...(store.engine === 'sqlite' ? { path: store.path } : { store: store.name }),
      applied,
      ...(restoredFromMs === null ? {} : { restoredFrom: new Date(restoredFromMs).toISOString() }),
      ...(newKey === null ? {} : { newKey }),
    };
    return { data, lines: migratedLines(store, migrated) };
  },
});

function migratedLines({ name }: StoreAddress, { applied, restoredFromMs, newKey }: Migrated): string[] {
  return [
    applied.length === 0
      ? `${name} has the newest schema already.`
      : `${name} was brought to the newest schema. Applied: ${applied.join(', ')}.`,
    ...(restoredFromMs === null ? [] : [restoredSentence(restoredFromMs)]),
    ...(newKey === null ? [] : newKeyLines(newKey)),
  ];
}

function newKeyLines({ keyId, keyPlace, undecipherable }: NonNullable<Migrated['newKey']>): string[] {
  const key = `The key ${keyId} encrypts secrets from now on: ${keyPlace}.`;
  if (undecipherable === 0) return [`${key} Every secret can be opened.`];
  return [
    key,
    `${inNumber(undecipherable, 'link has', 'links have')} a secret that no known key opens. Deliveries for them are answered 503, and settled finds ` +
      'the payments of their orders by asking the service. See Keys in docs/operations.md.',
  ];
}
