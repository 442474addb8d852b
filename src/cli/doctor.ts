import { randomUUID } from 'node:crypto';
import type { Finding } from '../api/doctor_store.ts';
import type { Config } from '../config/config.ts';
import { inNumber } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import { wholeName } from '../store/address.ts';
import type { Probed } from '../store/trial.ts';
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
    'The exit code is 1 if something is failing, 69 if the server cannot be reached.',
    '--store needs no server: it looks at the database or the disk, applies the migrations in a schema or a file of its own,',
    'takes an order through that, and removes it. It may run beside replicas that serve. The exit code is 1 if something is',
    'missing, 69 if PostgreSQL cannot be reached, and 0 if something is only degraded: settled works with that, as',
    'docs/postgres.md describes.',
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
  const { probeFile } = await import('../store/sqlite/probe.ts');
  const { verdict, found: detail } = await probeFile(store.path);
  return verdict === 'ok' ? [] : [{ name: 'database', status: 'failing', detail }];
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
  const stop = new AbortController();
  const ignore = onStopSignal(() => stop.abort());
  const release = stayAlive();
  try {
    const probed = await probeStore({
      store,
      direct: storeDirect,
      trustsStorage: storeDurability !== null,
      clock: systemClock,
      newId: randomUUID,
      signal: stop.signal,
    });
    return probeReport(store.name, probed);
  } finally {
    release();
    ignore();
  }
}

function probeReport(store: string, capabilities: readonly Probed[]): Report {
  const count = (verdict: Probed['verdict']) => capabilities.filter((one) => one.verdict === verdict).length;
  const [missing, degraded] = [count('missing'), count('degraded')];
  const sum = `${inNumber(capabilities.length, 'check', 'checks')} of ${store}: ${missing} missing, ${degraded} degraded.`;
  const rest = missing === 0 ? [] : ['The checks that would follow were not made.'];
  return {
    data: { store, capabilities },
    lines: [...table(capabilities, { verdict: 'verdict', check: 'capability', found: 'found' }), '', sum, ...rest],
    exit: missing === 0 ? EXIT.ok : EXIT.refused,
  };
}
