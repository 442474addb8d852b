import { inNumber } from '../explain/glossary.ts';
import { type Fault, terminalFault } from '../fault.ts';
import { isPostgresUrl, type PostgresAddress, postgresAddress } from '../store/address.ts';
import type { MoveCheck, Moved, MoveOptions } from '../store/move/move.ts';
import { type Report, readGivenFile } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { inBytes } from '../terminal/output.ts';
import { stayAlive, systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';

export const moveStoreCommand = defineCommand({
  usage: 'move',
  about: 'move the store from SQLite to PostgreSQL, while no server serves it',
  details: [
    'Stop the server, and give this command its settings, on the same machine and as the same user. It copies every row,',
    'compares both sides by digests, and marks the file, which is never served again. Afterwards serve the database: the',
    'command says which settings that needs.',
    'If it is interrupted, the file can be served on, or the same command does the move from the beginning.',
    'To keep the password off the command line, name a file with --to-file, or set PGPASSWORD.',
    'docs/postgres.md has each step, and the exit codes.',
  ],
  examples: [
    'settled move --to-file /etc/settled/store --dry-run',
    'settled move --to postgres://settled@db.example.com/settled?sslmode=verify-full',
  ],
  options: {
    to: { value: 'ADDRESS', about: 'the empty PostgreSQL database: postgres://user:password@host:5432/database' },
    'to-file': { value: 'FILE', about: 'a file that holds that address; - is standard input' },
    'dry-run': { about: 'only say whether the move can be done; the server may serve meanwhile' },
  },
  isLocal: true,
  async run({ options, config, json, print }) {
    const to = targetOf(options.to, options['to-file']);
    const settings = config();
    const { store } = settings;
    if (store.engine === 'postgres') throw notSqlite(store.name);
    const { readKeyIds } = await import('../secrets/key_files.ts');
    const { refuseFolder, refuseMissing } = await import('../store/sqlite/file.ts');
    const { checkMove, moveStore } = await import('../store/move/move.ts');
    refuseFolder(store.path);
    refuseMissing(store.path, 'move');
    const { keyIds } = readKeyIds(settings, { makesFile: false });
    const move: MoveOptions = { path: store.path, to, keyIds, clock: systemClock };
    if (options['dry-run']) return reportOfCheck(await checkMove(move), move);
    const release = stayAlive();
    const onProgress = (words: string) => void (json || print(`${words}\n`));
    try {
      return reportOf(await moveStore({ ...move, onProgress }), move);
    } finally {
      release();
    }
  },
});

function targetOf(given: string | undefined, file: string | undefined): PostgresAddress {
  if ((given === undefined) === (file === undefined)) {
    throw new UsageError('`settled move` needs --to ADDRESS or --to-file FILE, and only one of them.');
  }
  const text = given ?? readGivenFile('to-file', file ?? '').toString();
  if (!isPostgresUrl(text.trim()))
    throw new UsageError('What was given is not an address: write postgres://user@host/database.');
  try {
    return postgresAddress(text.trim());
  } catch (error) {
    throw new UsageError(`The address ${(error as Error).message}.`);
  }
}

function notSqlite(name: string): Fault {
  return terminalFault(
    'configuration_invalid',
    `SETTLED_STORE names ${name}, and a move begins with SQLite. Give this command the settings of the server that serves the ` +
      'SQLite file.',
  );
}

function reportOfCheck({ isServed, bytes, holds }: MoveCheck, { path, to }: MoveOptions): Report {
  const data = { store: to.name, isServed, bytes, holds };
  if (holds === 'store') return { data, lines: [alreadyIn(to.name)] };
  return {
    data,
    lines: [
      `${path} has ${inBytes(bytes)}, and can be moved to ${to.name}.`,
      `${isServed ? 'A process serves it: stop that first.' : 'No process serves it.'} Nothing is served while it is moved.`,
    ],
  };
}

const alreadyIn = (name: string) => `The store is in ${name} already; the move was completed before.`;

function reportOf({ wasMoved, tables }: Moved, { path, to }: MoveOptions): Report {
  const rows = tables.reduce((sum, one) => sum + one.rows, 0);
  const equal = `${inNumber(rows, 'row')} in ${tables.length} tables, each compared by its digest (--json lists them).`;
  const done = wasMoved ? alreadyIn(to.name) : `The store was moved to ${to.name}. ${equal}`;
  return { data: { store: to.name, wasMoved, rows, tables }, lines: [done, '', ...nextSteps(path)] };
}

/** Replicas share no files, so they need what was kept next to the database. */
function nextSteps(path: string): string[] {
  return [
    'Now start settled with the same settings, but with the address of the database in SETTLED_STORE, or in a file that',
    'SETTLED_STORE_FILE names. If these files are there, name copies of them in these settings:',
    `  SETTLED_SECRETS_KEY_FILE: ${path}.key. Without it no secret can be opened`,
    `  SETTLED_OPERATOR_TOKEN_FILE: ${path}.operator-token`,
    'docs/postgres.md has the settings of several replicas. Keep the SQLite file: no settled serves it any more.',
  ];
}
