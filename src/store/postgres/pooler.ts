import { Fault } from '../../fault.ts';
import { Awaited, statement } from '../transaction.ts';
import type { Database } from './database.ts';
import { alone } from './open.ts';
import type { Servers } from './servers.ts';

/**
 * What is checked at the start because a pooler may stand between settled and the server: one that lends sessions for a
 * transaction would otherwise be found out by the first deliveries.
 */

const PREPARED = statement('SELECT 1 AS n');

/**
 * Throws if a session that is lent to another connection brings along, or lacks, what was prepared. A transaction of the
 * second connection takes the session in which the first one prepared a statement; then the first needs another session.
 * Behind a pooler that others use at the same moment it may find nothing. Faults: `configuration_invalid`.
 */
export async function assertKeepsStatements(one: Database, other: Database): Promise<void> {
  const ask = () => one.once((tx) => tx.one(PREPARED));
  await ask();
  await other.write(function* (tx) {
    yield* tx.one(PREPARED);
    yield new Awaited(ask());
  });
}

const TRY_LOCK = statement('SELECT pg_try_advisory_xact_lock(@key) AS isFree');

/**
 * Throws unless a server's own address leads to the database to which a pooler leads: a lock in one is seen in the other.
 * Faults: `configuration_invalid`.
 */
export async function assertSameDatabase(db: Database, direct: Servers, random: () => number): Promise<void> {
  const key = -1 - Math.floor(random() * 2 ** 48);
  await alone(direct, async (run) => {
    await run('SELECT pg_advisory_xact_lock($1)', [key]);
    const seen = await db.write((tx) => tx.one<{ isFree: boolean }>(TRY_LOCK, { key }));
    if (seen?.isFree === false) return;
    throw new Fault(
      'terminal',
      'configuration_invalid',
      `SETTLED_STORE_DIRECT leads to another database (${direct.name}) than SETTLED_STORE (${db.name}). Name the server and ` +
        'the database that the pooler leads to.',
    );
  });
}
