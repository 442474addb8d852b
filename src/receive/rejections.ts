import type { Intake, KeptReason, Rejection } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';

/** A link's rejections are written at most this often; in between they are counted. */
const WRITE_EVERY_MS = 1000;
/** Links and reasons counted at once; beyond it rejections are not kept, only metered. */
const COUNTED_MAX = 10_000;

/** Keeps why deliveries were refused, after they were answered and without letting a flood reach the disk. */
export type RejectionLog = {
  add(linkKey: number, reason: KeptReason): void;
  /** Writes what is counted and waits for it. */
  flush(): Promise<void>;
};

export function rejectionLog(options: {
  store: Pick<Intake, 'recordRejection'>;
  clock: Clock;
  onWritten: (rejection: Rejection) => void;
  onFailed: (error: unknown) => void;
}): RejectionLog {
  const { store, clock, onWritten, onFailed } = options;
  const counted = new Map<string, Rejection>();

  async function write(key: string): Promise<void> {
    const rejection = counted.get(key);
    if (rejection === undefined || rejection.count === 0) {
      counted.delete(key);
      return;
    }
    counted.set(key, { ...rejection, count: 0 });
    clock.after(WRITE_EVERY_MS, () => void write(key));
    try {
      await store.recordRejection(rejection);
      onWritten(rejection);
    } catch (error) {
      countAgain(key, rejection);
      onFailed(error);
    }
  }

  /** A write that failed is carried by the next one: it queues the link's check as well. */
  function countAgain(key: string, rejection: Rejection): void {
    const since = counted.get(key);
    if (since === undefined) clock.after(WRITE_EVERY_MS, () => void write(key));
    counted.set(key, { ...rejection, ...since, count: rejection.count + (since?.count ?? 0) });
  }

  return {
    add: (linkKey, reason) => {
      const key = `${linkKey} ${reason}`;
      const before = counted.get(key);
      if (before === undefined && counted.size >= COUNTED_MAX) return;
      counted.set(key, { linkKey, reason, count: (before?.count ?? 0) + 1, lastAtMs: clock.nowMs() });
      if (before === undefined) void write(key);
    },
    flush: async () => {
      await Promise.all([...counted.keys()].map(write));
    },
  };
}
