import { constants } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import type { Report } from '../src/terminal/command.ts';
import { reportText, verbatim } from '../src/terminal/output.ts';
import { runProcess, stopAsked } from '../src/terminal/process.ts';
import type { Surroundings } from '../src/terminal/run.ts';
import { type DemoOptions, EXIT, failure, runDemo } from './command.ts';
import { type Demo, startDemo } from './demo.ts';
import { openFolder } from './folder.ts';
import { addressData, addressLines, followLog, storyData, storyEnd, storyTable } from './output.ts';
import { openProcesses } from './processes.ts';
import { playStory, type Step } from './story.ts';

type Print = Surroundings['print'];

/** `settled demo …`: bin/settled.mjs runs this with what follows the word `demo`. */

runProcess((args, surroundings) => runDemo(args, surroundings, run), failure, Date.now);

/** If a call fails because a program ended, the program's own end says more: wait this long for it. */
const LAST_WORDS_MS = 300;

/** When this resolves or rejects, everything that it started has ended. */
async function run(options: DemoOptions, print: Print): Promise<Report | number> {
  const interrupted = stopAsked();
  const folder = openFolder(options.keep);
  const processes = openProcesses(folder);
  let close = () => {};
  const perform = async (): Promise<Report> => {
    const demo = await startDemo(folder, processes);
    close = demo.close;
    if (options.once) return await play(demo, options, print);
    const lines = addressLines(demo, folder, options.keep !== null).map(verbatim);
    await print(reportText({ data: addressData(demo, folder), lines }, options.json));
    if (!options.json) {
      const log = followLog(processes.logPath('settled'), (lines) => void print(`${lines.join('\n')}\n`));
      close = () => {
        log.stop();
        demo.close();
      };
    }
    return await new Promise(() => {});
  };
  try {
    const stopped = interrupted.then((why) => {
      // The launcher that started this process may have been killed.
      const signal = constants.signals[why as NodeJS.Signals] ?? constants.signals.SIGTERM;
      return options.once ? 128 + signal : EXIT.ok;
    });
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

async function play(demo: Demo, { json }: DemoOptions, print: Print): Promise<Report> {
  const steps: Step[] = [];
  const report = (end: string[]) => {
    return { data: storyData(steps, process.uptime()), lines: [...storyTable(steps), ...end] };
  };
  try {
    await playStory(demo, (step) => steps.push(step));
  } catch (error) {
    if (steps.length > 0) await print(reportText(report([]), json));
    throw error;
  }
  return report(['', storyEnd(steps, process.uptime())]);
}
