import { EXIT, endProcess, failure } from './exit.ts';
import { failureText, print } from './output.ts';
import { isForProgram, run } from './run.ts';

/** The process of a `settled` command. */

const args = process.argv.slice(2);

process.on('uncaughtException', endForBug);
// Each write handles its own error.
process.stdout.on('error', () => {});
// A process whose event loop runs empty before its command is done must not look successful.
process.exitCode = EXIT.bug;
process.once('beforeExit', (code) => {
  if (code === EXIT.bug) endForBug(new Error('the command did not finish'));
});
// Never awaited at the top level: if it did not finish, Node would end with its own code for that.
void run(args, { print, complain }).then(endProcess);

function endForBug(error: unknown): never {
  const failed = failure(error);
  complain(failureText(failed, isForProgram(args)));
  endProcess(failed.exit);
}

function complain(text: string): void {
  process.stderr.write(text);
}
