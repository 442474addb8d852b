import { setTimeout as after } from 'node:timers/promises';

/** Waiting for what comes in its time, and working at several things at once. */

const EVERY_MS = 20;

/**
 * Looks again and again until there is something, and returns it; null if nothing was there in time. `false` is nothing
 * as well.
 */
export async function lookFor<T>(
  withinMs: number,
  look: () => Promise<T | null | false>,
  everyMs: number = EVERY_MS,
): Promise<T | null> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== false) return found;
    if (performance.now() > untilMs) return null;
    await after(everyMs);
  }
}

/** The same, which throws if it takes too long. `what`: what was waited for. */
export async function until<T>(
  what: string,
  withinMs: number,
  look: () => Promise<T | null | false>,
  everyMs?: number,
): Promise<T> {
  const found = await lookFor(withinMs, look, everyMs);
  if (found === null) throw new Error(`${what} took more than ${withinMs / 1_000} s`);
  return found;
}

/** Works on these things, so many of them at the same time. If one fails, it throws when the others in work have ended. */
export async function eachAtOnce<T>(
  atOnce: number,
  things: readonly T[],
  work: (thing: T) => Promise<unknown>,
): Promise<void> {
  // One iterator for all of them, which ends when one of them fails.
  const left = (function* () {
    yield* things;
  })();
  const worker = async () => {
    for (const thing of left) await work(thing);
  };
  const workers = Array.from({ length: atOnce }, worker);
  await Promise.allSettled(workers);
  await Promise.all(workers);
}
