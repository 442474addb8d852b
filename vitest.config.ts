import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take 20 s and more, the longest first: begun last, one of them would be waited for alone. */
const LONGEST = [
  'test/flow/opening-kill-answer.test.ts',
  'test/process/kill.test.ts',
  'test/process/told-kill.test.ts',
  'test/flow/opening-kill-intent.test.ts',
  'test/flow/sandbox-many.test.ts',
  'test/flow/opening-faults.test.ts',
  'test/process/outage.test.ts',
  'test/demo/demo.test.ts',
  'test/process/stop.test.ts',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((file) => moduleId.endsWith(file));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // One more than cores: many tests wait for processes, disks and deadlines.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
