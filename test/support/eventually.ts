import { vi } from 'vitest';

/** After this time it never will. No test depends on how soon something happens: that depends on the machine's load. */
const NEVER_MS = 120_000;
const LOOK_EVERY_MS = 20;

/** Repeats `look` until it does not throw. Returns its result. */
export function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(look, { timeout: NEVER_MS, interval: LOOK_EVERY_MS });
}
