import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { styleText } from 'node:util';
import type { Block } from '../src/terminal/output.ts';
import { table } from '../src/terminal/table.ts';
import { type Demo, unusual } from './demo.ts';
import type { Folder } from './folder.ts';
import type { Step } from './story.ts';

/** Printed once everything serves, with commands to paste. */
export function addressLines(demo: Demo, folder: Folder, isKept: boolean): string[] {
  const { shop, sandbox, operator } = demo.addresses;
  const [settled, play] = commands();
  const environment = `SETTLED_STORE=${quoted(`sqlite:${demo.storePath}`)} SETTLED_OPERATOR_LISTEN=${new URL(operator).host}`;
  const taken = unusual(demo.addresses).map(({ usual, instead }) => `     Port ${usual} is taken: ${instead} instead.`);
  return [
    '',
    '  settled, with a sandbox of the payment-link service and a tiny shop. NO MONEY IS REAL.',
    ...(taken.length === 0 ? [] : ['', ...taken]),
    '',
    `  1  the shop      ${shop}/`,
    '     Open it in a browser, buy something, and pay on the page it leads to.',
    `  2  the console   ${operator}/`,
    "     Is any money in a wrong state, and why? The shop's page opens it and signs you in: put the two side by side.",
    '     The same in a terminal:',
    `       ${environment} \\`,
    `         ${settled} why ORDER`,
    '',
    '  In a terminal you also make the service misbehave. Lose all webhooks from now on, or none again:',
    `       ${play} faults '{"fault": "drop", "count": null}' --url ${sandbox}`,
    `       ${play} faults --clear --url ${sandbox}`,
    '',
    `  The database and the logs are in ${folder.path}`,
    `  ${isKept ? 'They are kept.' : 'They are removed at the end; keep them with --keep FOLDER.'}`,
    '',
    '  Stop with Ctrl+C. Until then settled logs here what happens to each order, by its reference:',
    '',
  ];
}

export function addressData(demo: Demo, folder: Folder): object {
  return { ...demo.addresses, folder: folder.path, store: demo.storePath, notice: 'No money here is real.' };
}

/** In a checkout the commands are npm's, which names its script in the environment. The launcher says what npx runs. */
function commands(): [settled: string, sandbox: string] {
  const { CALLED_AS, npm_lifecycle_event } = process.env;
  if (CALLED_AS === undefined && npm_lifecycle_event !== undefined) {
    return ['npm run -s settled --', 'npm run -s sandbox --'];
  }
  const settled = CALLED_AS ?? 'settled';
  return [settled, `${settled} sandbox`];
}

/** Quoted for a shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function storyTable(steps: readonly Step[]): Block[] {
  const rows = steps.map((step, at) => ({ ...step, number: at + 1, took: step.seconds.toFixed(2) }));
  return table(rows, { '#': 'number', step: 'step', 'what happened': 'happened', order: 'state', seconds: 'took' });
}

export function storyData(steps: readonly Step[], seconds: number): object {
  const rounded = (value: number) => Math.round(value * 1000) / 1000;
  return { steps: steps.map((step) => ({ ...step, seconds: rounded(step.seconds) })), seconds: rounded(seconds) };
}

/** @param seconds from the start of the command to the last step */
export function storyEnd(steps: readonly Step[], seconds: number): string {
  return `All ${steps.length} steps succeeded, in ${seconds.toFixed(1)} s with the start.`;
}

const LOOK_EVERY_MS = 100;
const READ_BYTES_MAX = 64 * 1024;

const STYLES = { WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const;

/**
 * Passes on each line that a log gets from now on. The log is a file, and not a pipe to the demo, so that its writer
 * never waits for a reader.
 */
export function followLog(path: string, onLines: (lines: string[]) => void): { stop(): void } {
  const file = openSync(path, 'r');
  const decoder = new StringDecoder('utf8');
  const chunk = Buffer.alloc(READ_BYTES_MAX);
  let at = fstatSync(file).size;
  let rest = '';
  const timer = setInterval(() => {
    const bytes = readSync(file, chunk, 0, READ_BYTES_MAX, at);
    at += bytes;
    const lines = (rest + decoder.write(chunk.subarray(0, bytes))).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) onLines(lines.map(styled));
  }, LOOK_EVERY_MS);
  return {
    stop: () => {
      clearInterval(timer);
      closeSync(file);
    },
  };
}

/** The line with its level in a colour, if the terminal has colours. */
function styled(line: string): string {
  return line.replace(/^([\d:.]+ )(WARN|ERROR|FATAL)\b/, (_, time, level: keyof typeof STYLES) => {
    return time + styleText(STYLES[level], level);
  });
}
