import type { KeptReason, Refusals, Rejection } from '../store/rejections.ts';
import type { Intake } from '../store/store.ts';
import type { Cancel, Clock } from '../work/clock.ts';
import type { Diagnosis } from './diagnosis.ts';
import { diagnosisLimit } from './refusal.ts';

/** A link's rejections are written at most this often; in between they are counted. */
const WRITE_EVERY_MS = 1000;
/** Links and reasons counted at once; beyond it rejections are not kept, only metered. */
const COUNTED_MAX = 10_000;
/** So many links with deliveries refused for one reason are a matter for a person. */
const MATTER_FROM_LINKS = 3;
/** While a matter may be open it is looked at so often whether it has ended; otherwise once in many times. */
const END_EVERY_MS = 60_000;
const END_ELSE_EVERY = 15;

/** Keeps why deliveries were refused, after they were answered and without letting a flood reach the disk. */
export type RejectionLog = {
  /** `diagnose` is called at once, and seldom: a flood must not cost much. */
  add(linkKey: number, reason: KeptReason, diagnose?: () => Diagnosis | null): void;
  /** Ends, now and then, the matters that are over. */
  watch(): Cancel;
  /** Writes what is counted and waits for it. */
  flush(): Promise<void>;
};

type Counted = Pick<Rejection, 'linkKey' | 'reason' | 'count' | 'lastAtMs'> & { diagnosis: Diagnosis | null };

export function rejectionLog(options: {
  store: Pick<Intake, 'recordRejection'> & Refusals;
  clock: Clock;
  /** What a person is told of a reason that concerns enough links. */
  describe: (reason: KeptReason, diagnosis: Diagnosis | null) => string;
  /** `count`: how many refusals could not be noted. */
  onFailed: (error: unknown, count: number) => void;
}): RejectionLog {
  const { store, clock, describe, onFailed } = options;
  const counted = new Map<string, Counted>();
  const mayDiagnose = diagnosisLimit(clock);
  let mayBeOpen = true;

  async function write(key: string): Promise<void> {
    const rejection = counted.get(key);
    if (rejection === undefined || rejection.count === 0) {
      counted.delete(key);
      return;
    }
    counted.set(key, { ...rejection, count: 0, diagnosis: null });
    clock.after(WRITE_EVERY_MS, () => void write(key));
    try {
      await store.recordRejection(asWritten(rejection));
      mayBeOpen = true;
    } catch (error) {
      countAgain(key, rejection);
      onFailed(error, rejection.count);
    }
  }

  function asWritten({ diagnosis, ...rejection }: Counted): Rejection {
    // A name that settled does not look for is wrong for every link, or of one stranger's making: who knows an address may
    // send any name.
    const atFirst = diagnosis?.code === 'other_header_names' && diagnosis.prefix !== null;
    const detail = describe(rejection.reason, diagnosis);
    return {
      ...rejection,
      diagnosis: diagnosis === null ? null : JSON.stringify(diagnosis),
      matter: { detail, fromLinks: MATTER_FROM_LINKS, ...(atFirst ? { atFirst } : {}) },
    };
  }

  /** A write that failed is carried by the next one: it queues the link's check as well. */
  function countAgain(key: string, rejection: Counted): void {
    const since = counted.get(key);
    if (since === undefined) clock.after(WRITE_EVERY_MS, () => void write(key));
    const diagnosis = since?.diagnosis ?? rejection.diagnosis;
    counted.set(key, { ...rejection, ...since, diagnosis, count: rejection.count + (since?.count ?? 0) });
  }

  /** What it finds; nothing if it fails, because a refusal is counted all the same. */
  function diagnosed(diagnose: () => Diagnosis | null): Diagnosis | null {
    try {
      return diagnose();
    } catch (error) {
      onFailed(error, 1);
      return null;
    }
  }

  async function endMatters(): Promise<void> {
    try {
      const { open } = await store.endRefusals(clock.nowMs());
      mayBeOpen = open > 0;
    } catch {
      // The heartbeat tells of a store that fails, and this is looked at again.
    }
  }

  return {
    add: (linkKey, reason, diagnose) => {
      const key = `${linkKey} ${reason}`;
      const before = counted.get(key);
      if (before === undefined && counted.size >= COUNTED_MAX) return;
      const diagnosis = diagnose !== undefined && mayDiagnose(key, reason) ? diagnosed(diagnose) : null;
      counted.set(key, {
        ...{ linkKey, reason, count: (before?.count ?? 0) + 1, lastAtMs: clock.nowMs() },
        diagnosis: diagnosis ?? before?.diagnosis ?? null,
      });
      if (before === undefined) void write(key);
    },
    watch: () => {
      let times = 0;
      return clock.every(END_EVERY_MS, () => {
        if (mayBeOpen || ++times % END_ELSE_EVERY === 0) void endMatters();
      });
    },
    flush: async () => {
      await Promise.all([...counted.keys()].map(write));
    },
  };
}
