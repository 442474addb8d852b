import { readConfig } from '../config/config.ts';
import { type Environment, nearest } from '../config/environment.ts';
import { releaseVersion } from '../release.ts';
import { attention, attentionEnd } from './attention.ts';
import { bulkCancel, bulkCheck, bulkEnd, bulkList, bulkReplay, bulkResend, bulkShow } from './bulk.ts';
import { type Command, defineCommand, optionsOf, type Report, readArguments } from './command.ts';
import { connect } from './connection.ts';
import { eventsList, eventsReplay, eventsShow, rejections, verifyDelivery } from './deliveries.ts';
import { doctor } from './doctor.ts';
import { drill } from './drill.ts';
import { EXIT, EXIT_MEANINGS, type ExitCode, failure, UsageError } from './exit.ts';
import { init } from './init.ts';
import { linksAdd, linksReserve, reconcile } from './links.ts';
import { moveStoreCommand } from './move.ts';
import { noticesList, noticesResend, noticesShow } from './notices.ts';
import { backup, rotateKey, stats, tail } from './operations.ts';
import {
  ordersAdopt,
  ordersCancel,
  ordersCheck,
  ordersList,
  ordersOpen,
  ordersResolve,
  ordersShow,
  why,
} from './orders.ts';
import { failureText, reportText } from './output.ts';
import { audit, openConsole, sessionsEnd, sessionsList, tokensAdd, tokensList, tokensRevoke } from './people.ts';
import { migrateDatabase, serve } from './serve.ts';

/**
 * All commands, how the words of a command line find theirs, and the help. To add a command, define it by `defineCommand`
 * in the file of its noun and name it in `GROUPS`: dispatch, options and help follow from its definition.
 */

/** What a command has of the process in which it runs. */
export type Surroundings = {
  /** Replaces the process's own. */
  readonly environment?: Environment;
  /** To standard output. Resolves when all is written; false if the reader is gone. */
  print(text: string): Promise<boolean>;
  /** To standard error. */
  printError(text: string): void;
};

/** Runs the command of these words to its end; never throws. */
export async function run(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const json = isForProgram(args);
  try {
    const report = await dispatch(args, surroundings);
    if (typeof report === 'number') return report;
    await surroundings.print(reportText(report, json));
    return report.exit ?? EXIT.ok;
  } catch (error) {
    const failed = failure(error);
    surroundings.printError(failureText(failed, json));
    return failed.exit;
  }
}

/** Whether a program reads what these words make the command print. */
export function isForProgram(args: readonly string[]): boolean {
  return args.includes('--json');
}

/** Finds the command by its one or two words, reads what follows them, and runs it. */
async function dispatch(all: readonly string[], { environment, print }: Surroundings): Promise<Report | ExitCode> {
  const first = all.findIndex((word) => word !== '--json');
  const words = first < 0 ? [] : all.slice(first);
  if (words.length === 0) throw noSuchCommand([]);
  if (words[0] === '--help' || words[0] === '-h') return helpOn([]);
  if (words[0] === '--version' || words[0] === '-V') return version();
  const command = findCommand(words);
  if (command === undefined) {
    const group = words.slice(0, 1);
    if (words.includes('--help') || words.includes('-h')) return helpOn(group);
    throw noSuchCommand(group);
  }
  const name = command.name.split(' ');
  const { positionals, options } = readArguments(command, words.slice(name.length));
  const { help, json: _, ...own } = options;
  if (help !== undefined) return helpOn(name);
  const config = () => readConfig(environment);
  return command.run({
    positionals,
    first: positionals[0] ?? '',
    options: own as Record<string, never>,
    json: isForProgram(all),
    config,
    server: () => connect(config()),
    print,
  });
}

function findCommand([first, second]: readonly string[]): Command | undefined {
  const two = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  return two ?? COMMANDS.find(({ name }) => name === first);
}

function version(): Report {
  const version = releaseVersion();
  return { data: { version, node: process.version }, lines: [`settled ${version} (Node ${process.versions.node})`] };
}

const help = defineCommand({
  usage: 'help [COMMAND...]',
  about: 'list the commands, or say how one is used',
  examples: ['settled help orders', 'settled help events replay'],
  run: async ({ positionals }) => helpOn(positionals),
});

/** Every command, in the order and under the headings in which help shows them. */
const GROUPS: Readonly<Record<string, readonly Command[]>> = {
  'Run it': [init, serve, migrateDatabase, moveStoreCommand, doctor, stats, tail, backup, drill, rotateKey, help],
  'Orders and their links': [
    ...[ordersOpen, ordersList, ordersShow, why, ordersCheck, ordersCancel, ordersResolve, ordersAdopt],
    ...[linksReserve, linksAdd, reconcile],
  ],
  'What the service said': [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery],
  'Notices to the shop': [noticesList, noticesShow, noticesResend],
  'What needs a person': [attention, attentionEnd],
  'For many at once': [bulkReplay, bulkResend, bulkCheck, bulkEnd, bulkList, bulkShow, bulkCancel],
  'Who may use it': [openConsole, tokensAdd, tokensList, tokensRevoke, sessionsList, sessionsEnd, audit],
};

export const COMMANDS: readonly Command[] = Object.values(GROUPS).flat();

/** Help on one command, or on all that begin with the words given. Throws `UsageError` if there is none. */
export function helpOn(words: readonly string[]): Report {
  if (words.length === 0) return overview();
  const asked = words.join(' ');
  const exact = COMMANDS.find(({ name }) => name === asked);
  if (exact !== undefined) return { data: describe(exact), lines: commandHelp(exact) };
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${asked} `));
  if (group.length === 0) throw noSuchCommand(words);
  return { data: { commands: group.map(describe) }, lines: columnLines(group.map(usageRow)) };
}

function overview(): Report {
  const exits = Object.entries(EXIT_MEANINGS);
  const rows = COMMANDS.map(usageRow);
  return {
    data: { commands: COMMANDS.map(describe), exitCodes: Object.fromEntries(exits) },
    lines: [
      'settled marks the orders of a shop paid: once, durably, and for the right money.',
      '',
      'Usage: settled COMMAND [OPTION...]',
      ...Object.entries(GROUPS).flatMap(([heading, group]) => [
        '',
        `${heading}:`,
        ...columnLines(group.map(usageRow), rows),
      ]),
      '',
      'Every command takes --json and --help. `settled help COMMAND` says more about one.',
      '`settled --version` says which settled this is.',
      "The configuration is in the environment, SETTLED_*: every command except `verify` and `help` needs the server's own.",
      '',
      'In a checkout, `settled sandbox` starts a payment-link service of your own to try settled with:',
      '`settled sandbox help`. `settled demo` starts that, settled and a tiny shop together: `settled demo --help`.',
      '',
      'Exit codes:',
      ...exits.map(([code, meaning]) => `  ${code.padStart(2)}  ${meaning}`),
    ],
  };
}

/** The error that lists the commands: those of a group if its first word is known, else all. */
function noSuchCommand([first = '']: readonly string[]): UsageError {
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length > 0) {
    const list = group.map(({ name }) => `settled ${name}`).join(', ');
    return new UsageError(`\`settled ${first}\` needs one more word. There are: ${list}.`);
  }
  const names = [...COMMANDS.map(({ name }) => name), 'sandbox', 'demo'];
  const what = first === '' ? 'Say which command.' : `There is no command "${first}".`;
  const meant = nearest(first, [...new Set(names.map((name) => name.split(' ', 1)[0] as string))]);
  const guess = meant === null ? '' : ` Did you mean \`settled ${meant}\`?`;
  return new UsageError(`${what}${guess} There are: ${names.join(', ')}. See: settled help`);
}

function commandHelp(command: Command): string[] {
  const { details, examples } = command;
  const { name, about, options } = describe(command);
  const rows = Object.entries(options).map(([option, { value = '', choices, about }]): Row => {
    return [`--${option} ${value}`.trimEnd(), choices === undefined ? about : `${about}: ${choices.join(', ')}`];
  });
  return [
    `settled ${name}: ${about}`,
    '',
    `Usage: ${usageOf(command)} [OPTION...]`,
    '',
    ...columnLines(rows),
    ...(details === undefined ? [] : ['', ...details]),
    ...(examples === undefined ? [] : ['', 'Examples:', ...examples.map((line) => `  ${line}`)]),
  ];
}

/** A command for a program. */
function describe(command: Command) {
  const { name, positionals, about } = command;
  const options = Object.entries(optionsOf(command)).map(([option, { value, choices, needed, about }]) => {
    return [option, { value, choices, about: needed === undefined ? about : `${about}; needed` }] as const;
  });
  return { name, positionals, about, options: Object.fromEntries(options) };
}

function usageOf({ name, positionals }: Command): string {
  return `settled ${name} ${positionals}`.trimEnd();
}

type Row = readonly [left: string, right: string];

function usageRow(command: Command): Row {
  return [usageOf(command), command.about];
}

const COLUMNS = 110;

/** Rows in two columns, which are aligned with those of `all`. */
function columnLines(rows: readonly Row[], all: readonly Row[] = rows): string[] {
  const indent = Math.max(...all.map(([left]) => left.length)) + 4;
  return rows.flatMap(([left, right]) => {
    const [first = '', ...more] = wrap(right, COLUMNS - indent);
    return [`  ${left.padEnd(indent - 2)}${first}`, ...more.map((line) => ' '.repeat(indent) + line)];
  });
}

/** As many words on a line as fit. */
function wrap(text: string, columns: number): string[] {
  const breaks = new RegExp(`(.{1,${columns}})(?: |$)`, 'g');
  return text.replace(breaks, '$1\n').trimEnd().split('\n');
}
