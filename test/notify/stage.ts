import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { parseShopSecrets } from '../../src/config/parsers.ts';
import type { FactKind } from '../../src/domain/fact.ts';
import { type NotifierOptions, startNotifier } from '../../src/notify/notifier.ts';
import { openLog } from '../../src/observe/log.ts';
import type { Store } from '../../src/store/contract.ts';
import type { NoticeDetail, NoticeSummary } from '../../src/store/verbs/notice_lists.ts';
import { systemClock } from '../../src/work/clock.ts';
import type { BackgroundWorker } from '../../src/work/loop.ts';
import { type Link, said, World } from '../store/contract/world.ts';
import { openTestStore } from '../store/sqlite/opening.ts';
import { testFolder } from '../support/app.ts';
import { SHOP_SECRET, startCallback } from '../support/callback.ts';

/** settled looks for notices that are due so often. */
export const POLL_MS = 1_000;

/**
 * The stage alone: a real store, a real shop over HTTP, and a clock that only the test turns. What it sends, and what
 * the shop answers, takes no time.
 */
export async function startStage(options: Partial<NotifierOptions> & { query?: string } = {}) {
  const { query = '', ...over } = options;
  const clock = openClock({ startMs: 1_700_000_000_000, scale: 1e-6 });
  const shop = await startCallback({ clock });
  const path = join(testFolder(), 'settled.db');
  let opened = await openTestStore(path);
  let world = worldOf(opened.store);
  let watched = watch(opened.store);
  const outcomes: string[] = [];
  let notifier: BackgroundWorker = start();

  function start(): BackgroundWorker {
    return startNotifier({
      store: watched.store,
      shopUrl: shop.url + query,
      shopSecrets: parseShopSecrets(SHOP_SECRET),
      shopAllowPrivate: true,
      clock,
      deadlineClock: systemClock,
      random: Math.random,
      log: openLog('silent'),
      isClockTrusted: () => true,
      onAttempted: ({ outcome }) => outcomes.push(outcome),
      ...over,
    });
  }

  async function stop(): Promise<void> {
    await notifier.stop();
    await opened.store.close();
  }
  let stopped: Promise<void> | null = null;
  onTestFinished(async () => {
    stopped ??= stop();
    await clock.advance(10_000);
    await stopped;
  });

  /** Waits until nothing is under way but `held` notices that the shop does not answer. */
  async function quiet(held = 0): Promise<void> {
    for (let turns = 0; turns < 3; turns++) {
      await turn();
      while (watched.inHand() !== held) {
        await watched.change();
        turns = 0;
      }
    }
  }

  async function pass(byMs: number, held = 0): Promise<void> {
    await quiet(held);
    await clock.advance(byMs);
    await quiet(held);
  }

  async function list(status: NoticeSummary['status'] | null = null): Promise<NoticeSummary[]> {
    return (await opened.store.listNotices({ limit: 1_000, status })).rows.reverse();
  }

  /** Lets time pass, from one attempt that is due to the next. */
  async function passFar(byMs: number): Promise<void> {
    const untilMs = clock.nowMs() + byMs;
    for (;;) {
      await quiet();
      const dues = (await list('pending')).flatMap(({ dueAtMs }) => dueAtMs ?? []);
      const nextMs = Math.min(...dues) + POLL_MS;
      if (nextMs > untilMs) break;
      await pass(Math.max(0, nextMs - POLL_MS - clock.nowMs()));
      await pass(POLL_MS);
    }
    await pass(Math.max(0, untilMs - clock.nowMs()));
  }

  return {
    clock,
    shop,
    outcomes,
    quiet,
    pass,
    passFar,
    list,
    /** Stops the stage and its store, which takes time: the test turns the clock. */
    stop: () => {
      stopped = stop();
      return stopped;
    },
    /** Starts again on the same data. */
    restart: async () => {
      stopped = null;
      opened = await openTestStore(path);
      world = worldOf(opened.store);
      watched = watch(opened.store);
      notifier = start();
    },
    get store(): Store {
      return opened.store;
    },
    /** An order of 100.00 BRL that is unpaid. */
    newOrder: (reference?: string): Promise<Link> => {
      world.nowMs = clock.nowMs();
      return world.newLink(reference === undefined ? {} : { reference });
    },
    /** Something becomes true of an order's payment, and one notice of it is owed now. */
    happen: async (order: Link, kind: FactKind = 'completed', { isHeard = true } = {}): Promise<void> => {
      // The world is a second later once it settles.
      world.nowMs = clock.nowMs() - 1_000;
      await world.settle(order, [said(kind)]);
      if (isHeard) notifier.wake();
    },
    notice: async (id: string): Promise<NoticeDetail> => {
      const found = await opened.store.findNotice(id);
      if (found === null) throw new Error(`there is no notice ${id}`);
      return found;
    },
  };
}

export type Stage = Awaited<ReturnType<typeof startStage>>;

function worldOf(store: Store): World {
  return new World({
    store,
    reopen: async () => store,
    forgetChecks: async () => {},
    run: async () => [],
    dispose: async () => null,
  });
}

/** The store, and how much of it is in hand: calls that were not answered, and claimed notices that were not written. */
function watch(store: Store): { store: NotifierOptions['store']; inHand: () => number; change: () => Promise<void> } {
  let inHand = 0;
  let changing = Promise.withResolvers<void>();
  function change(by: number): void {
    inHand += by;
    changing.resolve();
    changing = Promise.withResolvers();
  }
  async function call<T>(answer: Promise<T>, after: (value: T) => number): Promise<T> {
    change(1);
    try {
      const value = await answer;
      change(after(value));
      return value;
    } finally {
      change(-1);
    }
  }
  const ended = () => -1;
  return {
    inHand: () => inHand,
    change: () => changing.promise,
    store: {
      quietMs: store.quietMs,
      claimNotices: (claim) => call(store.claimNotices(claim), (claimed) => claimed.length),
      finishNotice: (told) => call(store.finishNotice(told), ended),
      retryNotice: (failed) => call(store.retryNotice(failed), ended),
      buryNotice: (failed) => call(store.buryNotice(failed), ended),
    },
  };
}
