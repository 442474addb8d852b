import { parseArgs } from 'node:util';
import { DemoError, EXIT, EXIT_MEANINGS } from './exit.ts';

const OPTIONS = {
  once: { type: 'boolean' },
  json: { type: 'boolean' },
  keep: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const ABOUT = [
  ['--once', 'play the story without anybody: open, pay, deliver twice, tamper, lose; print a table and end'],
  ['--keep FOLDER', 'keep the database and the logs in this folder, which must be new or empty'],
  ['--json', 'print the addresses, or the table, as one line of JSON'],
  ['--help', 'print this'],
] as const;

export type DemoOptions = { once: boolean; json: boolean; help: boolean; keep: string | null };

/** Reads the command line. Throws a `DemoError` that lists what is known. */
export function readOptions(args: readonly string[]): DemoOptions {
  const { values } = parse(args);
  if (values.keep === '') throw new DemoError(EXIT.usage, '--keep needs a folder: --keep FOLDER');
  return {
    once: values.once === true,
    json: values.json === true,
    help: values.help === true,
    keep: values.keep ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false });
  } catch (error) {
    const known = ABOUT.map(([option]) => option).join(', ');
    // The first sentence says what is wrong; what follows it is advice about options that begin with a dash.
    const [what] = (error as Error).message.split('. ');
    throw new DemoError(EXIT.usage, `${what?.replace(/\.?$/, '.')} settled demo knows: ${known}.`);
  }
}

export function help(): { data: object; lines: string[] } {
  const exits = Object.entries(EXIT_MEANINGS);
  return {
    data: { options: Object.fromEntries(ABOUT), exitCodes: EXIT_MEANINGS },
    lines: [
      'settled demo: a sandbox of the payment-link service, settled, and a tiny shop, on this machine alone',
      '',
      'Usage: settled demo [OPTION...]',
      '',
      ...ABOUT.map(([option, about]) => `  ${option.padEnd(13)}  ${about}`),
      '',
      'Without --once it prints the addresses and serves until Ctrl+C. It takes the ports 8787 to 8790, and a free one for',
      'each that is taken. What it writes lies in a temporary folder, which goes with it. No money in it is real.',
      '',
      'Exit codes:',
      ...exits.map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`),
    ],
  };
}
