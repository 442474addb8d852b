import { describe, expect, it, onTestFinished } from 'vitest';
import { startDemo } from '../../demo/demo.ts';
import { openFolder } from '../../demo/folder.ts';
import { openProcesses } from '../../demo/processes.ts';
import { playStory } from '../../demo/story.ts';

/** Plays the story while the sandbox also carries out this plan. Returns the steps that succeeded, and how it ended. */
async function playWith(plan: { fault: string; with?: object }) {
  const folder = openFolder(null);
  const processes = openProcesses(folder);
  onTestFinished(async () => {
    await processes.stop();
    folder.close();
  });
  const demo = await startDemo(folder, processes);
  onTestFinished(demo.close);
  await demo.sandbox.plan({ ...plan, match: {}, count: null });
  const steps: string[] = [];
  const failed = await playStory(demo, ({ step }) => steps.push(step)).then(
    () => null,
    (error: Error) => error,
  );
  return { steps, failed };
}

describe('the story of the demo', () => {
  it.each([
    [
      'webhooks that cannot be believed',
      { fault: 'wrong-secret' },
      1,
      /^The step "pay it" failed: (the payment was learned by reconciliation|the order is \w+, not paid)\.$/,
    ],
    [
      'webhooks that come twice by themselves',
      { fault: 'duplicate', with: { times: 2 } },
      2,
      /^The step "deliver the payment twice more" failed: \d+ of 2 copies were answered as duplicates\.$/,
    ],
  ])('fails at the step that goes wrong: %s', async (_name, plan, stepsBefore, told) => {
    const { steps, failed } = await playWith(plan);
    expect(failed).toMatchObject({ exit: 1, message: expect.stringMatching(told) });
    expect(steps).toHaveLength(stepsBefore);
  });
});
