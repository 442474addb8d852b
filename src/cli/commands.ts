import { readConfig } from '../config/config.ts';
import { type Environment, nearest, targetEnvironment } from '../config/environment.ts';
import { releaseVersion } from '../release.ts';
import { type Clock, systemClock } from '../work/clock.ts';
import { attention, attentionEnd } from './attention.ts';
import { bulkAccept, bulkCancel, bulkCheck, bulkEnd, bulkList, bulkReplay, bulkResend, bulkShow } from './bulk.ts';
import {
  type Command,
  defineCommand,
  didYouMean,
  inWordsOf,
  LEADING_OPTIONS,
  type Report,
  readArguments,
} from './command.ts';
import { completionScript, SHELLS } from './completion.ts';
import { showConfig } from './config.ts';
import { connect, connectElsewhere } from './connection.ts';
import { eventsList, eventsReplay, eventsShow, rejections, verifyDelivery } from './deliveries.ts';
import { doctor } from './doctor.ts';
import { drill } from './drill.ts';
import { EXIT, type ExitCode, failure, UsageError } from './exit.ts';
import { commandHelp, type Groups, groupHelp, overview, PROGRAMS } from './help.ts';
import { init } from './init.ts';
import { linksAdd, linksReserve } from './links.ts';
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
import { failureText, reportText, verbatim } from './output.ts';
import { audit, openConsole, sessionsEnd, sessionsList, tokensAdd, tokensList, tokensRevoke } from './people.ts';
import { reconcile } from './reconcile.ts';
import { COLOUR_CHOICES, type ColourChoice, PIPE, type Screen, screenOf } from './screen.ts';
import { migrateDatabase, serve } from './serve.ts';
import { type ElsewhereOptions, hasTarget, readTarget } from './target.ts';

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
  /** What `print` shows on; a pipe if left out. */
  readonly screen?: Screen;
  readonly errorScreen?: Screen;
  /** By which a command waits; the system's if left out. */
  readonly clock?: Clock;
};

/** Runs the command of these words to its end; never throws. */
export async function run(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const json = isForProgram(args);
  try {
    const report = await dispatch(args, surroundings);
    if (typeof report === 'number') return report;
    await surroundings.print(reportText(report, json, surroundings.screen));
    return report.exit ?? EXIT.ok;
  } catch (error) {
    const failed = failure(error);
    surroundings.printError(failureText(failed, json, surroundings.errorScreen));
    return failed.exit;
  }
}

/** Whether a program reads what these words make the command print. */
export function isForProgram(args: readonly string[]): boolean {
  return args.includes('--json');
}

/** The screens of this process, with the colours that these words ask for; what they cannot mean is reported later. */
export function screensOf(args: readonly string[]): Pick<Required<Surroundings>, 'screen' | 'errorScreen'> {
  const at = args.findIndex((word) => /^--color(=|$)/.test(word));
  const given = args[at]?.startsWith('--color=') ? args[at].slice('--color='.length) : args[at + 1];
  const choice = COLOUR_CHOICES.find((one) => at >= 0 && one === given) ?? ('auto' satisfies ColourChoice);
  return {
    screen: screenOf(process.stdout, choice, systemClock),
    errorScreen: screenOf(process.stderr, choice, systemClock),
  };
}

/** Finds the command by its one or two words, reads what follows them, and runs it. */
async function dispatch(all: readonly string[], surroundings: Surroundings): Promise<Report | ExitCode> {
  const { environment, print, screen = PIPE, clock = systemClock } = surroundings;
  const { before, words } = splitLeading(all);
  if (words.length === 0 || words[0] === '--help' || words[0] === '-h') return helpOn([]);
  if (words[0] === '--version' || words[0] === '-V') return versionReport();
  const command = findCommand(words);
  const isSecondWord = words[1] !== undefined && !words[1].startsWith('-');
  if (command?.positionals === '' && command.name === words[0] && isSecondWord && secondWords(words[0]).length > 0) {
    throw noSuchCommand(words);
  }
  if (command === undefined) {
    if (words.includes('--help') || words.includes('-h')) return helpOn(words.slice(0, 1));
    throw noSuchCommand(words);
  }
  const name = command.name.split(' ');
  const { positionals, options } = readArguments(command, [...before, ...words.slice(name.length)]);
  if (options.help !== undefined) return helpOn(name);
  const own = Object.entries(options).filter(([option]) => Object.hasOwn(command.options, option));
  const config = () => readConfig(environment);
  const around = targetEnvironment(environment);
  const target = options as ElsewhereOptions;
  const isElsewhere = () => hasTarget(target, around);
  const call: Parameters<Command['run']>[0] = {
    positionals,
    first: positionals[0] ?? '',
    // A list makes filters of all that it is given.
    options: Object.fromEntries(own) as Record<string, never>,
    json: isForProgram(all),
    environment,
    config,
    isElsewhere,
    server: () =>
      isElsewhere() && !command.isLocal ? connectElsewhere(readTarget(target, around)) : connect(config()),
    screen,
    clock,
    print,
  };
  try {
    return await command.run(call);
  } catch (error) {
    throw inWordsOf(command, error);
  }
}

/** Options that every command takes may also stand before it. `--json` counts wherever it is. */
function splitLeading(all: readonly string[]): { before: string[]; words: readonly string[] } {
  let end = 0;
  for (;;) {
    const [name = '', value] = (all[end] ?? '').split('=', 2);
    const option = name.startsWith('--') && name !== '--help' ? LEADING_OPTIONS[name.slice(2)] : undefined;
    if (option === undefined) break;
    end += option.value === undefined || value !== undefined ? 1 : 2;
  }
  return { before: all.slice(0, end).filter((word) => word !== '--json'), words: all.slice(end) };
}

function findCommand([first, second]: readonly string[]): Command | undefined {
  const two = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  return two ?? COMMANDS.find(({ name }) => name === first);
}

const version = defineCommand({
  usage: 'version',
  about: 'say which settled this is, and which Node runs it',
  isLocal: true,
  run: async () => versionReport(),
});

function versionReport(): Report {
  const version = releaseVersion();
  return { data: { version, node: process.version }, lines: [`settled ${version} (Node ${process.versions.node})`] };
}

const help = defineCommand({
  usage: 'help [COMMAND...]',
  about: 'list the commands, or say how one is used',
  examples: ['settled help orders', 'settled help events replay'],
  isLocal: true,
  run: async ({ positionals }) => helpOn(positionals),
});

const completion = defineCommand({
  usage: 'completion SHELL',
  about: 'print what lets your shell complete commands and options: bash, zsh or fish',
  details: [
    'Add a line to the configuration of your shell:',
    '  bash, in ~/.bashrc: source <(settled completion bash)',
    '  zsh, in ~/.zshrc, after compinit: source <(settled completion zsh)',
    '  fish, in ~/.config/fish/config.fish: settled completion fish | source',
  ],
  examples: ['settled completion bash'],
  isLocal: true,
  async run({ first }) {
    const shell = SHELLS.find((one) => one === first);
    if (shell === undefined) {
      const guess = didYouMean(first, SHELLS);
      throw new UsageError(`There is no completion for "${first}".${guess} There is one for: ${SHELLS.join(', ')}.`);
    }
    const lines = completionScript(shell, { commands: COMMANDS, programs: PROGRAMS });
    return { data: { shell, script: `${lines.join('\n')}\n` }, lines: lines.map(verbatim) };
  },
});

/** Every command, in the order and under the headings in which help shows them. */
const GROUPS: Groups = {
  'Run it': [init, serve, migrateDatabase, moveStoreCommand, showConfig, doctor, stats, tail, backup, drill, rotateKey],
  'Orders and their links': [
    ...[ordersOpen, ordersList, ordersShow, why, ordersCheck, ordersCancel, ordersResolve, ordersAdopt],
    ...[linksReserve, linksAdd, reconcile],
  ],
  'What the service said': [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery],
  'Notices to the shop': [noticesList, noticesShow, noticesResend],
  Attention: [attention, attentionEnd],
  'For many at once': [bulkReplay, bulkResend, bulkCheck, bulkAccept, bulkEnd, bulkList, bulkShow, bulkCancel],
  'Who may use it': [openConsole, tokensAdd, tokensList, tokensRevoke, sessionsList, sessionsEnd, audit],
  'The command itself': [help, version, completion],
};

export const COMMANDS: readonly Command[] = Object.values(GROUPS).flat();

/** Help on one command, or on all that begin with the words given. Throws `UsageError` if there is none. */
export function helpOn(words: readonly string[]): Report {
  if (words.length === 0) return overview(GROUPS);
  const asked = words.join(' ');
  const exact = COMMANDS.find(({ name }) => name === asked);
  if (exact !== undefined) return commandHelp(exact);
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${asked} `));
  if (group.length === 0) throw noSuchCommand(words);
  return groupHelp(group);
}

/** The error about words that are no command. It names what was probably meant, or what the first word can begin. */
function noSuchCommand(words: readonly string[]): UsageError {
  const [first = '', next] = words;
  const second = next?.startsWith('-') ? undefined : next;
  const group = COMMANDS.filter(({ name }) => `${name} `.startsWith(`${first} `)).map(({ name }) => name);
  if (group.length > 0) {
    const list = group.map((name) => `settled ${name}`).join(', ');
    if (second === undefined) return new UsageError(`\`settled ${first}\` needs one more word. There are: ${list}.`);
    const meant = nearest(second, secondWords(first));
    const guess = meant === null ? '' : ` Did you mean \`settled ${first} ${meant}\`?`;
    return new UsageError(`There is no command \`settled ${first} ${second}\`.${guess} There are: ${list}.`);
  }
  return new UsageError(`There is no command "${first}".${guessOf(first, second)} See: settled help`);
}

/** Of two words perhaps both are nearly right, or in the wrong order; else the first is one that is nearly right. */
function guessOf(first: string, second: string | undefined): string {
  const names = [...COMMANDS.map(({ name }) => name), ...Object.keys(PROGRAMS)];
  const swapped = names.find((name) => name === `${second} ${first}`);
  if (swapped !== undefined) return ` Did you mean \`settled ${swapped}\`?`;
  const beginnings = [...new Set(names.map((name) => name.split(' ', 1)[0] as string))];
  const meant = nearest(first, beginnings);
  if (meant === null) return '';
  const rest = second === undefined ? null : nearest(second, secondWords(meant));
  return ` Did you mean \`settled ${rest === null ? meant : `${meant} ${rest}`}\`?`;
}

function secondWords(first: string): string[] {
  return COMMANDS.map(({ name }) => name.split(' ')).flatMap(([one, two]) => (one === first && two ? [two] : []));
}
