/** Calls of one lane in one batch at most: it bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/** While deliveries wait, other work gets one call for so many of them. */
const INTAKE_PER_OTHER = 16;

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
  return {
    add: (call) => void (INTAKE.has(call.verb) ? intake : other).push(call),
    next: () => {
      const deliveries = intake.splice(0, BATCH_MAX);
      const share =
        deliveries.length === 0 ? BATCH_MAX : Math.max(1, Math.floor(deliveries.length / INTAKE_PER_OTHER));
      return deliveries.concat(other.splice(0, share));
    },
  };
}
