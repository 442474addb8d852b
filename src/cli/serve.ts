import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { resolve } from 'node:path';
import type { App } from '../app/app.ts';
import type { Config } from '../config/config.ts';
import type { Log } from '../observe/log.ts';
import { releaseVersion } from '../release.ts';
import { operatorTokenPath, storeFile } from '../store/address.ts';
import { stayAlive, systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import { urlOf } from './connection.ts';
import { EXIT, type ExitCode, endProcess, failure } from './exit.ts';
import { failureText } from './output.ts';

/** A stop takes 5 s at most, whatever the disk does. */
const STOP_DEADLINE_MS = 4_800;

export const serve = defineCommand({
  name: 'serve',
  about: 'receive deliveries and settle them, until SIGTERM or SIGINT',
  details: [
    'The log goes to standard output: as text on a terminal, otherwise and with --json as lines of JSON.',
    'It also says why the server ends. docs/errors.md lists the exit codes.',
  ],
  async run({ config, json }) {
    // The database, its log and its backups hold what customers paid: other users of this machine must not read them.
    process.umask(0o077);
    const stopped = stopAsked();
    const started = await start(config, json ? 'json' : null, stopped);
    return typeof started === 'number' ? started : untilStopped(started.app, stopped, started.log);
  },
});

/** Resolves with what asks this process to stop. Asking again, as process groups and npm do, changes nothing. */
function stopAsked(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    // The launcher that started this process is gone, killed perhaps.
    process.once('disconnect', () => resolve('the launcher is gone'));
    if (process.connected === false) resolve('the launcher is gone');
  });
}

/** The exit code if it cannot serve, or was stopped while it waited for a database on another machine. */
async function start(
  readConfig: () => Config,
  format: Config['logFormat'],
  stopped: Promise<string>,
): Promise<{ app: App; log: Log } | ExitCode> {
  const { openLog } = await import('../observe/log.ts');
  // Faulty settings are logged too, as if no setting was given.
  let log = openLog('info', await asLines(format));
  process.prependListener('uncaughtException', (fault) => {
    endProcess(logFatal(log, fault, 'settled has a bug and ends; please report it'));
  });
  // Waiting for a database alone does not keep a process alive.
  const release = stayAlive();
  try {
    const config = readConfig();
    log = openLog(config.logLevel, await asLines(format ?? config.logFormat));
    if (config.envFile !== null) log.info(config.envFile, 'settings were taken from a file');
    const { startApp } = await import('../app/app.ts');
    const starting = startApp({ config, clock: systemClock, random: Math.random, newId: randomUUID, log });
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
    return { app, log };
  } catch (fault) {
    return logFatal(log, fault, 'settled cannot serve');
  } finally {
    release();
  }
}

/** How the log is written. The code for a readable log is loaded only if needed. */
async function asLines(format: Config['logFormat']): Promise<((json: string) => string) | undefined> {
  const { isTTY } = process.stdout;
  if ((format ?? (isTTY ? 'pretty' : 'json')) === 'json') return undefined;
  const { prettyLines } = await import('../observe/pretty.ts');
  // None if NO_COLOR is set (https://no-color.org).
  return prettyLines({ colours: isTTY === true && process.stdout.hasColors() });
}

/** What a person looks for after a start. Never the token itself. */
function describeApp({ hooksAddress, operatorAddress, replica }: App, config: Config): object {
  const { store, operatorToken } = config;
  return {
    version: releaseVersion(),
    hooks: hooksAddress,
    operator: operatorAddress,
    docs: `${urlOf(operatorAddress)}/docs`,
    operatorToken: operatorToken === null ? resolve(operatorTokenPath(storeFile(store))) : 'SETTLED_OPERATOR_TOKEN',
    store: store.name,
    ...(replica === null ? {} : { replica }),
  };
}

/**
 * Says once what ends the process: in the log, which programs and people read; on standard error only if the log is to
 * say nothing at all. Returns the exit code.
 */
function logFatal(log: Log, fault: unknown, what: string): ExitCode {
  const failed = failure(fault);
  if (log.isLevelEnabled('fatal')) log.fatal({ exit: failed.exit, fault }, what);
  else process.stderr.write(failureText(failed, false));
  return failed.exit;
}

/** Serves until it is to stop, or the store cannot go on; then answers what can still be answered. */
async function untilStopped(app: App, stopped: Promise<string>, log: Log): Promise<ExitCode> {
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
