import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CommandError } from './exit.ts';
import { printable, wrap } from './output.ts';
import { COLUMNS } from './screen.ts';

/** A person at a terminal. Everything is written to standard error: standard output is for the report. */
export type Terminal = {
  /** Shows a line, broken to fit. */
  say(line: string): void;
  /** Shows a line and returns what the person answers, without spaces around it. */
  ask(prompt: string): Promise<string>;
  /** As `ask`, and the terminal does not show what the person types. */
  askHidden(prompt: string): Promise<string>;
  /** `isUsual`: what Enter alone means. */
  confirm(question: string, isUsual: boolean): Promise<boolean>;
  close(): void;
};

/** Null if no person can be asked. */
export function openTerminal(onInterrupt: () => void): Terminal | null {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return null;
  const echo = openEcho();
  const reader = createInterface({ input: process.stdin, output: echo.output, terminal: true, historySize: 0 });
  const typedAhead: string[] = [];
  let waiting: PromiseWithResolvers<string> | null = null;
  let isOver = false;
  reader.on('line', (line) => {
    // Before anything else that was pasted with it can be shown.
    echo.hide();
    if (waiting === null) typedAhead.push(line);
    else waiting.resolve(line);
    waiting = null;
  });
  reader.on('SIGINT', onInterrupt);
  reader.on('close', () => {
    isOver = true;
    waiting?.reject(ended());
  });

  async function take(prompt: string, isHidden: boolean): Promise<string> {
    if (isOver) throw ended();
    const ahead = typedAhead.shift();
    if (ahead === undefined) {
      echo.show();
      reader.setPrompt(prompt);
      reader.prompt();
      if (isHidden) echo.hide();
      waiting = Promise.withResolvers<string>();
      const line = await waiting.promise;
      if (isHidden) process.stderr.write('\n');
      return line.trim();
    }
    process.stderr.write(`${prompt}${isHidden ? '' : printable(ahead)}\n`);
    return ahead.trim();
  }

  async function confirm(question: string, isUsual: boolean): Promise<boolean> {
    for (;;) {
      const answer = (await take(`  ${printable(question)} ${isUsual ? '[Y/n]' : '[y/N]'} `, false)).toLowerCase();
      if (answer === '') return isUsual;
      if (['y', 'yes', 'n', 'no'].includes(answer)) return answer.startsWith('y');
    }
  }

  return {
    say: (line) => process.stderr.write(`${wrap(line, process.stderr.columns || COLUMNS).join('\n')}\n`),
    ask: (prompt) => take(prompt, false),
    askHidden: (prompt) => take(prompt, true),
    confirm,
    close: () => reader.close(),
  };
}

/** What the reader of lines writes: the prompt, and each character as it is typed. */
function openEcho() {
  let isShown = false;
  const write = (chunk: Buffer, _: unknown, done: () => void) => {
    if (isShown) process.stderr.write(chunk);
    done();
  };
  const output = Object.assign(new Writable({ write }), { columns: process.stderr.columns });
  const show = () => {
    isShown = true;
  };
  const hide = () => {
    isShown = false;
  };
  return { output, show, hide };
}

function ended(): CommandError {
  return new CommandError('not_confirmed', 'The input ended before the last answer. Nothing was written.');
}
