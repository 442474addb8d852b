import { randomUUID } from 'node:crypto';
import type { Finding } from '../api/doctor_store.ts';
import type { Config } from '../config/config.ts';
import { Fault, transientFault } from '../fault.ts';
import { wholeName } from '../store/address.ts';
import type { Report } from '../terminal/command.ts';
import type { Block } from '../terminal/output.ts';
import { onStopSignal } from '../terminal/process.ts';
import { table } from '../terminal/table.ts';
import { stayAlive, systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import { EXIT, type ExitCode, exitOfFault } from './exit.ts';

/** The command that checks: a running server, or the store alone. */

/** `store`: the one on which the server works. */
type DoctorAnswer = { store: string; checks: Finding[] };

export const doctor = defineCommand({
  usage: 'doctor',
  about: 'check this installation, and say how to fix what is wrong',
  details: [
    'The exit code is 1 if something is failing, 69 if the server, or with --store PostgreSQL, cannot be reached.',
    '--store needs no server: it looks at the database or the disk, applies the migrations in a schema or a file of its own,',
    'tries it, and removes it. It may run beside replicas that serve, and ends at the first check that fails.',
    'docs/postgres.md describes the checks.',
  ],
  examples: ['settled doctor', 'settled doctor --store'],
  options: { store: { about: 'try what settled needs of SETTLED_STORE, without a running server' } },
  async run({ config, server, options, isElsewhere }) {
    if (options.store === true) return probe(config());
    return check(isElsewhere() ? null : config(), server());
  },
});

/**
 * What doctor finds in the running server. `config`: null if that is on another machine, of which this one's settings say
 * nothing.
 */
export async function check(config: Config | null, connection: ServerApi): Promise<Report> {
  const { url } = connection;
  const answer = await connection.get<DoctorAnswer>('/v1/admin/doctor').catch(faultOf);
  const isDown = answer instanceof Fault;
  const checks: Finding[] = [
    ...(config === null ? [] : [checkConfiguration(config, { url, worksOn: isDown ? null : answer.store })]),
    ...(config !== null && isDown ? await checkFile(config) : []),
    isDown
      ? { name: 'server', status: 'failing', detail: answer.message }
      : { name: 'server', status: 'ok', detail: `settled answers at ${url}` },
    ...(isDown ? [] : answer.checks),
  ];
  return {
    data: { checks },
    lines: checkLines(checks),
    exit: isDown ? exitOfFault(answer.code) : exitOfChecks(checks),
  };
}

/** `worksOn`: the store of the server; null if it does not answer. */
function checkConfiguration(
  { store, envFile }: Config,
  { url, worksOn }: { url: string; worksOn: string | null },
): Finding {
  const name = 'configuration';
  if (worksOn === null || worksOn === wholeName(store)) {
    const settings = envFile === null ? '' : `; ${envFile.path} gave ${envFile.names.join(', ')}`;
    return { name, status: 'ok', detail: `the store is ${store.name}${settings}` };
  }
  const detail =
    `the store is ${store.name}, and the server at ${url} works on ${worksOn}: the checks below are of that one. Run this ` +
    "command with the server's SETTLED_STORE";
  return { name, status: 'warning', detail };
}

/** Why no server would serve the file that is configured. */
async function checkFile({ store }: Config): Promise<Finding[]> {
  if (store.engine !== 'sqlite') return [];
  const { findDatabase } = await import('../store/sqlite/probe.ts');
  try {
    findDatabase(store.path);
    return [];
  } catch (error) {
    return [{ name: 'database', status: 'failing', detail: (error as Error).message }];
  }
}

/** What was found, as a table. */
export function checkLines(checks: readonly Finding[]): Block[] {
  return table(checks, { status: 'status', check: 'name', detail: 'detail' });
}

export function exitOfChecks(checks: readonly Finding[]): ExitCode {
  return checks.some(({ status }) => status === 'failing') ? EXIT.refused : EXIT.ok;
}

function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error;
  throw error;
}

/** Ends early, and removes what it made, if it is asked to stop. */
async function probe({ store, storeDirect, storeDurability }: Config): Promise<Report> {
  const { probeStore } = await import('../store/open.ts');
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => {});
  const ignore = onStopSignal(() => stopped.reject(transientFault('store_stopped', STOPPED)));
  const release = stayAlive();
  try {
    const checks = await probeStore({
      store,
      direct: storeDirect,
      trustsStorage: storeDurability !== null,
      clock: systemClock,
      newId: randomUUID,
      stopped: stopped.promise,
    });
    return { data: { store: store.name, checks }, lines: checkLines(checks), exit: exitOfChecks(checks) };
  } finally {
    release();
    ignore();
  }
}

const STOPPED = 'The check of the store was stopped. What it had made is removed.';
