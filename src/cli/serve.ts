import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import type { App } from '../app.ts';
import type { Config } from '../config.ts';
import type { Log } from '../observe/log.ts';
import { stayAlive, systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { failure } from './failure.ts';

/** A stop takes 5 s at most, whatever the disk does. */
const STOP_DEADLINE_MS = 4_800;

export const serve = defineCommand({
  name: 'serve',
  positionals: '',
  about: 'receive deliveries and settle them, until SIGTERM or SIGINT',
  details: ['The log goes to standard output, a line of JSON each. docs/errors.md tells how it may end.'],
  options: {},
  async run({ config }) {
    // The database, its log and its backups hold what customers paid: nobody else on this machine reads them.
    process.umask(0o077);
    const stopped = stopAsked();
    const started = await start(config, stopped);
    if (started !== null) await untilStopped(started.app, stopped, started.log);
    return null;
  },
});

/** Null where it was stopped while it waited for a database on another machine. */
async function start(
  readConfig: () => Config,
  stopped: Promise<string>,
): Promise<{ app: App; log: Log } | null> {
  const { openLog } = await import('../observe/log.ts');
  let log = openLog('info');
  process.prependListener('uncaughtException', (fault) => log.fatal({ fault }, 'settled has a bug and ends'));
  // A database that is waited for keeps nothing open.
  const release = stayAlive();
  try {
    const config = readConfig();
    log = openLog(config.logLevel);
    if (config.envFile !== null) log.info(config.envFile, 'settings were taken from a file');
    const { startApp } = await import('../app.ts');
    const starting = startApp({
      config,
      clock: systemClock,
      random: Math.random,
      newId: randomUUID,
      log,
    });
    const mayWait = config.store.engine === 'postgres';
    const app = await (mayWait ? Promise.race([starting, stopped]) : starting);
    if (typeof app === 'string') {
      starting.catch(() => {});
      log.info({ why: app }, 'stopped before it served');
      return null;
    }
    const { hooksAddress: hooks, operatorAddress: operator, replica } = app;
    const name = replica === null ? {} : { replica };
    log.info({ hooks, operator, store: config.store.name, ...name }, 'settled is serving');
    // Written now, because a process that is killed never gets to write it at its end.
    flushCompileCache();
    return { app, log };
  } catch (fault) {
    log.fatal({ fault }, 'settled cannot serve');
    throw fault;
  } finally {
    release();
  }
}

/** Resolves when somebody wants this process to stop. Asking again, as process groups and npm do, changes nothing. */
function stopAsked(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    // The launcher that started this process is gone, killed perhaps.
    process.once('disconnect', () => resolve('the launcher is gone'));
    if (process.connected === false) resolve('the launcher is gone');
  });
}

/** Throws the fault for which the store cannot go on, after what can still be answered is answered. */
async function untilStopped(app: App, stopped: Promise<string>, log: Log): Promise<void> {
  const why = await Promise.race([stopped, app.failed]).catch(async (fault: unknown) => {
    log.fatal({ fault }, 'the store failed; stopping');
    process.exitCode = failure(fault).exit;
    await stopInTime(app, log);
    throw fault;
  });
  log.info({ why }, 'stopping');
  process.exitCode = EXIT.ok;
  await stopInTime(app, log);
  log.info('stopped');
}

/**
 * A thread that hangs in a system call, as on a disk that does not answer, would hold `process.exit` for ever. Only a
 * kill ends it; what is lost by that was never acknowledged.
 */
async function stopInTime(app: App, log: Log): Promise<void> {
  const cancel = systemClock.after(STOP_DEADLINE_MS, () => {
    log.error('the disk does not answer: ended by SIGKILL; nothing that was acknowledged is lost');
    process.kill(process.pid, 'SIGKILL');
  });
  await app.stop();
  cancel();
}
