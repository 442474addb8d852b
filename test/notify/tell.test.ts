import { describe, expect, it } from 'vitest';
import { type TellOptions, tell } from '../../src/notify/tell.ts';
import { systemClock } from '../../src/work/clock.ts';
import { readableLog } from '../support/observe.ts';

const NOTICE = {
  noticeKey: 1,
  attempt: 1,
  id: 'msg_1_a',
  reference: 'order-1',
  type: 'order.paid',
  body: '{}',
  createdAtMs: 0,
  firstTriedAtMs: 0,
} as const;

/** One attempt at a shop that answers with `status` after 1.5 s, and a store that takes 7 s to write that and then says `said`. */
async function attempt(status: number, said?: 'lost') {
  let passedMs = 0;
  const write = <T>(otherwise: T) => {
    passedMs += 7_000;
    return Promise.resolve(said ?? otherwise);
  };
  const { log, lines } = readableLog();
  const seconds: number[] = [];
  const options: TellOptions = {
    store: { finishNotice: () => write('done'), retryNotice: () => write('pending'), buryNotice: () => write('dead') },
    target: {
      post: async () => {
        passedMs += 1_500;
        return { status, body: '', retryAfter: null, date: null };
      },
      close: () => {},
    },
    keys: [Buffer.alloc(32)],
    clock: { ...systemClock, nowMs: () => 0, monotonicMs: () => passedMs },
    random: () => 0,
    log,
    isDown: () => false,
    isClockTrusted: () => true,
    onAttempted: (attempt) => seconds.push(attempt.seconds),
  };
  return { told: await tell(options, NOTICE), seconds, lines };
}

describe('an attempt', () => {
  it.each([
    [204, 'delivered'],
    [500, 'retried'],
    [410, 'dead'],
  ])('answered %i takes as long as the shop does, and not as our commit after it', async (status, told) => {
    expect(await attempt(status)).toMatchObject({ told, seconds: [1.5] });
  });

  it.each([204, 500, 410])(
    'answered %i is neither counted nor logged if another process has the notice by then',
    async (status) => {
      expect(await attempt(status, 'lost')).toEqual({ told: null, seconds: [], lines: [] });
    },
  );
});
