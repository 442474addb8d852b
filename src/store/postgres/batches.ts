/** Batches under way at once: one is prepared while others wait for their commit. */
const UNDER_WAY_MAX = 2;
const CALLS_MAX = 256;

type Waiting<Call, Answer> = {
  call: Call;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
};

/**
 * Carries out calls together: those of one turn of the event loop, and those that come while as many batches as may be are
 * under way, travel as one. Where a batch fails for another reason than the way to the database, each of its calls is
 * carried out alone, so that none suffers for another.
 */
export function batched<Call, Answer>(options: {
  together: (calls: readonly Call[]) => Promise<Answer[]>;
  alone: (call: Call) => Promise<Answer>;
  /** Whether a failure of a batch may be one call's. */
  mayBeOnes: (error: unknown) => boolean;
}): (call: Call) => Promise<Answer> {
  const { together, alone, mayBeOnes } = options;
  const waiting: Waiting<Call, Answer>[] = [];
  let underWay = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= UNDER_WAY_MAX) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void carryOut(waiting.splice(0, CALLS_MAX));
      schedule();
    });
  }

  async function carryOut(batch: Waiting<Call, Answer>[]): Promise<void> {
    underWay++;
    try {
      const answers = await together(batch.map(({ call }) => call));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (mayBeOnes(error)) for (const { call, resolve, reject } of batch) alone(call).then(resolve, reject);
      else for (const { reject } of batch) reject(error);
    } finally {
      underWay--;
      schedule();
    }
  }

  return (call) =>
    new Promise((resolve, reject) => {
      waiting.push({ call, resolve, reject });
      schedule();
    });
}
