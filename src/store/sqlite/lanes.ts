/** Calls of one lane in one batch at most: it bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/** While deliveries wait, other work gets one call for so many of them. */
const INTAKE_PER_OTHER = 16;

/**
 * A delivery that comes while other work is under way waits for that whole batch. So after deliveries, this many batches
 * of other work stay small; only when none came in between do they become large.
 */
const SMALL_BATCHES = 8;
const SMALL_BATCH_MAX = 16;

/** Verbs that a delivery's answer waits for. */
const INTAKE: ReadonlySet<string> = new Set([
  'findCredentials',
  'recordDelivery',
  'recordHint',
  'recordRejection',
]);

/** Where calls wait for their batch, each lane in the order in which it came. */
export type Lanes<Call> = {
  add(call: Call): void;
  /** Takes the next batch; empty where nothing waits. */
  next(): Call[];
};

/** Deliveries go first; other work fills what they leave, and never gets less than its share. */
export function openLanes<Call extends { verb: string }>(): Lanes<Call> {
  const intake: Call[] = [];
  const other: Call[] = [];
  let batchesSinceIntake = SMALL_BATCHES;

  function otherShare(deliveries: number): number {
    if (deliveries > 0) return Math.max(1, Math.floor(deliveries / INTAKE_PER_OTHER));
    return batchesSinceIntake > SMALL_BATCHES ? BATCH_MAX : SMALL_BATCH_MAX;
  }

  return {
    add: (call) => void (INTAKE.has(call.verb) ? intake : other).push(call),
    next: () => {
      const deliveries = intake.splice(0, BATCH_MAX);
      batchesSinceIntake = deliveries.length > 0 ? 0 : batchesSinceIntake + 1;
      return deliveries.concat(other.splice(0, otherShare(deliveries.length)));
    },
  };
}
