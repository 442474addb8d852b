import { constants } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { startDemo } from './demo.ts';
import { EXIT, type ExitCode, failure } from './exit.ts';
import { openFolder } from './folder.ts';
import { followLog } from './log.ts';
import { type DemoOptions, help, readOptions } from './options.ts';
import { openProcesses } from './processes.ts';
import { playStory, type Step } from './story.ts';
import { addressData, addressLines, storyData, storyEnd, storyTable } from './telling.ts';

/** `settled demo …`: bin/settled.mjs runs this with what follows the word `demo`. */

const args = process.argv.slice(2);

// A reader that has seen enough is none.
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
    const told = args.includes('--json') ? JSON.stringify({ error: failed }) : failed.message;
    process.stderr.write(`${told}\n`);
    return failed.exit;
  }
}

/** A program that ended says more than a call of it that fails for that; it is told of a moment later. */
const LAST_WORDS_MS = 300;

/** Everything that was started has ended when this resolves or rejects. */
async function run(options: DemoOptions): Promise<number> {
  const interrupted = stopAsked();
  const folder = openFolder(options.keep);
  const processes = openProcesses(folder);
  let close = () => {};
  const perform = async (): Promise<ExitCode> => {
    const demo = await startDemo(folder, processes);
    close = demo.close;
    if (options.once) return await tellStory(demo, options);
    const lines = options.json
      ? [JSON.stringify(addressData(demo, folder))]
      : addressLines(demo, folder, options.keep !== null);
    await print(lines);
    if (!options.json) {
      const log = followLog(processes.logPath('settled'), (told) => void print(told));
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

async function tellStory(demo: Parameters<typeof playStory>[0], { json }: DemoOptions): Promise<ExitCode> {
  const steps: Step[] = [];
  const tell = (lines: string[]) =>
    print(json ? [JSON.stringify(storyData(steps, process.uptime()))] : [...storyTable(steps), ...lines]);
  try {
    await playStory(demo, (step) => steps.push(step));
  } catch (error) {
    if (steps.length > 0) await tell([]);
    throw error;
  }
  await tell(['', storyEnd(steps, process.uptime())]);
  return EXIT.ok;
}

/** Resolves when somebody wants the demo to stop. Asking again, as a terminal and npm do, changes nothing. */
function stopAsked(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    // The launcher that started this process is gone, killed perhaps.
    process.once('disconnect', () => resolve('SIGTERM'));
    if (process.connected === false) resolve('SIGTERM');
  });
}

/** Resolves when it is written. */
function print(lines: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${lines.join('\n')}\n`, () => resolve());
  });
}
