import { clock } from './clock.ts';
import {
  COMMON_OPTIONS,
  type Command,
  defineCommand,
  didYouMean,
  type Options,
  type Report,
  readArguments,
} from './command.ts';
import { deliveries, events, resend } from './deliveries.ts';
import { EXIT, EXIT_MEANINGS, failure, UsageError } from './exit.ts';
import { faults } from './faults.ts';
import { complete, disable, dispute, enable, expire, links, pay, refund, win } from './links.ts';
import { play } from './play.ts';
import { serve } from './serve.ts';
import { silences } from './switches.ts';
import { record } from './table.ts';

/** How a command ends, and what it prints. */
type Ended = { code: number; stdout: string; stderr: string };

/** Runs the command of these words. Never throws. */
export async function run(args: readonly string[]): Promise<Ended> {
  const isForProgram = args.includes('--json');
  try {
    const report = await dispatch(args);
    if (report === null) return { code: EXIT.ok, stdout: '', stderr: '' };
    const text = isForProgram ? JSON.stringify(report.data) : report.lines.join('\n');
    return { code: report.exit ?? EXIT.ok, stdout: `${text}\n`, stderr: '' };
  } catch (error) {
    const failed = failure(error);
    const text = isForProgram ? JSON.stringify({ error: failed }) : failed.message;
    return { code: failed.exit, stdout: '', stderr: `${text}\n` };
  }
}

/** The command is `serve` if no word names another. */
async function dispatch(args: readonly string[]): Promise<Report | null> {
  const [first = 'serve'] = args;
  if (first === '--help' || first === '-h') return helpOn('');
  const isNamed = !first.startsWith('-');
  const name = isNamed ? first : 'serve';
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw noSuchCommand(name);
  const { positionals, options } = readArguments(command, isNamed ? args.slice(1) : args);
  if (options.help === true) return helpOn(name);
  return command.run({ first: positionals[0] ?? '', options: options as Record<string, never> });
}

const help = defineCommand({
  name: 'help',
  positional: '[COMMAND]',
  about: 'list the commands, or explain one',
  options: {},
  run: async ({ first }) => helpOn(first),
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

/** Help on the command of this name, or on all commands if it is empty. */
function helpOn(name: string): Report {
  if (name === '') return overview();
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw noSuchCommand(name);
  const options: Options = { ...command.options, ...COMMON_OPTIONS };
  const rows = Object.entries(options).map(
    ([option, { value, about, isRepeatable }]) =>
      [
        `--${option}${value === undefined ? '' : ` ${value}`}`,
        isRepeatable === true ? `${about}; may be given several times` : about,
      ] as const,
  );
  const { details = [] } = command;
  const usage = `Usage: ${usageOf(command)} [OPTION...]`;
  const lines = [
    `settled sandbox ${name}: ${command.about}`,
    '',
    usage,
    '',
    ...record(rows),
    ...(details.length === 0 ? [] : ['', ...details]),
  ];
  return { data: describe(command), lines };
}

function noSuchCommand(name: string): UsageError {
  const known = COMMANDS.map((command) => command.name);
  return new UsageError(
    `There is no command \`settled sandbox ${name}\`.${didYouMean(name, known)} There are: ${known.join(', ')}. ` +
      'sandbox/README.md lists what the control API does beyond them.',
  );
}

function overview(): Report {
  return {
    data: { commands: COMMANDS.map(describe), exitCodes: EXIT_MEANINGS },
    lines: [
      'settled sandbox is a local payment-link service to try things with. No money in it is real.',
      '',
      ...record(COMMANDS.map((command) => [usageOf(command), command.about] as const)),
      '',
      'LINK is the id of a link, its short code or its externalReference. Every command takes --json and --help.',
      'See sandbox/README.md for the rest.',
      '',
      'Exit codes:',
      ...record(Object.entries(EXIT_MEANINGS)),
    ],
  };
}

function usageOf({ name, positional }: Command): string {
  return `settled sandbox ${name}${positional === '' ? '' : ` ${positional}`}`;
}

function describe({ name, positional, about, options }: Command): object {
  return { name, positional, about, options: { ...options, ...COMMON_OPTIONS } };
}
