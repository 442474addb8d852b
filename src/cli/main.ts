import { isForProgram, run, screensOf } from './commands.ts';
import { CommandError, EXIT, endProcess, failure } from './exit.ts';
import { failureText } from './output.ts';

/** The process of a `settled` command. */

const args = process.argv.slice(2);
const screens = screensOf(args);

process.on('uncaughtException', endForBug);
// Each write handles its own error.
process.stdout.on('error', () => {});
// A process whose event loop runs empty before its command is done must not look successful.
process.exitCode = EXIT.bug;
process.once('beforeExit', (code) => {
  if (code === EXIT.bug) endForBug(new Error('the command did not finish'));
});
// Never awaited at the top level: if it did not finish, Node would end with its own code for that.
void run(args, { print, printError, ...screens }).then(endProcess);

function endForBug(error: unknown): never {
  const failed = failure(error);
  printError(failureText(failed, isForProgram(args), screens.errorScreen));
  endProcess(failed.exit);
}

/** Resolves when all is written; false if the reader has seen enough and is gone, as `head` is, which is no error. */
function print(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') resolve(!error);
      else reject(new CommandError('output_failed', `The output cannot be written (${error.code}), and is not whole.`));
    });
  });
}

function printError(text: string): void {
  process.stderr.write(text);
}
