import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Where tests keep their files, where it exists and has room. No test asks for what outlives the machine, and to sync a
 * disk takes a fifth of the time. A test that fills a disk mounts one of its own.
 */
const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;
const NEVER_MS = 600_000;

if (process.env.TMPDIR === undefined && freeBytes(MEMORY) >= MEMORY_BYTES_MIN) process.env.TMPDIR = MEMORY;

// Each app of a test starts two threads, and each of those would compile the same modules again.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache');

function freeBytes(folder: string): number {
  if (!existsSync(folder)) return 0;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Files that take long, the longest first: begun last, one of them would be waited for alone. */
const FIRST = [
  'test/store/postgres/contract.test.ts',
  'test/cli/init.test.ts',
  'test/process/stop.test.ts',
  'test/examples/shops.test.ts',
  'test/demo/demo.test.ts',
  'test/process/outage.test.ts',
  'test/store/sqlite/contract.test.ts',
  'test/process/flood.test.ts',
  'test/reconcile/janitor.test.ts',
  'test/process/faults.test.ts',
  'test/process/postgres-outage.test.ts',
  'test/flow/asking-faults.test.ts',
  'test/console/operations.test.ts',
  'test/flow/opening-faults.test.ts',
  'test/process/rotate-kill.test.ts',
  'test/flow/opening.test.ts',
  'test/release/package.test.ts',
  'test/process/failover.test.ts',
  'test/process/move.test.ts',
  'test/cli/serve.test.ts',
  'test/readme.test.ts',
  'test/flow/opening-kill.test.ts',
  'test/process/postgres-rolling.test.ts',
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = FIRST.findIndex((file) => moduleId.endsWith(file));
      return at < 0 ? FIRST.length : at;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

/**
 * What lies around settled: `npm run test:around` runs it, and `npm test` does not. Two of them kill and flood at a small
 * scale as a proof does at a large one.
 */
const AROUND = [
  'test/{demo,deploy,examples,prove,release,sandbox}/*.test.ts',
  'test/{readme,cli/first-contact-shapes,cli/launcher,docs/first_shop,docs/upgrade}.test.ts',
  'test/{flow/opening-kill,process/flood}.test.ts',
];

/** Files that only the long mode runs: the test command has their parts. */
const LONG_ONLY = ['test/console/journeys.test.ts'];

/** Files that repeat something: with `--mode long` as often as a proof needs (test/support/timing.ts). */
const REPEATING = [
  'test/console/{hostile,layout,live-behind-session,looks,operations}.test.ts',
  ...LONG_ONLY,
  'test/demo/shop.test.ts',
  'test/domain/*.property.test.ts',
  'test/flow/{asking,asking-flood,feed-many,latency,opening-kill,sandbox-encodings,sandbox-many}.test.ts',
  'test/json.test.ts',
  'test/links/request.property.test.ts',
  'test/paylink/{events,payment_details,reading}.test.ts',
  'test/process/{audit-kill,kill,postgres-kill,told-kill}.test.ts',
  'test/receive/fuzz.test.ts',
  'test/sandbox/{api-properties,page}.test.ts',
  'test/store/*/contract.test.ts',
  'test/store/postgres/budget.test.ts',
];

/** What `npm run quick` runs: tests that need neither PostgreSQL nor a process, and one way through the whole. */
const QUICK = [
  'test/{config,domain,explain,paylink,secrets,settle,work}/*.test.ts',
  'test/flow/paid.test.ts',
  'test/{json,tidy}.test.ts',
];

/** What `--mode` names; every other mode runs what neither is around settled nor takes long. */
const INCLUDED: Readonly<Record<string, string[]>> = { around: AROUND, long: REPEATING, quick: QUICK };

/**
 * Ways through the whole of settled that are gone a second time, on PostgreSQL. The others of test/flow that have no file of
 * SQLite's in their hands take too long for that: SETTLED_TEST_ENGINE=postgres runs them there.
 */
const ON_POSTGRES = ['opening-restart', 'paid', 'told', 'unclear'].map((name) => `test/flow/${name}.test.ts`);

/** What takes longer, with the whole contract of the store: `--mode postgres` alone runs it there. */
const SELDOM_ON_POSTGRES = [
  'test/store/postgres/contract.test.ts',
  'test/flow/asking-confirm.test.ts',
  'test/flow/asking-contradictions.test.ts',
  'test/flow/asking-tail.test.ts',
  'test/flow/opening-cancel.test.ts',
  'test/flow/opening.test.ts',
  'test/flow/order-of-events.test.ts',
  'test/flow/poison.test.ts',
];

/** Node loads the modules itself, as it does for those who run settled: to transform each first takes a twelfth of the time. */
const BY_NODE = { experimental: { viteModuleRunner: false, nodeLoader: false } };

const GLOBAL_SETUP = ['test/support/one_file_programs.ts', 'test/support/postgres_setup.ts'];

export default defineConfig(({ mode }) => ({
  test: {
    // `--mode long`: what the `prove:` commands of package.json repeat at length.
    env: mode === 'long' ? { SETTLED_TEST_LENGTH: mode, SETTLED_TEST_CONTRACT: 'whole' } : {},
    pool: 'forks',
    // One more than cores: many tests wait for processes, disks and deadlines.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    // For what never ends. How long something takes depends on who else has the machine.
    testTimeout: NEVER_MS,
    hookTimeout: NEVER_MS,
    // A red test should not take minutes: test/support/timing.ts.
    expect: { poll: { timeout: 20_000, interval: 20 } },
    projects: [
      {
        extends: true,
        test: {
          ...BY_NODE,
          name: 'shared',
          include: INCLUDED[mode] ?? ['test/**/*.test.ts'],
          exclude: mode in INCLUDED ? [] : [...AROUND, ...LONG_ONLY],
          globalSetup: mode === 'quick' ? [] : GLOBAL_SETUP,
          // A process for each file would load the same modules again, which takes a fifth of the time.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          ...BY_NODE,
          name: 'postgres',
          include: mode === 'postgres' ? [...ON_POSTGRES, ...SELDOM_ON_POSTGRES] : ON_POSTGRES,
          env: { SETTLED_TEST_ENGINE: 'postgres', ...(mode === 'postgres' ? { SETTLED_TEST_CONTRACT: 'whole' } : {}) },
          globalSetup: GLOBAL_SETUP,
          isolate: false,
        },
      },
    ],
  },
}));
