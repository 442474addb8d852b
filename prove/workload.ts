import { openSync, writeSync } from 'node:fs';
import { secretsKeyFile } from '../src/secrets/key_files.ts';
import { openKeyring } from '../src/secrets/keyring.ts';
import { type Call, openWriter, type Writer } from '../src/store/sqlite/group_commit.ts';
import { type OpenedDatabase, openForWriting } from '../src/store/sqlite/open.ts';
import type { ClaimRef } from '../src/store/verbs/inbox.ts';
import { type Chance, chanceOf } from './harness/chance.ts';
import {
  CLAIM_AT_MS,
  deliveryOf,
  eventNumber,
  isSame,
  linksOfEvents,
  type Progress,
  registrationOf,
  settleJobOf,
} from './test_data.ts';

/**
 * The recorded process: settled's own engine, opened as settled opens it, with batches of calls. Its argument is a
 * session as JSON. It marks in the recording what it asks for and what was acknowledged.
 */
export type Session = {
  path: string;
  /** The file for marks. */
  marks: string;
  seed: number;
  batches: number;
  /** After how many pages of the log SQLite makes a checkpoint; null for settled's own setting. */
  checkpointPages: number | null;
  /** NORMAL is for the control: settled itself sets FULL. */
  synchronous: 'FULL' | 'NORMAL';
  end: 'close' | 'kill';
};

export type Mark =
  | { mark: 'session' }
  /** The database is open. */
  | { mark: 'serving'; progress: Progress }
  | { mark: 'asked'; progress: Progress }
  | { mark: 'acknowledged'; progress: Progress };

const session = JSON.parse(process.argv[2] ?? '') as Session;
const marks = openSync(session.marks, 'a');

function work(): void {
  const { path, seed, batches, end } = session;
  const chance = chanceOf(seed, batches);
  mark({ mark: 'session' });
  const options = optionsOf(path);
  const opened = open(options);
  let ids = 0;
  const writer = openWriter({ ...options, newId: () => `notice-${seed}-${++ids}` }, opened);
  let progress = progressOf(opened);
  mark({ mark: 'serving', progress });
  let claimed: ClaimRef[] = [];
  for (let n = 0; n < batches; n++) {
    const batch = nextBatch(progress, claimed, chance, options.secretsKeyId);
    mark({ mark: 'asked', progress: batch.progress });
    const newlyClaimed = run(writer, batch.calls);
    progress = batch.progress;
    mark({ mark: 'acknowledged', progress });
    claimed = claimed.slice(batch.settles).concat(newlyClaimed);
  }
  if (!isSame(progress, progressOf(opened))) throw new Error('the database does not hold what was acknowledged');
  if (end === 'kill') process.kill(process.pid, 'SIGKILL');
  writer.close();
}

function open(options: ReturnType<typeof optionsOf>): OpenedDatabase {
  const opened = openForWriting(options);
  const { checkpointPages, synchronous } = session;
  if (checkpointPages !== null) opened.db.pragma(`wal_autocheckpoint = ${checkpointPages}`);
  if (synchronous !== 'FULL') opened.db.pragma(`synchronous = ${synchronous}`);
  return opened;
}

function optionsOf(path: string) {
  const { keyId } = openKeyring(secretsKeyFile(path));
  return { path, secretsKeyId: keyId, newInstanceId: 'instance', nowMs: 1 };
}

function progressOf({ db }: OpenedDatabase): Progress {
  return db
    .prepare(
      `SELECT (SELECT count(*) FROM link) AS links, (SELECT count(*) FROM inbox) AS events,
         (SELECT count(*) FROM inbox WHERE status = 'done') AS settled`,
    )
    .get() as Progress;
}

type Batch = { calls: Call[]; progress: Progress; settles: number };

/** Up to some 80 calls, mixed as in settled's own batches: deliveries first, then settlements and a claim. */
function nextBatch({ links, events, settled }: Progress, claimed: ClaimRef[], chance: Chance, keyId: string): Batch {
  const size = chance.between(1, chance.oneIn(2) ? 8 : 40);
  if (links < 40 || links < linksOfEvents(events + size) || chance.oneIn(12)) {
    const calls = numbers(links, size).map((link) => call('registerLink', registrationOf(link, keyId)));
    return { calls, progress: { links: links + size, events, settled }, settles: 0 };
  }
  const deliveries = chance.oneIn(3) ? 0 : size;
  const calls = numbers(events, deliveries).map((event) => call('recordDelivery', deliveryOf(eventNumber(event))));
  if (events > 0 && chance.oneIn(4)) {
    const again = eventNumber(chance.between(1, events));
    calls.push(call('recordDelivery', deliveryOf(again)));
  }
  const settles = Math.min(claimed.length, deliveries === 0 || chance.oneIn(2) ? size : 1);
  for (const claim of claimed.slice(0, settles)) calls.push(call('settle', settleJobOf(claim)));
  if (claimed.length - settles < 40) {
    calls.push(call('claimEvents', { limit: size, nowMs: CLAIM_AT_MS, leaseMs: 1_000_000 }));
  }
  return { calls, progress: { links, events: events + deliveries, settled: settled + settles }, settles };
}

/** Runs a batch, and checks the outcome of every call. Returns the claimed events. */
function run(writer: Writer, calls: Call[]): ClaimRef[] {
  const answers = writer.run(calls);
  const claimed: ClaimRef[] = [];
  for (const [index, answer] of answers.entries()) {
    if (!answer.ok) throw answer.error;
    const { verb } = calls[index] as Call;
    if (verb === 'claimEvents') claimed.push(...(answer.value as ClaimRef[]));
    else expectDone(verb, (answer.value as { outcome: string }).outcome);
  }
  return claimed.map(({ eventKey, attempt }) => ({ eventKey, attempt }));
}

const DONE: Record<string, readonly string[]> = {
  registerLink: ['created'],
  recordDelivery: ['recorded', 'duplicate'],
  settle: ['applied'],
};

function expectDone(verb: string, outcome: string): void {
  if (!DONE[verb]?.includes(outcome)) throw new Error(`${verb} said ${outcome}`);
}

function call(verb: string, argument: unknown): Call {
  return { verb, args: [argument] };
}

function numbers(after: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => after + 1 + index);
}

function mark(given: Mark): void {
  writeSync(marks, `${JSON.stringify(given)}\n`);
}

work();
