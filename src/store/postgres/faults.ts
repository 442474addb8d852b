import { DatabaseError } from 'pg';
import { Fault } from '../../fault.ts';

/** What is worth carrying out again from the beginning: another transaction was in the way, and nothing was kept. */
const RERUN = new Set(['40001', '40P01']);

/** Another transaction gave a link id to another order just now, which is seen from the beginning. */
const ID_TAKEN_MEANWHILE = { code: '23505', constraint: 'link_link_id_key' };

export function isWorthRerunning(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  const { code = '', constraint } = error;
  return (
    RERUN.has(code) || (code === ID_TAKEN_MEANWHILE.code && constraint === ID_TAKEN_MEANWHILE.constraint)
  );
}

/** Whether a statement was not carried out because one before it in its transaction had failed. */
export function isAfterFailure(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '25P02';
}

/** Whether a statement itself was refused: the connection is as good as before. */
export function isRefusedStatement(error: unknown): boolean {
  return error instanceof DatabaseError && /^(22|23|40|42|55|57014|P0)/.test(error.code ?? '');
}

/**
 * Names what PostgreSQL or the way to it says, for errors that are theirs and not a bug. After all of them work goes on by
 * itself once they are over: another server may answer at the same address.
 */
export function storeFault(error: unknown, name: string): unknown {
  if (error instanceof Fault) return error;
  const cause = { cause: error };
  if (!(error instanceof DatabaseError)) {
    if (error instanceof Error && error.message.startsWith('SASL'))
      return refused(name, error.message, cause);
    if (!isConnectionLoss(error)) return error;
    const { message } = error as Error;
    if (message === ALL_TAKEN) return busy(name, 'every connection was in use for too long', cause);
    return new Fault(
      'transient',
      'store_unreachable',
      `${name} does not answer (${message || 'at none of its addresses'}). Check that PostgreSQL runs there and that nothing stands between; work goes ` +
        'on by itself.',
      cause,
    );
  }
  const { code = '', message } = error;
  if (code.startsWith('28') || code === '3D000') return refused(name, message, cause);
  // 55000: it was closed to connections, as for its upkeep.
  if (code.startsWith('57P') || code.startsWith('08') || code === '55000') {
    const what = `${name} ended the connection (${message}). Work goes on by itself when it is back.`;
    return new Fault('transient', 'store_unreachable', what, cause);
  }
  if (code === '53100') {
    return new Fault('transient', 'store_full', `No space is left for ${name}. Free some.`, cause);
  }
  if (code === '25006' || code === '42501') {
    const what = `${name} cannot be written (${message}). Name the primary, and a role that owns settled's tables.`;
    return new Fault('transient', 'store_unwritable', what, cause);
  }
  if (UNPREPARED.has(code)) {
    const what = `A pooler before ${name} lends a session for one transaction, and loses prepared statements (${message}).`;
    const remedy =
      'Use pgbouncer 1.21 or later with max_prepared_statements above 0, or name the server itself.';
    return new Fault('transient', 'configuration_invalid', `${what} ${remedy}`, cause);
  }
  if (RERUN.has(code) || code.startsWith('53') || code === '57014' || code.startsWith('55P')) {
    return busy(name, message, cause);
  }
  return error;
}

/** A statement was prepared already, or was not, in a session that is not the one of before. */
const UNPREPARED = new Set(['42P05', '26000']);
/** What the pool says where none of its connections came free in time. */
const ALL_TAKEN = 'timeout exceeded when trying to connect';

/** Transient: a password may be changed in both places, one after the other, while settled serves. */
function refused(name: string, why: string, cause: ErrorOptions): Fault {
  const what = `${name} refuses settled (${why}). Check the user, the password and the database in SETTLED_STORE.`;
  return new Fault('transient', 'configuration_invalid', what, cause);
}

function busy(name: string, why: string, cause: ErrorOptions): Fault {
  const what = `${name} does not keep up (${why}). Look at its load and its locks; try again.`;
  return new Fault('transient', 'store_busy', what, cause);
}

const NETWORK =
  /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT|EACCES|ESOCKET|CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;
/** What `pg` says of connections, in words alone. */
const WORDS = /timeout|terminated|not queryable|connection error|Connection ended|SSL/i;

function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errors } = error as NodeJS.ErrnoException & { errors?: unknown[] };
  // A name with several addresses fails with the failures of all.
  if (Array.isArray(errors)) return errors.some(isConnectionLoss);
  return NETWORK.test(code ?? '') || (code === undefined && WORDS.test(error.message));
}
