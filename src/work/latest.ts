import type { Clock } from './clock.ts';

export type LatestOptions<T> = {
  clock: Pick<Clock, 'monotonicMs'>;
  make: () => Promise<T>;
  /** An older value is still returned, while a new one is made in the background. */
  againMs: number;
  /** An older value is never returned. */
  oldMs: number;
  /** Whether a value took long enough to be kept. Others are made for each caller. */
  isKept?: (value: T) => boolean;
};

export type Latest<T> = {
  get(): Promise<T>;
  /** Makes a value now. */
  anew(): Promise<T>;
};

/** Shares the latest value of something that takes too long to make for each caller. */
export function openLatest<T>({ clock, make, againMs, oldMs, isKept = () => true }: LatestOptions<T>): Latest<T> {
  let latest: { value: T; atMs: number } | null = null;
  let isUnderWay = false;

  async function anew(): Promise<T> {
    const atMs = clock.monotonicMs();
    const value = await make();
    latest = { value, atMs };
    return value;
  }

  async function makeLater(): Promise<void> {
    if (isUnderWay) return;
    isUnderWay = true;
    // If making it keeps failing, the value becomes too old, and a caller gets the failure.
    await anew().catch(() => {});
    isUnderWay = false;
  }

  return {
    anew,
    get: async () => {
      if (latest === null || !isKept(latest.value)) return anew();
      const ageMs = clock.monotonicMs() - latest.atMs;
      if (ageMs >= oldMs) return anew();
      if (ageMs >= againMs) void makeLater();
      return latest.value;
    },
  };
}
