import { performance } from 'node:perf_hooks';
import type fc from 'fast-check';
import { it, vi } from 'vitest';

/**
 * What did not happen by then never will. No test depends on how soon something happens, which depends on the machine's
 * load; but a red test should not take minutes.
 */
const NEVER_MS = 20_000;
const NEVER_AFTER_MUCH_MS = 120_000;
const LOOK_EVERY_MS = 20;
/** Where it takes seconds, looks that come sooner take more time of processors than what they wait for. */
const LOOK_SELDOM_EVERY_MS = 100;

type Eventually = <T>(look: () => T | Promise<T>) => Promise<T>;

/** Repeats `look` until it does not throw. Returns its result. */
export const eventually: Eventually = (look) => vi.waitFor(look, { timeout: NEVER_MS, interval: LOOK_EVERY_MS });

/** The same for what takes longer on a busy machine, and why it does. */
export function eventuallyAfter(_why: string): Eventually {
  return (look) => vi.waitFor(look, { timeout: NEVER_AFTER_MUCH_MS, interval: LOOK_SELDOM_EVERY_MS });
}

/** Set by `--mode long`, for the `prove:` commands of package.json that run tests at length. */
const isLong = process.env.SETTLED_TEST_LENGTH === 'long';

/** How often a test repeats its work: enough to notice a fault in the test command, more in a proof. */
export function times(inTestCommand: number, inProof: number): number {
  return isLong ? inProof : inTestCommand;
}

const notCollected = Object.assign(() => {}, { each: () => () => {} }) as unknown as typeof it;
/** A test that only the long mode has: the test command sees by other tests what it asserts, except how it looks. */
export const itAtLength = isLong ? it : notCollected;

/**
 * How a property is tried: first on the examples, each a counterexample of before or hard to come upon, then at random as
 * often as if there were none. A counterexample that fast-check reports becomes an example with the mend, in the form in
 * which it is printed.
 */
export function runs<Values extends unknown[]>(
  inTestCommand: number,
  inProof: number,
  examples: readonly Values[],
): fc.Parameters<Values> {
  return { numRuns: times(inTestCommand, inProof) + examples.length, examples: [...examples] };
}

const ROUNDS_MAX = 3;

/**
 * Measures up to three times until the result is fast enough, and returns the last one. A busy machine may spoil a
 * round; code that is slow spoils every one.
 */
export async function untilFast<T>(
  measure: (round: number) => Promise<T>,
  isFast: (measured: T) => boolean,
): Promise<T> {
  for (let round = 1; ; round++) {
    const measured = await measure(round);
    if (round === ROUNDS_MAX || isFast(measured)) return measured;
  }
}

/**
 * Returns a function for the milliseconds since in which this process worked, in all its threads, or waited. On an idle
 * machine they are at least a clock's; time that other processes took does not count.
 */
export function startOwnTime(): () => number {
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 1_000 + performance.eventLoopUtilization(loop).idle;
  };
}
