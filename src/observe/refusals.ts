import type { Clock } from '../work/clock.ts';
import type { Log } from './log.ts';

const EVERY_MS = 1_000;
/** How many orders have a separate line for their refusal, in that time. */
const LINES_MAX = 10;
/** How many further orders the shared line names. */
const NAMED_MAX = 40;

/** A delivery that was refused or not recorded. */
type Refusal = {
  /** Its outcome, or why it was not authentic. */
  reason: string;
  /** The reference of the order whose link it named, if any. */
  order?: string | undefined;
  /** What kept it from being recorded. */
  fault?: unknown;
};

/**
 * Logs refusals so that each order can be found, and a flood costs a few lines a second. The first refusal of an order
 * for a reason has a separate line, at once; all others of that second share one line, with counts.
 */
export type RefusalCounts = {
  add(refusal: Refusal, count?: number): void;
  /** Logs the counts at once. */
  flush(): void;
};

export function countRefusals({ clock, log }: { clock: Clock; log: Log }): RefusalCounts {
  let isTimed = false;
  let told = new Set<string>();
  let counts = new Map<string, number>();
  let named = new Set<string>();
  let fault: unknown;

  function flush(): void {
    isTimed = false;
    const line = {
      counts: Object.fromEntries(counts),
      ...(named.size > 0 ? { orders: [...named] } : {}),
      ...(fault === undefined ? {} : { fault }),
    };
    const isEmpty = counts.size === 0;
    told = new Set();
    counts = new Map();
    named = new Set();
    fault = undefined;
    if (!isEmpty) log.warn(line, 'deliveries refused as not authentic, or not recorded');
  }

  /** Whether it has a separate line. */
  function tell({ reason, order, fault }: Refusal): boolean {
    const key = `${reason} ${order}`;
    if (order === undefined || told.size >= LINES_MAX || told.has(key)) return false;
    told.add(key);
    const line = { order, reason, ...(fault === undefined ? {} : { fault }) };
    log.warn(
      line,
      reason === 'stale'
        ? 'a delivery was stamped too early or too late, and was not believed'
        : 'a delivery was refused, or not recorded',
    );
    return true;
  }

  return {
    add: (refusal, count = 1) => {
      if (!isTimed) clock.after(EVERY_MS, flush);
      isTimed = true;
      if (tell(refusal)) return;
      const { reason, order } = refusal;
      counts.set(reason, (counts.get(reason) ?? 0) + count);
      if (order !== undefined && named.size < NAMED_MAX) named.add(order);
      fault ??= refusal.fault;
    },
    flush,
  };
}
