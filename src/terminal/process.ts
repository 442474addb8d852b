import { EXIT_BUG, Failure } from './failure.ts';
import { failureText } from './output.ts';
import { isForProgram, type Surroundings } from './run.ts';
import { screenOf } from './screen.ts';

/** The process of a command, from its command line to its exit code. */

const EXIT_OUTPUT_FAILED = 74;

type Run = (args: readonly string[], surroundings: Surroundings) => Promise<number>;

/** Runs the command of this process's command line by `run`, and ends the process. `read`: what an error means. */
export function runProcess(run: Run, read: (error: unknown) => Failure, nowMs: () => number): void {
  const args = process.argv.slice(2);
  const screens = { screen: screenOf(process.stdout, nowMs), errorScreen: screenOf(process.stderr, nowMs) };
  const endForBug = (error: unknown): never => {
    const failed = read(error);
    printError(failureText(failed, isForProgram(args), screens.errorScreen));
    endProcess(failed.exit);
  };
  process.on('uncaughtException', endForBug);
  // Each write handles its own error.
  process.stdout.on('error', () => {});
  // A process whose event loop runs empty before its command is done must not look successful.
  process.exitCode = EXIT_BUG;
  process.once('beforeExit', (code) => {
    if (code === EXIT_BUG) endForBug(new Error('the command did not finish'));
  });
  // Never awaited at the top level: if it did not finish, Node would end with its own code for that.
  void run(args, { print, printError, ...screens }).then(endProcess);
}

/** Resolves when all is written; false if the reader has seen enough and is gone, as `head` is, which is no error. */
function print(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') return resolve(!error);
      const why = `The output cannot be written (${error.code}), and is not whole.`;
      reject(new Failure('output_failed', why, EXIT_OUTPUT_FAILED));
    });
  });
}

function printError(text: string): void {
  process.stderr.write(text);
}

const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Calls `end` when this process is asked to stop, instead of ending it. Returns what takes that back. */
export function onStopSignal(end: (signal: NodeJS.Signals) => void): () => void {
  for (const signal of STOPPING) process.on(signal, end);
  return () => {
    for (const signal of STOPPING) process.off(signal, end);
  };
}

/** Resolves with what asks this process to stop. Asking again, as process groups and npm do, changes nothing. */
export function stopAsked(): Promise<string> {
  return new Promise((resolve) => {
    onStopSignal(resolve);
    // The launcher that started this process is gone, killed perhaps.
    process.once('disconnect', () => resolve('the launcher is gone'));
    if (process.connected === false) resolve('the launcher is gone');
  });
}

/** Requests that can hang in a system call on a thread: looking a name up, reading or writing a file. */
const MAY_HANG = /^(GetAddrInfo|FS)Req/;

/** Worker threads that have not ended. */
let workers = 0;
process.on('worker', (worker) => {
  workers++;
  worker.once('exit', () => workers--);
});

/**
 * Ends this process. `process.exit` waits for threads: one that looks a name up or waits for a disk would delay it for
 * as long as that takes, and a worker that just loads native code would abort the process. In that case the process
 * replaces itself by one that ends with the same code at once.
 */
export function endProcess(exit: number): never {
  // Added last, so that other listeners have written what they write.
  process.once('exit', (code) => {
    const mayHang = process.getActiveResourcesInfo().some((name) => MAY_HANG.test(name));
    if (process.platform === 'win32' || (workers === 0 && !mayHang)) return;
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
  });
  process.exit(exit);
}

/** Asks a person, on standard error, because standard output is for the report. Null if there is no terminal to ask on. */
export function openTerminal() {
  const { stdin, stderr } = process;
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  // Loaded only if a person is asked.
  const { createInterface } = process.getBuiltinModule('node:readline');
  const reader = createInterface({ input: stdin, output: stderr, historySize: 0 });
  reader.on('SIGINT', () => {
    reader.close();
    process.kill(process.pid, 'SIGINT');
  });
  const lines = reader[Symbol.asyncIterator]();
  return {
    /** False if the input ends. */
    confirm: async (question: string): Promise<boolean> => {
      // Not by `prompt`, which fails once the input has ended.
      reader.setPrompt(`${question} [y/N] > `);
      stderr.write(reader.getPrompt());
      const { value, done } = await lines.next();
      return !done && /^y/i.test(value.trim());
    },
    close: () => reader.close(),
  };
}
