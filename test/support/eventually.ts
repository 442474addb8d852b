import { vi } from 'vitest';

/** For what never comes. How soon something comes depends on who else has the machine, so no test rests on it. */
const NEVER_MS = 120_000;
const LOOK_EVERY_MS = 20;

/** Looks again and again until `look` throws no more; returns what it found. */
export function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(look, { timeout: NEVER_MS, interval: LOOK_EVERY_MS });
}
