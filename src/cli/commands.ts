import { nearest } from '../config/suggest.ts';
import { attention, attentionEnd } from './attention.ts';
import { type Command, defineCommand, type Option, optionsOf, type Report } from './command.ts';
import { rejections, verifyDelivery } from './deliveries.ts';
import { eventsList, eventsReplay, eventsShow } from './events.ts';
import { EXIT_MEANINGS, UsageError } from './exit.ts';
import { linksAdd, linksReserve, reconcile } from './links.ts';
import { backup, migrateDatabase, rotateKey } from './maintenance.ts';
import { doctor, stats, tail } from './monitoring.ts';
import { noticesList, noticesResend, noticesShow } from './notices.ts';
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
import { serve } from './serve.ts';

/**
 * The table of all commands, and the help that is made from it. To add a command, define it by `defineCommand` in the
 * file of its noun and name it in `GROUPS`: dispatch, options and help follow from its definition.
 */

const help = defineCommand({
  name: 'help',
  positionals: '[COMMAND...]',
  about: 'list the commands, or say how one is used',
  examples: ['settled help orders', 'settled help events replay'],
  run: async ({ positionals }) => helpOn(positionals),
});

/** Commands that a person looks for together. */
type Group = { readonly heading: string; readonly commands: readonly Command[] };

/** Every command, in the order and under the headings in which help shows them. */
const GROUPS: readonly Group[] = [
  { heading: 'Run it', commands: [serve, migrateDatabase, doctor, stats, tail, backup, rotateKey, help] },
  {
    heading: 'Orders and their links',
    commands: [
      ...[ordersOpen, ordersList, ordersShow, why, ordersCheck, ordersCancel, ordersResolve, ordersAdopt],
      ...[linksReserve, linksAdd, reconcile],
    ],
  },
  { heading: 'What the service said', commands: [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery] },
  { heading: 'Notices to the shop', commands: [noticesList, noticesShow, noticesResend] },
  { heading: 'What needs a person', commands: [attention, attentionEnd] },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);

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
      ...GROUPS.flatMap(({ heading, commands }) => ['', `${heading}:`, ...columnLines(commands.map(usageRow), rows)]),
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
export function noSuchCommand([first = '']: readonly string[]): UsageError {
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
  const { name, about, details, examples } = command;
  const rows = Object.entries(optionsOf(command)).map(([option, given]): Row => {
    const { value, choices } = given;
    const meaning = aboutOption(given);
    return [
      value === undefined ? `--${option}` : `--${option} ${value}`,
      choices === undefined ? meaning : `${meaning}: ${choices.join(', ')}`,
    ];
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
function describe(command: Command): object {
  const { name, positionals, about } = command;
  const options = Object.entries(optionsOf(command)).map(([option, given]) => {
    const { value, choices } = given;
    return [option, { value, choices, about: aboutOption(given) }];
  });
  return { name, positionals, about, options: Object.fromEntries(options) };
}

function aboutOption({ about, needed }: Option): string {
  return needed === undefined ? about : `${about}; needed`;
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

function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
