import { Socket } from 'node:net';
import pg from 'pg';
import { Fault } from '../../fault.ts';
import { notDurable } from './faults.ts';

/**
 * All of one call, in milliseconds: to find a connection, to wait for a row that another transaction holds, for one
 * statement at the server, for its answer here (if the server does not run at all), and of a transaction that was left
 * open by a replica that is gone.
 */
const TIMEOUTS = { connect: 3_000, lock: 2_000, statement: 4_000, answer: 5_000, idle: 10_000 } as const;
/** What every connection is opened with. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'settled',
    connectionTimeoutMillis: TIMEOUTS.connect,
    query_timeout: TIMEOUTS.answer,
    keepAlive: true,
    types: { getTypeParser },
    stream: () => new GatheringSocket(),
  };
}

/** Set by a statement, because a pooler refuses them as parameters of a new connection. */
const SET_TIMEOUTS = `SELECT set_config('lock_timeout', '${TIMEOUTS.lock}', false),
  set_config('statement_timeout', '${TIMEOUTS.statement}', false),
  set_config('idle_in_transaction_session_timeout', '${TIMEOUTS.idle}', false)`;

const INT8 = 20;
/** Of `sum`. */
const NUMERIC = 1700;

/** Whole numbers of 64 bits are read as numbers: keys, times and money stay below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = ((oid: number, format: 'text' | 'binary') =>
  format !== 'binary' && (oid === INT8 || oid === NUMERIC)
    ? wholeNumber
    : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser;

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new Error(`${text} from the database is no whole number below 2^53`);
  return number;
}

/**
 * A way to the server on which what is sent in one go of the event loop travels as one piece: `pg` corks and uncorks it
 * around each statement, and a transaction sends several at once. Settlements take an eighth less of the processor so.
 */
class GatheringSocket extends Socket {
  #isGathering = false;

  override cork(): void {
    if (!this.#isGathering) super.cork();
  }

  override uncork(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    process.nextTick(() => {
      this.#isGathering = false;
      super.uncork();
    });
  }
}

/** What is checked of every new connection. */
const INSPECT = `SELECT current_setting('fsync', true) AS fsync, current_setting('server_version_num')::int AS version,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby"`;
const VERSION_MIN = 140_000;

type Inspected = { fsync: string | null; version: number; encoding: string; isStandby: boolean };

/**
 * Throws if a connection must not be used, because its server is a standby, too old, or would acknowledge what a crash of
 * its machine undoes. Sets the timeouts of the connection; each transaction sets `synchronous_commit`. All faults are
 * transient: while settled serves, another server may come to answer at the same address, and no event is given up for that.
 */
export async function assertUsable(client: pg.ClientBase, name: string): Promise<void> {
  void client.query(SET_TIMEOUTS).catch(() => {});
  const found = (await client.query<Inspected>(INSPECT)).rows[0] as Inspected;
  if (found.isStandby) {
    throw new Fault(
      'transient',
      'store_unwritable',
      `${name} is a standby, which cannot be written. Name the primary, by an address that follows it.`,
    );
  }
  if (found.version < VERSION_MIN) {
    const what = `${name} runs PostgreSQL ${Math.floor(found.version / 10_000)}; settled needs 14 or later.`;
    throw new Fault('transient', 'configuration_invalid', what);
  }
  if (found.encoding !== 'UTF8') {
    const what = `${name} is encoded as ${found.encoding}. Make a database with the encoding UTF8.`;
    throw new Fault('transient', 'configuration_invalid', what);
  }
  if (found.fsync === 'off') throw notDurable(name);
}
