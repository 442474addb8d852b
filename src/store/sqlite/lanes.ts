import { catchUpAtOnce } from '../verbs/sweep.ts';
import { INTAKE, READ, WORK } from '../verbs/table.ts';
import { claimVerbs, counterVerbs, eraseDropped, feedVerbs, heartbeat, intakeVerbs } from './verbs.ts';

/** Every verb on SQLite, by lane. */
export const LANES = {
  /** A delivery's answer waits for these. The heartbeat shows whether they are carried out. */
  intake: { ...INTAKE, ...intakeVerbs, heartbeat },
  work: { ...WORK, ...claimVerbs, catchUp: catchUpAtOnce, eraseDropped },
  /** Verbs that only read, in their own thread: no commit waits for them. */
  read: { ...READ, ...feedVerbs, ...counterVerbs },
};

/** The most calls of one lane in a batch, which bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/**
 * The most other calls in a batch with deliveries, or in one of the batches after it: a delivery that comes during a
 * batch waits for all of it. Large enough that one fsync serves many settlements, small enough for a few milliseconds.
 */
const OTHER_BESIDE_INTAKE_MAX = 64;
/** After this many batches without a delivery, none is expected. */
const QUIET_BATCHES = 8;

/** The queues in which calls wait for their batch, in the order of their arrival. */
export type Lanes<Call> = {
  add(call: Call): void;
  /** Takes the next batch; empty if nothing waits. */
  next(): Call[];
};

/** Deliveries go first. Other work fills what they leave, and always gets its share. */
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
