/** Calls of one lane in one batch at most: it bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/**
 * Other work beside deliveries, and in the batches right after them: a delivery that comes while a batch is under way
 * waits for the whole of it. Large enough that one fsync serves many settlements, small enough for a few milliseconds.
 */
const OTHER_BESIDE_INTAKE_MAX = 64;
/** Batches without a delivery after which none is expected. */
const QUIET_BATCHES = 8;

/** Verbs that a delivery's answer waits for, and the sign of life that says whether they are carried out. */
const INTAKE: ReadonlySet<string> = new Set([
  'findCredentials',
  'recordDelivery',
  'recordHint',
  'recordRejection',
  'heartbeat',
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
  let batchesSinceIntake = QUIET_BATCHES;
  return {
    add: (call) => void (INTAKE.has(call.verb) ? intake : other).push(call),
    next: () => {
      const deliveries = intake.splice(0, BATCH_MAX);
      batchesSinceIntake = deliveries.length > 0 ? 0 : batchesSinceIntake + 1;
      const share = batchesSinceIntake > QUIET_BATCHES ? BATCH_MAX : OTHER_BESIDE_INTAKE_MAX;
      return deliveries.concat(other.splice(0, share));
    },
  };
}
