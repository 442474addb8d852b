import { clock } from './clock.ts';
import { COMMON_OPTIONS, type Command, defineCommand, type Options, type Report, readArguments } from './command.ts';
import { deliveries, events, resend } from './deliveries.ts';
import { EXIT, EXIT_MEANINGS, failure, UsageError } from './exit.ts';
import { faults } from './faults.ts';
import { complete, disable, dispute, enable, expire, links, pay, refund, win } from './links.ts';
import { play } from './play.ts';
import { serve } from './serve.ts';
import { silences } from './switches.ts';

/** How a command ends, and what it says then. */
export type Ended = { code: number; stdout: string; stderr: string };

/** Runs the command of these words to its end; throws never. */
export async function run(args: readonly string[]): Promise<Ended> {
  const isForProgram = args.includes('--json');
  try {
    const report = await dispatch(args);
    if (report === null) return { code: EXIT.ok, stdout: '', stderr: '' };
    const told = isForProgram ? JSON.stringify(report.data) : report.lines.join('\n');
    return { code: report.exit ?? EXIT.ok, stdout: `${told}\n`, stderr: '' };
  } catch (error) {
    const failed = failure(error);
    const told = isForProgram ? JSON.stringify({ error: failed }) : failed.message;
    return { code: failed.exit, stdout: '', stderr: `${told}\n` };
  }
}

/** Without a word that names another, the command is `serve`. */
async function dispatch(args: readonly string[]): Promise<Report | null> {
  const [first = 'serve'] = args;
  if (first === '--help' || first === '-h') return helpOn(COMMANDS, '');
  const isNamed = !first.startsWith('-');
  const name = isNamed ? first : 'serve';
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw noSuchCommand(COMMANDS, name);
  const { positionals, options } = readArguments(command, isNamed ? args.slice(1) : args);
  if (options.help === true) return helpOn(COMMANDS, name);
  return command.run({ first: positionals[0] ?? '', options: options as Record<string, never> });
}

const help = defineCommand({
  name: 'help',
  positional: '[COMMAND]',
  about: 'say what commands there are, or how one is used',
  options: {},
  run: async ({ first }) => helpOn(COMMANDS, first),
});

/** Every command of `settled sandbox`, in the order in which help shows them. */
export const COMMANDS: readonly Command[] = [
  serve,
  links,
  pay,
  complete,
  refund,
  dispute,
  win,
  expire,
  disable,
  enable,
  events,
  deliveries,
  resend,
  clock,
  faults,
  silences,
  play,
  help,
];

/** What `settled sandbox help` prints: on one command where a name is given, else on all. Throws `UsageError`. */
export function helpOn(commands: readonly Command[], name: string): Report {
  if (name === '') return overview(commands);
  const command = commands.find((known) => known.name === name);
  if (command === undefined) throw noSuchCommand(commands, name);
  const options: Options = { ...command.options, ...COMMON_OPTIONS };
  const rows = Object.entries(options).map(
    ([option, { value, about, isRepeatable }]) =>
      [
        `--${option}${value === undefined ? '' : ` ${value}`}`,
        isRepeatable === true ? `${about}; may be given several times` : about,
      ] as const,
  );
  const { details = [] } = command;
  const usage = `${usageOf(command)} [OPTION...]: ${command.about}`;
  const lines = [usage, '', ...columns(rows), ...(details.length === 0 ? [] : ['', ...details])];
  return { data: describe(command), lines };
}

export function noSuchCommand(commands: readonly Command[], name: string): UsageError {
  const known = commands.map((command) => command.name);
  return new UsageError(
    `"${name}" is no command of settled sandbox; known: ${known.join(', ')}. What the control API has beside them is in ` +
      'sandbox/README.md.',
  );
}

function overview(commands: readonly Command[]): Report {
  const exits = Object.entries(EXIT_MEANINGS);
  return {
    data: { commands: commands.map(describe), exitCodes: EXIT_MEANINGS },
    lines: [
      'settled sandbox is a payment-link service of your own, to try things with. No money in it is real.',
      '',
      ...columns(commands.map((command) => [usageOf(command), command.about] as const)),
      '',
      'LINK is the id of a link, its short code or its externalReference. Every command takes --json and --help.',
      'sandbox/README.md tells the rest.',
      '',
      'Exit codes:',
      ...columns(exits),
    ],
  };
}

function usageOf({ name, positional }: Command): string {
  return `settled sandbox ${name}${positional === '' ? '' : ` ${positional}`}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

function describe({ name, positional, about, options }: Command): object {
  return { name, positional, about, options: { ...options, ...COMMON_OPTIONS } };
}
