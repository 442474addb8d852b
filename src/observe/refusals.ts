import type { Clock } from '../work/clock.ts';
import type { Log } from './log.ts';

const LINE_EVERY_MS = 1_000;
/** Links that one line names. */
const LINKS_MAX = 10;

/** A delivery that was refused or not recorded. */
type Refusal = {
  /** Its outcome or, if it was not authentic, why. */
  reason: string;
  link?: number | undefined;
  /** What kept it from being recorded. */
  fault?: unknown;
};

/** Counts refusals and logs them together, so that a flood costs a line a second and not a line each. */
export type RefusalCounts = {
  add(refusal: Refusal, count?: number): void;
  /** Logs what is counted, at once. */
  flush(): void;
};

export function countRefusals({ clock, log }: { clock: Clock; log: Log }): RefusalCounts {
  let counts = new Map<string, number>();
  let links = new Set<number>();
  let fault: unknown;

  function flush(): void {
    if (counts.size === 0) return;
    const line = {
      counts: Object.fromEntries(counts),
      ...(links.size > 0 ? { links: [...links] } : {}),
      ...(fault === undefined ? {} : { fault }),
    };
    counts = new Map();
    links = new Set();
    fault = undefined;
    log.warn(line, 'deliveries refused as not authentic, or not recorded');
  }

  return {
    add: (refusal, count = 1) => {
      if (counts.size === 0) clock.after(LINE_EVERY_MS, flush);
      counts.set(refusal.reason, (counts.get(refusal.reason) ?? 0) + count);
      if (refusal.link !== undefined && links.size < LINKS_MAX) links.add(refusal.link);
      fault ??= refusal.fault;
    },
    flush,
  };
}
