import { steppedDelayMs } from '../domain/retry.ts';
import {
  type AlertMessage,
  type AlertReader,
  digestMessage,
  mattersMessage,
  reminderMessage,
  testMessage,
} from '../explain/alert_message.ts';
import { noteOf } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { AlertState, alertQueries, alertVerbs, ClaimedAlert } from '../store/verbs/alerts.ts';
import type { Clock } from '../work/clock.ts';
import { type BackgroundWorker, startLoop } from '../work/loop.ts';
import { dayOf, localTime, momentOf } from '../work/zone.ts';
import type { Channel, ChannelAnswer } from './hook.ts';

/** How often a channel looks whether there is something to tell. */
const LOOK_MS = 2_000;
/** Without a change in the store. */
const LOOK_QUIET_MS = 60_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** What opens within this time of the first goes out with it. */
const GATHER_MS = 10_000;
/** The most entries that one message tells. */
const ENTRIES_MAX = 500;
/** Longer than the longest attempt, of a mail server that speaks slowly. */
const LEASE_MS = 75_000;
/** How long a stop waits for the answer to what was sent: without it the message comes again. The app's stop waits longer. */
const STOP_MS = 2_000;
/** Without an end: what has opened meanwhile goes out with the next message. */
const RETRY = { stepsMs: [5_000, 15_000, 30_000, MINUTE_MS, 2 * MINUTE_MS], forMs: Number.POSITIVE_INFINITY };

export type AlertsOptions = Omit<AlertReader, 'unlisted' | 'nowMs'> & {
  channels: readonly Channel[];
  store: Pick<Store, keyof typeof alertVerbs | keyof typeof alertQueries | 'listMatters' | 'quietMs'>;
  clock: Clock;
  random: () => number;
  newId: () => string;
  log: Log;
  unlisted: () => readonly string[];
  /** When the figures of a day are sent, like `08:00`, and in which time zone; null: never. */
  digest: { at: string; zone: string } | null;
  /** Whether the shop has a callback. */
  canTell: boolean;
};

/** Without an answer. */
const STOPPED: ChannelAnswer = { fault: null, isTaken: false, answer: null };

type TestedChannel = { name: Channel['name'] } & ChannelAnswer;

export type Alerts = Pick<BackgroundWorker, 'stop'> & {
  /** The configured channels. */
  names: readonly Channel['name'][];
  /** Sends a test by each channel at once. */
  test(): Promise<TestedChannel[]>;
};

/** Tells people what needs them, by each configured channel for itself. */
export function startAlerts(options: AlertsOptions): Alerts {
  const { channels, store, clock, log } = options;
  const names = channels.map(({ name }) => name);
  let isOpen = false;
  // Once: a replica that started later may have other settings, and what it has removed stays removed.
  async function open(): Promise<void> {
    if (isOpen) return;
    await store.openAlertChannels({ names, digests: options.digest !== null, nowMs: clock.nowMs() });
    isOpen = true;
  }
  if (channels.length === 0) {
    open().catch((fault: unknown) => {
      log.warn({ fault }, 'the channels that were removed could not be forgotten; the next start tries again');
    });
  }
  const loops = channels.map((channel) => startChannel(options, channel, open));

  async function testOne({ name, write, send }: Channel): Promise<TestedChannel> {
    const body = write(testMessage(readerOf(options)), clock.nowMs());
    return { name, ...((await send({ id: `alert_test_${options.newId()}`, body })) ?? STOPPED) };
  }

  return {
    names,
    test: () => Promise.all(channels.map(testOne)),
    stop: async () => {
      const close = () => channels.map((channel) => channel.close());
      const cancel = clock.after(STOP_MS, close);
      await Promise.all(loops.map((loop) => loop.stop()));
      cancel();
      close();
    },
  };
}

/** Writes and sends the messages of one channel, one after the other. `open`: opens the channels unless they were opened. */
function startChannel(options: AlertsOptions, channel: Channel, open: () => Promise<void>): BackgroundWorker {
  const { store, clock, log } = options;
  const compose = openComposer(options, channel);
  let looked = { atMs: Number.NEGATIVE_INFINITY, isIdle: false };
  let isTold = false;
  /** An attempt whose end is not written yet: until it is, nothing else is sent. */
  let ended: Ended | null = null;

  /** Null if there is nothing to do until the store changes. */
  async function look(nowMs: number): Promise<number | null> {
    const state = (await store.alertChannels()).find(({ name }) => name === channel.name);
    if (state === undefined) return null;
    if (state.hasMessage) return sendDue(state, nowMs);
    const pacedMs = MINUTE_MS - Math.min(...[state.composedAtMs, state.takenAtMs].map((ms) => since(ms, nowMs)));
    if (pacedMs > 0) return pacedMs;
    return compose(state, nowMs);
  }

  async function sendDue(state: AlertState, nowMs: number): Promise<number> {
    const claimed = await store.claimAlert({ channel: channel.name, nowMs, leaseMs: LEASE_MS });
    // It waits for its next attempt, or another replica sends it.
    if (claimed === null) return Math.min(LOOK_QUIET_MS, Math.max(LOOK_MS, (state.dueAtMs ?? 0) - nowMs));
    const answer = await channel.send(claimed);
    if (answer === null) return 0;
    ended = { claimed, answer };
    await note(ended);
    return 0;
  }

  async function note({ claimed: { id, number, attempt }, answer: { fault, isTaken, answer } }: Ended): Promise<void> {
    const nowMs = clock.nowMs();
    const delayMs = steppedDelayMs(RETRY, { attempt, triedForMs: 0 }, options.random()) ?? 0;
    const dueAtMs = isTaken ? null : nowMs + delayMs;
    const end = { fault: fault === null ? null : noteOf(fault), answer, dueAtMs, nowMs };
    await store.endAlert({ channel: channel.name, number, attempt, ...end });
    ended = null;
    const about = { channel: channel.name, alert: id };
    if (fault === null) log.info(about, 'people were told what needs them');
    else if (isTaken) log.warn({ ...about, fault }, 'not everybody was told what needs them');
    else log[attempt === 1 ? 'warn' : 'debug']({ ...about, fault }, 'an alert was not taken; it is sent again');
  }

  async function turn(): Promise<number> {
    await open();
    if (ended !== null) await note(ended);
    const nowMs = clock.monotonicMs();
    const agoMs = nowMs - looked.atMs;
    if (looked.isIdle && agoMs < LOOK_QUIET_MS && store.quietMs() > agoMs) return LOOK_MS;
    const waitMs = await look(clock.nowMs());
    looked = { atMs: nowMs, isIdle: waitMs === null };
    isTold = false;
    return waitMs ?? LOOK_MS;
  }

  return startLoop({
    clock,
    turn: async (may) => {
      try {
        return await turn();
      } catch (fault) {
        if (!isTold && !may.isStopping())
          log.warn({ channel: channel.name, fault }, 'alerts cannot be sent; trying again');
        isTold = true;
        return LOOK_MS;
      }
    },
  });
}

type Ended = { claimed: ClaimedAlert; answer: ChannelAnswer };

/** Milliseconds since a time, at least 0; without an end if it never was, or if the clock was ahead then. */
function since(ms: number | null, nowMs: number): number {
  return ms === null || ms > nowMs + MINUTE_MS ? Number.POSITIVE_INFINITY : Math.max(0, nowMs - ms);
}

type Composed = { message: AlertMessage; entries?: readonly number[]; reminds?: boolean; digests?: boolean };

/** Returns what writes the next message of a channel: the milliseconds until it looks again, or null if there is nothing to tell. */
function openComposer(options: AlertsOptions, channel: Channel) {
  const { store, digest } = options;
  /** When it last read all that waits for a reminder, which may be much. */
  let lookedAtMs: number | null = null;
  const readWaiting = () => store.listMatters({ kind: null, state: null, after: null, limit: 0 });

  async function ofEntries(reader: AlertReader): Promise<Composed> {
    const entries = await store.alertEntries({ channel: channel.name, limit: ENTRIES_MAX });
    return { message: mattersMessage(entries, await readWaiting(), reader), entries: entries.map(({ key }) => key) };
  }

  async function ofDay({ digestedAtMs }: AlertState, reader: AlertReader): Promise<Composed | null> {
    const { nowMs } = reader;
    if (digest === null || digestedAtMs === null) return null;
    const dueAtMs = lastDigestMs(digest, nowMs);
    // By so much the clock was ahead then.
    const afterMs = digestedAtMs > nowMs + DAY_MS ? lastDigestMs(digest, dueAtMs - 1) : digestedAtMs;
    if (afterMs >= dueAtMs) return null;
    const paid = await store.paidBetween({ afterMs, untilMs: nowMs });
    const minute = (ms: number) => localTime(digest.zone, ms).slice(0, '2026-11-23 08:03'.length);
    const period = `from ${minute(afterMs)} to ${minute(nowMs)}, ${digest.zone}`;
    const told = { ...reader, period, canTell: options.canTell };
    return { message: digestMessage(paid, await readWaiting(), told), digests: true };
  }

  async function ofReminder({ remindedAtMs }: AlertState, reader: AlertReader): Promise<Composed | null> {
    const { nowMs } = reader;
    if (since(remindedAtMs, nowMs) < DAY_MS || since(lookedAtMs, nowMs) < MINUTE_MS) return null;
    lookedAtMs = nowMs;
    const waiting = await readWaiting();
    const oldestAtMs = Math.min(...waiting.groups.map(({ oldestAtMs }) => oldestAtMs));
    if (waiting.groups.length === 0 || (remindedAtMs !== null && oldestAtMs > nowMs - DAY_MS)) return null;
    return { message: reminderMessage(waiting, reader), reminds: true };
  }

  return async (state: AlertState, nowMs: number): Promise<number | null> => {
    const reader = { ...readerOf(options), nowMs };
    if (state.waiting > 0) {
      const gatherMs = GATHER_MS - since(state.waitingSinceMs, nowMs);
      if (gatherMs > 0) return gatherMs;
    }
    const composed =
      (await ofDay(state, reader)) ?? (await (state.waiting > 0 ? ofEntries(reader) : ofReminder(state, reader)));
    if (composed === null) return null;
    const { message, entries = [], reminds = false, digests = false } = composed;
    const body = channel.write(message, nowMs);
    await store.putAlert({ channel: channel.name, number: state.number, body, entries, reminds, digests, nowMs });
    return 0;
  };
}

function readerOf(options: AlertsOptions): AlertReader {
  const { consoleUrl, badge, showsCustomers, clock } = options;
  return { consoleUrl, badge, showsCustomers, unlisted: options.unlisted(), nowMs: clock.nowMs() };
}

/** The latest time, until now, at which the clock of the zone showed `at`. A day may have 25 hours. */
function lastDigestMs({ at, zone }: { at: string; zone: string }, nowMs: number): number {
  const ofDay = (ms: number) => momentOf(zone, `${dayOf(zone, ms)} ${at}`) ?? 0;
  return [0, DAY_MS / 2, DAY_MS].map((agoMs) => ofDay(nowMs - agoMs)).find((ms) => ms <= nowMs) ?? 0;
}
