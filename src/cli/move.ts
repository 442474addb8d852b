import type { Finding } from '../api/doctor_store.ts';
import type { Config } from '../config/config.ts';
import { inNumber } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import {
  isPostgresUrl,
  operatorTokenPath,
  type PostgresAddress,
  postgresAddress,
  wholeName,
} from '../store/address.ts';
import type { MoveAddress, MoveCheck } from '../store/move/check.ts';
import type { Moved, MoveProgress } from '../store/move/move.ts';
import { type Clock, inWords, stayAlive, systemClock } from '../work/clock.ts';
import { defineCommand, type Report, readGivenFile } from './command.ts';
import type { ServerApi } from './connection.ts';
import { checkLines, exitOfChecks } from './doctor.ts';
import { UsageError } from './exit.ts';
import { inBytes } from './output.ts';
import { openProgress } from './progress.ts';
import type { Screen } from './screen.ts';

export const moveStoreCommand = defineCommand({
  usage: 'move',
  about: 'move the store from SQLite to PostgreSQL, while the server serves until the last moments',
  details: [
    'Give it the settings of the server that serves the SQLite file, on the same machine and as the same user.',
    'It copies while the server serves; then the server answers 503 while the rest is copied and compared.',
    'If it is interrupted, the server serves on, or the same command completes the move. The file is never served again',
    'after that. Afterwards serve the database: the command says which settings that needs.',
    'To keep the password off the command line, name a file with --to-file, or set PGPASSWORD.',
    'Exit codes: 1 --check found something wrong; 69 PostgreSQL or the server cannot be reached; 73 the database holds',
    'something else; 75 another move, or a server that does not let go; 78 the settings. docs/postgres.md has all of it.',
  ],
  examples: [
    'settled move --to-file /etc/settled/store --check',
    'settled move --to postgres://settled@db.example.com/settled?sslmode=verify-full',
  ],
  options: {
    to: { value: 'ADDRESS', about: 'the empty PostgreSQL database: postgres://user:password@host:5432/database' },
    'to-file': { value: 'FILE', about: 'a file that holds that address; - is standard input' },
    check: { about: 'only say whether the move can begin, and how long it will take' },
    'dry-run': { about: 'copy and compare, without stopping the server; a move continues from there' },
  },
  isLocal: true,
  async run({ options, config, json, server, screen, print }) {
    const to = targetOf(options.to, options['to-file']);
    const settings = config();
    const { store } = settings;
    if (store.engine === 'postgres') throw notSqlite(store.name);
    if (options.check && options['dry-run']) throw new UsageError('--check and --dry-run are given: give one of them.');
    const { readKeyIds } = await import('../secrets/key_files.ts');
    const { takeLock, checkMove } = await import('../store/move/check.ts');
    takeLock(store.path)?.close();
    const { keyIds } = readKeyIds(settings, { makesFile: false });
    const address: MoveAddress = {
      path: store.path,
      to,
      keyIds,
      isRehearsal: options['dry-run'] === true,
      clock: systemClock,
    };
    if (options.check) return checked(await checkMove(address), to, address, () => checkServer(server(), store.path));
    const { moveStore } = await import('../store/move/move.ts');
    const release = stayAlive();
    const progress = showSteps(print, screen, systemClock);
    const forget = sayHowToGoOn();
    try {
      const moved = await moveStore({
        ...address,
        checkServer: () => checkServer(server(), store.path),
        askToLetGo: async () => void (await server().post('/v1/admin/let-go')),
        onProgress: json ? () => {} : progress.onProgress,
      });
      return reportOf(moved, { to, settings, isRehearsal: address.isRehearsal });
    } finally {
      forget();
      await progress.end();
      release();
    }
  },
});

const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const GO_ON =
  'settled: The move was interrupted, and nothing is lost. The same command continues it. Until then the server serves on, ' +
  'unless the file is marked as moved already: see If a move is interrupted in docs/postgres.md.';

/** Before a person's Ctrl-C ends the process. Returns what takes that back. */
function sayHowToGoOn(): () => void {
  const say = (signal: NodeJS.Signals) => {
    forget();
    process.stderr.write(`\n${GO_ON}\n`, () => process.kill(process.pid, signal));
  };
  const forget = () => {
    for (const signal of STOPPING) process.off(signal, say);
  };
  for (const signal of STOPPING) process.on(signal, say);
  return forget;
}

function targetOf(given: string | undefined, file: string | undefined): PostgresAddress {
  if ((given === undefined) === (file === undefined)) {
    throw new UsageError('`settled move` needs --to ADDRESS or --to-file FILE, and only one of them.');
  }
  const [name, text] =
    given === undefined
      ? [
          'to-file',
          readGivenFile('to-file', file ?? '')
            .toString()
            .trim(),
        ]
      : ['to', given];
  if (!isPostgresUrl(text)) throw new UsageError(`--${name} is not an address: write postgres://user@host/database.`);
  try {
    return postgresAddress(text);
  } catch (error) {
    throw new UsageError(`--${name} ${(error as Error).message}.`);
  }
}

function notSqlite(name: string): Fault {
  return new Fault(
    'terminal',
    'configuration_invalid',
    `SETTLED_STORE names ${name}, and a move begins with SQLite. Give this command the settings of the server that serves the ` +
      'SQLite file.',
  );
}

/** Throws unless a server works on this file and knows our token. */
async function checkServer(server: ServerApi, path: string): Promise<void> {
  const { store } = await server.get<{ store: string }>('/v1/admin/doctor');
  const mine = wholeName({ engine: 'sqlite', path, name: path });
  if (store === mine) return;
  throw new Fault(
    'terminal',
    'configuration_invalid',
    `${mine} is being served, but the server at ${server.url} works on ${store}. Give this command the SETTLED_OPERATOR_LISTEN of ` +
      'the server that serves the file.',
  );
}

/** What PostgreSQL needs of room, as a multiple of the SQLite file: docs/operations.md, The machine. */
const ROOM = 1.5;
/** Of a file on the same machine as the server, measured with a million events: docs/proof.md. */
const BYTES_A_SECOND = { all: 12_000_000, stop: 80_000_000 } as const;
/** To end what is in hand, and to start a replica. */
const HAND_OVER_SECONDS = 3;

async function checked(
  { isServed, source, target }: MoveCheck,
  to: PostgresAddress,
  address: MoveAddress,
  askServer: () => Promise<void>,
): Promise<Report> {
  const checks: Finding[] = [
    finding(
      'source',
      source,
      ({ bytes }) =>
        `${address.path} has ${inBytes(bytes)}; ${isServed ? 'a process serves it' : 'no process serves it'}`,
    ),
    finding('target', target, ({ version, holds }) => `${to.name} is PostgreSQL ${version} and ${HOLDS[holds]}`),
    ...(source instanceof Fault ? [] : needs(source)),
    ...(isServed ? [await askServer().then(serverFound, (error: Error) => finding('server', error, String))] : []),
  ];
  return { data: { checks }, lines: checkLines(checks), exit: exitOfChecks(checks) };
}

const HOLDS = {
  nothing: 'is empty',
  copy: 'has a copy of this store, which a move continues',
  rehearsal: 'has a rehearsal of this move, which the move continues',
  store: 'has this store already: the move is complete',
} as const;

function finding<T>(name: string, found: T, say: (found: Exclude<T, Error>) => string): Finding {
  if (found instanceof Error) return { name, status: 'failing', detail: found.message };
  return { name, status: 'ok', detail: say(found as Exclude<T, Error>) };
}

function needs({ bytes }: { bytes: number }): Finding[] {
  const stop = HAND_OVER_SECONDS + bytes / BYTES_A_SECOND.stop;
  const all = bytes / BYTES_A_SECOND.all + stop;
  const [time, stopTime] = [all, stop].map((seconds) => inWords(Math.ceil(seconds) * 1000));
  return [
    {
      name: 'room',
      status: 'ok',
      detail: `the database needs about ${inBytes(bytes * ROOM)}: see that its server has it`,
    },
    { name: 'time', status: 'ok', detail: `about ${time} on one machine; intake stops for about ${stopTime} of it` },
  ];
}

function serverFound(): Finding {
  return { name: 'server', status: 'ok', detail: 'settled answers, and will let go of the file' };
}

type Reported = { to: PostgresAddress; settings: Config; isRehearsal: boolean };

function reportOf({ wasMoved, tables, stoppedMs }: Moved, { to, settings, isRehearsal }: Reported): Report {
  const rows = tables.reduce((sum, one) => sum + one.rows, 0);
  const data = { store: to.name, isRehearsal, wasMoved, rows, stoppedMs, tables };
  if (wasMoved) {
    const lines = [`The store is in ${to.name} already; the move was completed before.`, '', ...nextSteps(settings)];
    return { data, lines };
  }
  const equal = `${inNumber(rows, 'row')} in ${tables.length} tables, each compared by its digest (--json lists them).`;
  if (isRehearsal) {
    const lines = [
      `Rehearsed: ${to.name} has a copy. ${equal}`,
      'The server serves on, and no replica serves that copy.',
    ];
    return {
      data,
      lines: [...lines, 'The same command without --dry-run moves the store, and copies only what differs by then.'],
    };
  }
  const stop = stoppedMs === null ? [] : [`Intake stopped for ${inWords(stoppedMs)} so far, until a replica serves.`];
  return { data, lines: [`The store was moved to ${to.name}. ${equal}`, ...stop, '', ...nextSteps(settings)] };
}

/** Replicas share no files, so they need what was kept next to the database. */
function nextSteps({ store, secretsKey, operatorToken }: Config): string[] {
  const key = `${store.name}.key`;
  const path = store.engine === 'sqlite' ? operatorTokenPath(store.path) : '';
  return [
    'Now stop the server that served the file, if it still runs, and start one with the same settings but these:',
    '  SETTLED_STORE or SETTLED_STORE_FILE: the address of the database',
    ...(secretsKey === null
      ? [`  SETTLED_SECRETS_KEY_FILE: a file with what ${key} holds. Without it no secret can be opened`]
      : []),
    ...(operatorToken === null ? [`  SETTLED_OPERATOR_TOKEN_FILE: a file with what ${path} holds`] : []),
    'docs/postgres.md has the settings of several replicas. Keep the SQLite file: no settled serves it any more.',
  ];
}

const STEPS = {
  copying: 'copying ahead',
  comparing: 'comparing, and copying what changed',
  asking: 'asking the server to let go of the file',
  stopped: 'intake is stopped: comparing and copying the rest',
  opened: 'the database is open to replicas',
} as const;
/** Before this, the time that a step takes cannot be foreseen. */
const FORESEEN_AFTER_MS = 1_000;

/** Shows how far a move is: what each step counts, and in between a line for what takes no time. */
function showSteps(print: (text: string) => Promise<boolean>, screen: Screen, clock: Clock) {
  const line = openProgress(print, screen, clock);
  let [step, sinceMs] = ['', 0];
  const show = async (progress: MoveProgress): Promise<void> => {
    const nowMs = clock.monotonicMs();
    if (progress.step !== step) {
      [step, sinceMs] = [progress.step, nowMs];
      await line.end();
    }
    if (!('rows' in progress)) return void (await print(`${STEPS[progress.step]}\n`));
    const { rows, rowsMax, copied } = progress;
    const words = `${STEPS[progress.step]}: ${rows} of about ${rowsMax} rows, ${copied} copied`;
    const isForeseen = rows > 0 && nowMs - sinceMs >= FORESEEN_AFTER_MS;
    const leftMs = isForeseen ? ((nowMs - sinceMs) / rows) * Math.max(0, rowsMax - rows) : null;
    await line.show({ done: rows, all: rowsMax, words, leftMs });
  };
  // The move does not wait for a terminal: what it says is written in its order.
  let written = Promise.resolve();
  const after = (write: () => Promise<void>) => {
    written = written.then(write).catch(() => {});
    return written;
  };
  return { onProgress: (progress: MoveProgress): void => void after(() => show(progress)), end: () => after(line.end) };
}
