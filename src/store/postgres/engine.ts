import { Fault } from '../../fault.ts';
import type { Asking } from '../asking.ts';
import type { Queries } from '../queries.ts';
import type { Refusals } from '../rejections.ts';
import type { Sharing } from '../replicas.ts';
import type { Inbox, Intake, Keeping, Links, Orders, Store } from '../store.ts';
import type { Telling } from '../telling.ts';
import type { Work } from '../transaction.ts';
import { READ, WORK } from '../verbs/table.ts';
import { claimVerbs } from './claims.ts';
import type { DatabaseClock } from './clock.ts';
import { clockStepVerbs } from './clock_steps.ts';
import type { Database } from './database.ts';
import { feedVerbs } from './feed.ts';
import { type Gate, openGate } from './gate.ts';
import { HINTS, type Hints } from './hints.ts';
import { intakeVerbs } from './intake.ts';
import { tellingVerbs } from './notices.ts';
import { queryVerbs } from './queries.ts';
import { heartbeat, leave, type Replica, replicaVerbs } from './replicas.ts';
import { retentionVerbs } from './retention.ts';
import { secretVerbs } from './secrets.ts';
import { catchUp, sweepVerbs } from './sweep.ts';
import { finish, type Transaction } from './transaction.ts';

type FeedVerb = keyof typeof feedVerbs;
type Writes = Links &
  Inbox &
  Orders &
  Refusals &
  Omit<Asking, 'catchUp'> &
  Telling &
  Pick<Queries, FeedVerb> &
  Omit<Keeping, 'backup' | 'close' | 'heartbeat'>;
type Reads = Omit<Queries, FeedVerb> & Sharing;

/** Each in a transaction of its own. */
const WRITES = {
  ...claimVerbs,
  ...sweepVerbs,
  ...tellingVerbs,
  ...feedVerbs,
  ...retentionVerbs,
  ...clockStepVerbs,
  ...secretVerbs,
};

/** Each sees one moment of the database: an order never disagrees with its ledger. */
const READS = { ...queryVerbs, ...replicaVerbs };

export type StoreParts = Replica & { clock: DatabaseClock; hints: Hints };

/** The verbs of the contract on a database that is open; deliveries have connections of their own. */
export function storeVerbs({ db, intake }: { db: Database; intake: Database }, parts: StoreParts): Store {
  const { clock, hints } = parts;
  const gate = openGate();
  let closed: Promise<void> | undefined;
  return {
    ...(bound(WRITES, (work) => gate.enter(() => db.write(work))) as Writes),
    ...(bound(READ, (work) => gate.enter(() => db.read(work))) as Pick<Store, keyof typeof READ>),
    ...(bound(WORK, (work) => gate.enter(() => db.write(work))) as Pick<Store, keyof typeof WORK>),
    ...(bound(READS, (work) => gate.enter(() => db.read(work))) as Reads),
    ...entered(intakeVerbs(intake, clock), gate),
    catchUp: (options: Parameters<Store['catchUp']>[0]) => gate.enter(() => catchUp(db, options)),
    heartbeat: (atMs: number) =>
      gate.enter(async () => {
        await clock.measure();
        return intake.write((tx) => heartbeat(tx, { ...parts, skewMs: clock.skewMs }, atMs));
      }),
    backup: () => Promise.reject(notOursToCopy(db.name)),
    close: () => (closed ??= close()),
  } as unknown as Store;

  async function close(): Promise<void> {
    await gate.shut();
    // What is left is another replica's.
    await db.write(leave).catch(() => {});
    for (const hint of HINTS) hints.send(hint);
    await hints.close();
    await Promise.all([db.close(), intake.close()]);
  }
}

/** The same verbs, refused once the gate is shut. */
function entered(verbs: Intake, gate: Gate): Intake {
  return {
    findCredentials: (by) => gate.enter(() => verbs.findCredentials(by)),
    recordDelivery: (delivery) => gate.enter(() => verbs.recordDelivery(delivery)),
    recordHint: (hint) => gate.enter(() => verbs.recordHint(hint)),
    recordRejection: (rejection) => gate.enter(() => verbs.recordRejection(rejection)),
  };
}

type Verb = (tx: Transaction, ...args: unknown[]) => Promise<unknown> | Work<unknown>;

/** The same verbs, each in the transaction that `carryOut` gives it. */
function bound(verbs: object, carryOut: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>): unknown {
  const names = Object.entries(verbs) as [string, Verb][];
  return Object.fromEntries(
    names.map(([name, verb]) => [
      name,
      (...args: unknown[]) =>
        carryOut((tx) => {
          const work = verb(tx, ...args);
          return 'next' in work ? finish(work) : work;
        }),
    ]),
  );
}

function notOursToCopy(name: string): Fault {
  return new Fault(
    'terminal',
    'configuration_invalid',
    `settled does not copy ${name}. Use pg_dump or your provider's backups: see Back up in docs/postgres.md.`,
  );
}
