import { constants } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { type DemoOptions, EXIT, type ExitCode, failure, help, readOptions } from './command.ts';
import { startDemo } from './demo.ts';
import { openFolder } from './folder.ts';
import { addressData, addressLines, followLog, storyData, storyEnd, storyTable } from './output.ts';
import { openProcesses } from './processes.ts';
import { playStory, type Step } from './story.ts';

/** `settled demo …`: bin/settled.mjs runs this with what follows the word `demo`. */

const args = process.argv.slice(2);

// A reader that closes the pipe early is not an error.
process.stdout.on('error', () => {});
void main().then((exit) => process.exit(exit));

async function main(): Promise<number> {
  try {
    const options = readOptions(args);
    if (!options.help) return await run(options);
    const { data, lines } = help();
    await print(options.json ? [JSON.stringify(data)] : lines);
    return EXIT.ok;
  } catch (error) {
    const failed = failure(error);
    const text = args.includes('--json') ? JSON.stringify({ error: failed }) : failed.message;
    process.stderr.write(`${text}\n`);
    return failed.exit;
  }
}

/** If a call fails because a program ended, the program's own end says more: wait this long for it. */
const LAST_WORDS_MS = 300;

/** When this resolves or rejects, everything that it started has ended. */
async function run(options: DemoOptions): Promise<number> {
  const interrupted = stopAsked();
  const folder = openFolder(options.keep);
  const processes = openProcesses(folder);
  let close = () => {};
  const perform = async (): Promise<ExitCode> => {
    const demo = await startDemo(folder, processes);
    close = demo.close;
    if (options.once) return await playAndPrint(demo, options);
    const lines = options.json
      ? [JSON.stringify(addressData(demo, folder))]
      : addressLines(demo, folder, options.keep !== null);
    await print(lines);
    if (!options.json) {
      const log = followLog(processes.logPath('settled'), (lines) => void print(lines));
      close = () => {
        log.stop();
        demo.close();
      };
    }
    return await new Promise(() => {});
  };
  try {
    const stopped = interrupted.then((signal) => (options.once ? 128 + constants.signals[signal] : EXIT.ok));
    const performed = perform().catch(async (error: unknown) => {
      await Promise.race([processes.failed, wait(LAST_WORDS_MS)]);
      throw error;
    });
    return await Promise.race([performed, processes.failed, stopped]);
  } finally {
    close();
    await processes.stop();
    folder.close();
  }
}

async function playAndPrint(demo: Parameters<typeof playStory>[0], { json }: DemoOptions): Promise<ExitCode> {
  const steps: Step[] = [];
  const printSteps = (lines: string[]) =>
    print(json ? [JSON.stringify(storyData(steps, process.uptime()))] : [...storyTable(steps), ...lines]);
  try {
    await playStory(demo, (step) => steps.push(step));
  } catch (error) {
    if (steps.length > 0) await printSteps([]);
    throw error;
  }
  await printSteps(['', storyEnd(steps, process.uptime())]);
  return EXIT.ok;
}

/**
 * Resolves at the first signal that asks the demo to stop. Later ones, from the terminal and from npm, change nothing.
 */
function stopAsked(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    // The launcher that started this process has ended; perhaps it was killed.
    process.once('disconnect', () => resolve('SIGTERM'));
    if (process.connected === false) resolve('SIGTERM');
  });
}

/** Resolves once the lines are written. */
function print(lines: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${lines.join('\n')}\n`, () => resolve());
  });
}
