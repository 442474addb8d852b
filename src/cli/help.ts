import { nearest } from '../nearest.ts';
import { COMMON_OPTIONS, UsageError } from './arguments.ts';
import type { Command, Group, Options, Report } from './command.ts';
import { EXIT_MEANINGS } from './exit.ts';

/** What `settled`, `settled help` and `settled COMMAND --help` print, all from the one table of commands. */

const WIDTH = 110;

export function overview(groups: readonly Group[]): Report {
  const exits = Object.entries(EXIT_MEANINGS);
  return {
    data: { commands: groups.flatMap(({ commands }) => commands.map(describe)), exitCodes: Object.fromEntries(exits) },
    lines: [
      'settled marks the orders of a shop paid: once, durably, and for the right money.',
      '',
      'Usage: settled COMMAND [OPTION...]',
      ...groupLines(groups),
      '',
      'Every command takes --json and --help. `settled help COMMAND` says more about one; `settled --version` says which',
      'settled this is. The configuration is in the environment, SETTLED_*: all commands but `verify` and `help` need the',
      "server's own.",
      '',
      'In a checkout, `settled sandbox` starts a payment-link service of your own to try settled with: `settled sandbox help`.',
      '`settled demo` starts that, settled and a tiny shop together: `settled demo --help`.',
      '',
      'Exit codes:',
      ...exits.map(([code, meaning]) => `  ${code.padStart(2)}  ${meaning}`),
    ],
  };
}

/** Every command under the heading of its group, in columns that go through all groups. */
function groupLines(groups: readonly Group[]): string[] {
  const rows = groups.flatMap(({ commands }) => commands).map(usageRow);
  const indent = indentOf(rows);
  return groups.flatMap(({ heading, commands }) => ['', `${heading}:`, ...columnLines(commands.map(usageRow), indent)]);
}

function usageRow(command: Command): Row {
  return [usageOf(command), command.about];
}

/** Help on one command, or on all that begin with the words given. Throws `UsageError` where there is none. */
export function helpOn(groups: readonly Group[], words: readonly string[]): Report {
  if (words.length === 0) return overview(groups);
  const commands = groups.flatMap((group) => group.commands);
  const asked = words.join(' ');
  const exact = commands.find(({ name }) => name === asked);
  if (exact !== undefined) return { data: describe(exact), lines: commandHelp(exact) };
  const group = commands.filter(({ name }) => name.startsWith(`${asked} `));
  if (group.length === 0) throw noSuchCommand(commands, words);
  const rows = group.map(usageRow);
  const lines = columnLines(rows, indentOf(rows));
  return { data: { commands: group.map(describe) }, lines };
}

/** The error that lists what there is: of a group where its first word is known, else everything. */
export function noSuchCommand(commands: readonly Command[], words: readonly string[]): UsageError {
  const [first = ''] = words;
  const group = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (group.length > 0) {
    const list = group.map(({ name }) => `settled ${name}`).join(', ');
    return new UsageError(`\`settled ${first}\` needs one more word. There are: ${list}.`);
  }
  const names = [...commands.map(({ name }) => name), 'sandbox', 'demo'];
  const what = first === '' ? 'Say which command.' : `There is no command "${first}".`;
  const meant = nearest(first, [...new Set(names.map((name) => name.split(' ', 1)[0] as string))]);
  const guess = meant === null ? '' : ` Did you mean \`settled ${meant}\`?`;
  return new UsageError(`${what}${guess} There are: ${names.join(', ')}. See: settled help`);
}

function commandHelp(command: Command): string[] {
  const options: Options = { ...command.options, ...COMMON_OPTIONS };
  const rows = Object.entries(options).map(
    ([name, { value, choices, about }]): Row => [
      value === undefined ? `--${name}` : `--${name} ${value}`,
      choices === undefined ? about : `${about}: ${choices.join(', ')}`,
    ],
  );
  return [
    `settled ${command.name}: ${command.about}`,
    '',
    `Usage: ${usageOf(command)} [OPTION...]`,
    '',
    ...columnLines(rows, indentOf(rows)),
    ...(command.details === undefined ? [] : ['', ...command.details]),
    ...(command.examples === undefined ? [] : ['', 'Examples:', ...command.examples.map((line) => `  ${line}`)]),
  ];
}

function usageOf({ name, positionals }: Command): string {
  return `settled ${name}${positionals === '' ? '' : ` ${positionals}`}`;
}

type Row = readonly [left: string, right: string];

function indentOf(rows: readonly Row[]): number {
  return Math.max(...rows.map(([left]) => left.length)) + 4;
}

function columnLines(rows: readonly Row[], indent: number): string[] {
  return rows.flatMap(([left, right]) => {
    const [first = '', ...more] = wrap(right, WIDTH - indent);
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

function describe({ name, positionals, about, options }: Command): object {
  return { name, positionals, about, options: { ...options, ...COMMON_OPTIONS } };
}
