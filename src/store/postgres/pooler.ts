import { terminalFault } from '../../fault.ts';
import { Awaited, statement } from '../transaction.ts';
import type { Database } from './database.ts';
import { alone } from './open.ts';
import type { Servers } from './servers.ts';

/**
 * Checks at the start whether a pooler between settled and the server works. One that lends sessions for each
 * transaction would otherwise fail at the first deliveries.
 */

const PREPARED = statement('SELECT 1 AS n');

/**
 * Throws if prepared statements do not follow their connection when a pooler lends its session to another. A
 * transaction of the second connection takes the session in which the first prepared a statement, so the first needs
 * another session. If others use the pooler at that moment, this may miss the problem. Faults: `configuration_invalid`.
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
 * Throws unless a server's direct address leads to the same database as the pooler: a lock in one is visible in the
 * other. Faults: `configuration_invalid`.
 */
export async function assertSameDatabase(db: Database, direct: Servers, random: () => number): Promise<void> {
  const key = -1 - Math.floor(random() * 2 ** 48);
  await alone(direct, async (run) => {
    await run('SELECT pg_advisory_xact_lock($1)', [key]);
    const seen = await db.write((tx) => tx.one<{ isFree: boolean }>(TRY_LOCK, { key }));
    if (seen?.isFree === false) return;
    throw terminalFault(
      'configuration_invalid',
      `SETTLED_STORE_DIRECT leads to another database (${direct.name}) than SETTLED_STORE (${db.name}). Name the server and ` +
        'the database that the pooler leads to.',
    );
  });
}
