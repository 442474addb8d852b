import { catchUpAtOnce } from '../verbs/sweep.ts';
import { READ, WORK } from '../verbs/table.ts';
import { claimVerbs, counterVerbs, feedVerbs, heartbeat, intakeVerbs } from './verbs.ts';

/** Every verb on SQLite, by the lane that carries it out. */
export const LANES = {
  /** A delivery's answer waits for these; the sign of life says whether they are carried out. */
  intake: { ...intakeVerbs, heartbeat },
  work: { ...WORK, ...claimVerbs, catchUp: catchUpAtOnce },
  /** They only read: a thread of their own answers them, and no commit waits for it. */
  read: { ...READ, ...feedVerbs, ...counterVerbs },
};

/** Calls of one lane in one batch at most: it bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/**
 * At most so many other calls share a batch with deliveries, or one of the batches right after: a delivery that comes while a
 * batch is under way waits for the whole of it. Large enough that one fsync serves many settlements, small enough for a few milliseconds.
 */
const OTHER_BESIDE_INTAKE_MAX = 64;
/** Batches without a delivery after which none is expected. */
const QUIET_BATCHES = 8;

/** The queues in which calls wait for their batch, each in the order in which they came. */
export type Lanes<Call> = {
  add(call: Call): void;
  /** Takes the next batch; empty if nothing waits. */
  next(): Call[];
};

/** Deliveries go first; other work fills what they leave, and never gets less than its share. */
export function openLanes<Call extends { verb: string }>(): Lanes<Call> {
  const intake: Call[] = [];
  const other: Call[] = [];
  let batchesSinceIntake = QUIET_BATCHES;
  return {
    add: (call) => void (Object.hasOwn(LANES.intake, call.verb) ? intake : other).push(call),
    next: () => {
      const deliveries = intake.splice(0, BATCH_MAX);
      batchesSinceIntake = deliveries.length > 0 ? 0 : batchesSinceIntake + 1;
      const share = batchesSinceIntake > QUIET_BATCHES ? BATCH_MAX : OTHER_BESIDE_INTAKE_MAX;
      return deliveries.concat(other.splice(0, share));
    },
  };
}
