import { run } from './cli/commands.ts';
import { fitted } from './cli/screen.ts';

/** `settled sandbox …`: bin/settled.mjs runs this with what follows the word `sandbox`. */

// Each write sees its own error: a reader that has seen enough is none.
process.stdout.on('error', () => {});
void main().then((exit) => process.exit(exit));

async function main(): Promise<number> {
  const { code, stdout, stderr } = await run(process.argv.slice(2));
  const { columns } = process.stdout;
  process.stderr.write(fitted(stderr, process.stderr.columns));
  if (stdout !== '')
    await new Promise<void>((resolve) => process.stdout.write(fitted(stdout, columns), () => resolve()));
  return code;
}
