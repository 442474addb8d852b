import { COMMON_OPTIONS, UsageError } from './arguments.ts';
import type { Command, Options, Report } from './command.ts';
import { EXIT_MEANINGS } from './exit.ts';

/** What `settled`, `settled help` and `settled COMMAND --help` print, all from the one table of commands. */

const WIDTH = 110;

export function overview(commands: readonly Command[]): Report {
  const rows = commands.map((command) => [usageOf(command), command.about] as const);
  const exits = Object.entries(EXIT_MEANINGS);
  return {
    data: {
      commands: commands.map(describe),
      exitCodes: Object.fromEntries(exits),
    },
    lines: [
      'settled marks the orders of a shop paid: once, durably, and for the right money.',
      '',
      'Usage: settled COMMAND [OPTION...]',
      '',
      ...commandLines(rows),
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

/** Help on one command, or on all that begin with the words given. Throws `UsageError` where there is none. */
export function helpOn(commands: readonly Command[], words: readonly string[]): Report {
  if (words.length === 0) return overview(commands);
  const asked = words.join(' ');
  const exact = commands.find(({ name }) => name === asked);
  if (exact !== undefined) return { data: describe(exact), lines: commandHelp(exact) };
  const group = commands.filter(({ name }) => name.startsWith(`${asked} `));
  if (group.length === 0) throw noSuchCommand(commands, words);
  const lines = commandLines(group.map((command) => [usageOf(command), command.about] as const));
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
  const list = [...commands.map(({ name }) => name), 'sandbox', 'demo'].join(', ');
  const what = first === '' ? 'Say which command.' : `There is no command "${first}".`;
  return new UsageError(`${what} There are: ${list}. See: settled help`);
}

function commandHelp(command: Command): string[] {
  const options: Options = { ...command.options, ...COMMON_OPTIONS };
  const rows = Object.entries(options).map(
    ([name, { value, choices, about }]) =>
      [
        value === undefined ? `--${name}` : `--${name} ${value}`,
        choices === undefined ? about : `${about}: ${choices.join(', ')}`,
      ] as const,
  );
  return [
    `settled ${command.name}: ${command.about}`,
    '',
    `Usage: ${usageOf(command)} [OPTION...]`,
    '',
    ...commandLines(rows),
    ...(command.details === undefined ? [] : ['', ...command.details]),
  ];
}

function usageOf({ name, positionals }: Command): string {
  return `settled ${name}${positionals === '' ? '' : ` ${positionals}`}`;
}

function commandLines(rows: readonly (readonly [string, string])[]): string[] {
  const indent = Math.max(...rows.map(([left]) => left.length)) + 4;
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
