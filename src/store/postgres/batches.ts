import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import { WAITING_MAX } from '../contract.ts';
import { busy, mayBeOnes } from './faults.ts';

/** The most batches under way. Later calls gather, and share a commit, while one waits for its own. */
export const UNDER_WAY_MAX = 4;
/** The most calls of a batch, by default. */
const CALLS_MAX = 256;

type Waiting<Call, Answer> = {
  call: Call;
  resolve: (answer: Answer | Promise<Answer>) => void;
  reject: (error: unknown) => void;
  isOver: boolean;
};

type BatchOptions<Call, Answer> = {
  /** Answers each call. An answer that comes later does not delay the next batch. */
  together: (calls: readonly Call[]) => Promise<(Answer | Promise<Answer>)[]>;
  alone: (call: Call) => Promise<Answer>;
  /** The most calls of a batch. */
  callsMax?: number;
  /** Whether calls that wait are refused once the connection is lost, because somebody awaits their answer. */
  isAwaited?: boolean;
  clock: Clock;
  /** A call without an answer for this long is refused. If it was sent, it may still be carried out. */
  timeoutMs: number;
};

/**
 * Carries calls out together. Calls of one turn of the event loop form a batch, and so do calls that come while
 * `UNDER_WAY_MAX` batches are under way. If a batch fails for a reason that may be one call's, each call is carried out
 * alone. If the connection to the database is lost, the calls of its batch fail, and those that wait if they are awaited.
 */
export function batched<Call, Answer>(options: BatchOptions<Call, Answer>): (call: Call) => Promise<Answer> {
  const { together, alone, callsMax = CALLS_MAX, isAwaited = true, clock, timeoutMs } = options;
  let waiting: Waiting<Call, Answer>[] = [];
  let underWay = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= UNDER_WAY_MAX) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      waiting = waiting.filter(({ isOver }) => !isOver);
      if (waiting.length > 0) void carryOut(waiting.splice(0, callsMax));
      schedule();
    });
  }

  async function carryOut(batch: Waiting<Call, Answer>[]): Promise<void> {
    underWay++;
    try {
      const answers = await together(batch.map(({ call }) => call));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer | Promise<Answer>);
    } catch (error) {
      if (batch.length > 1 && mayBeOnes(error)) {
        for (const { call, resolve, isOver } of batch) if (!isOver) resolve(alone(call));
      } else for (const { reject } of batch) reject(error);
      if (isAwaited && error instanceof Fault && error.code === 'store_unreachable') {
        for (const { reject } of waiting.splice(0)) reject(error);
      }
    } finally {
      underWay--;
      schedule();
    }
  }

  return async (call) => {
    if (waiting.length >= WAITING_MAX) throw busy('The database', 'too many calls are waiting');
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const waits: Waiting<Call, Answer> = {
      call,
      resolve: (answer) => {
        // If the call was refused meanwhile, nothing awaits its late answer.
        if (answer instanceof Promise) answer.catch(() => {});
        resolve(answer);
      },
      reject,
      isOver: false,
    };
    const cancel = clock.after(timeoutMs, () => reject(busy('The database', `no answer within ${timeoutMs} ms`)));
    waiting.push(waits);
    schedule();
    try {
      return await promise;
    } finally {
      waits.isOver = true;
      cancel();
    }
  };
}
