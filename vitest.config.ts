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

/** Files that put something in a module's place: they need modules of their own. */
const MOCKING = [
  'test/api/token-comparison.test.ts',
  'test/receive/authentic.test.ts',
  'test/receive/unknown-link.test.ts',
  'test/store/sqlite/client.test.ts',
];

export default defineConfig({
  test: {
    pool: 'forks',
    // One more than cores: many tests wait for processes, disks and deadlines.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'mocking', include: MOCKING } },
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: MOCKING,
          globalSetup: ['test/support/postgres_setup.ts'],
          // A process for each file would load the same modules again, which takes a fifth of the time.
          isolate: false,
        },
      },
    ],
  },
});
