import { COMMON_OPTIONS } from './arguments.ts';
import type { Command, Options, Report } from './command.ts';
import { EXIT_MEANINGS, UsageError } from './exit.ts';

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
