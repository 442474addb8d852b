import { endProcess } from './end.ts';
import { EXIT } from './exit.ts';
import { failure, failureText } from './failure.ts';
import { print } from './output.ts';
import { isForProgram, run } from './run.ts';

/** The process of a `settled` command. */

const args = process.argv.slice(2);

process.on('uncaughtException', endForBug);
// Each write sees its own error.
process.stdout.on('error', () => {});
// A process whose loop runs empty before its command is done must not look as if it were.
process.exitCode = EXIT.bug;
process.once('beforeExit', (code) => {
  if (code === EXIT.bug) endForBug(new Error('the command came to no end'));
});
// Never awaited at the top level: then it would end with Node's code for that, not ours.
void run(args, { print, complain }).then(endProcess);

function endForBug(error: unknown): never {
  const failed = failure(error);
  complain(failureText(failed, isForProgram(args)));
  endProcess(failed.exit);
}

function complain(text: string): void {
  process.stderr.write(text);
}
