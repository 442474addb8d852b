import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ClientBase, DatabaseError } from 'pg';
import { Fault, transientFault } from '../../fault.ts';
import type { ServerAddress } from '../address.ts';

/** Run the work again: another transaction was in the way, and nothing was kept. */
const RERUN = new Set(['40001', '40P01']);

/** Another transaction has just given a link id to another order. A new run sees it. */
const ID_TAKEN_MEANWHILE = { code: '23505', constraint: 'link_link_id_key' };

export function isWorthRerunning(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  const { code = '', constraint } = error;
  return RERUN.has(code) || (code === ID_TAKEN_MEANWHILE.code && constraint === ID_TAKEN_MEANWHILE.constraint);
}

const statements = new WeakMap<DatabaseError, string>();

/** Notes the text of a statement that failed, for `failedStatement`. */
export function noteStatement(error: unknown, sql: string): void {
  if (error instanceof DatabaseError) statements.set(error, sql);
}

/** The line of the failed statement at which the server points, or its first; null if the error has no statement. */
export function failedStatement(error: unknown): string | null {
  const cause = error instanceof Fault ? error.cause : error;
  const sql = cause instanceof DatabaseError ? statements.get(cause) : undefined;
  if (sql === undefined) return null;
  const before = sql.slice(0, Number((cause as DatabaseError).position ?? 1) - 1);
  return sql.split('\n')[before.split('\n').length - 1]?.trim() ?? null;
}

/** Whether a statement was skipped because an earlier one in its transaction had failed. */
export function isAfterFailure(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '25P02';
}

/** Whether a batch may have failed because of one of its calls. */
export function mayBeOnes(error: unknown): boolean {
  if (error instanceof Fault) return isRefusedStatement(error.cause);
  // What is neither a fault nor an answer of PostgreSQL is a bug that one call has met.
  return isRefusedStatement(error) || !(error instanceof DatabaseError);
}

/** Whether a statement itself was refused, so that the connection is still usable. */
export function isRefusedStatement(error: unknown): boolean {
  return error instanceof DatabaseError && /^(22|23|40|42|55|57014|P0)/.test(error.code ?? '');
}

/**
 * Says why a connection cannot be opened, if its configuration must change. While settled serves, even that may pass:
 * somebody replaces a certificate, or changes a setting of the server.
 */
export function connectionFault(error: unknown, { url, name }: ServerAddress): unknown {
  if (!(error instanceof Error) || error instanceof Fault) return error;
  const { message } = error;
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  const cause = { cause: error };
  if (error instanceof DatabaseError) {
    if (code === '42501') {
      const remedy = 'Give the role the right (GRANT CONNECT ON DATABASE), or name its own database in SETTLED_STORE.';
      return refused(name, message, remedy, cause);
    }
    if (REFUSED_PARAMETER.has(code)) return refused(name, message, 'Check `options` in SETTLED_STORE.', cause);
    return error;
  }
  // Sockets give these codes too, and then the file is not what is missing.
  const isOfFile = FILE.test(code) && syscall !== 'connect';
  if (isOfFile || TLS.test(code)) {
    const files = tlsFilesFault(url, name);
    if (files !== null) return files;
  }
  if (UNTRUSTED.test(code)) {
    // Node adds advice about itself.
    const why = message.split(';', 1)[0];
    const what = `${name} shows a certificate that is not trusted (${why}).`;
    return unusable(`${what} Check sslmode, sslrootcert and the host's name in SETTLED_STORE.`, cause);
  }
  if (message === NO_TLS) {
    const remedy = 'Set ssl = on at the server; or sslmode=disable in SETTLED_STORE where the network is yours alone.';
    return unusable(`${name} offers no TLS. ${remedy}`, cause);
  }
  if (isOfFile || TLS.test(code) || message.includes('sslnegotiation')) {
    const remedy = 'Check sslmode, sslrootcert, sslcert, sslkey and sslnegotiation in SETTLED_STORE.';
    return unusable(`TLS with ${name} fails (${message}). ${remedy}`, cause);
  }
  if (code === 'ERR_SOCKET_BAD_PORT') {
    return unusable(`${name} cannot be connected to: PGPORT is no port. Say it in SETTLED_STORE.`, cause);
  }
  return error;
}

/** Codes for refused parameters of a new connection. */
const REFUSED_PARAMETER = new Set(['42704', '42601', '22023']);
const FILE = /^(ENOENT|EISDIR|EACCES|EPERM)$/;
const UNTRUSTED = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA|INVALID_PURPOSE|HOSTNAME_)/;
const TLS = new RegExp(`^ERR_O?SSL_|${UNTRUSTED.source}`);
/** The message of `pg` if a connected server does not answer in time. */
const READ_TIMEOUT = 'Query read timeout';
/** A commit that waits for a standby looks like a hanging server, and the locks that it holds look like load. */
const STANDBY = 'that a standby answers if commits wait for one';
/** The message of `pg` if the server offers no TLS. */
const NO_TLS = 'The server does not support SSL connections';

/** Turns errors of PostgreSQL and of the connection into faults, all transient. Other errors are bugs. */
export function storeFault(error: unknown, name: string): unknown {
  if (error instanceof Fault) return error;
  const cause = { cause: error };
  if (!(error instanceof DatabaseError)) {
    if (error instanceof Error && error.message.startsWith('SASL')) {
      const isMissing = /password must be a (non-empty )?string$/.test(error.message);
      return refused(name, isMissing ? 'the address has no password' : error.message, WHO, cause);
    }
    if (!isConnectionLoss(error)) return error;
    const { message } = error as Error;
    return transientFault(
      'store_unreachable',
      `${name} does not answer (${message || 'at none of its addresses'}). Check that PostgreSQL runs there and that ` +
        `nothing stands between${message === READ_TIMEOUT ? `, and ${STANDBY}` : ''}.`,
      cause,
    );
  }
  const { code = '', message } = error;
  if (code.startsWith('28') || code === '3D000') {
    return refused(name, message, message.includes('pg_hba.conf') ? HOW : WHO, cause);
  }
  // 55000: it was closed to connections, for example for maintenance.
  if (code.startsWith('57P') || code.startsWith('08') || code === '55000') {
    const what = `${name} ended the connection (${message}). See that it comes back.`;
    return transientFault('store_unreachable', what, cause);
  }
  // `WAIT_FOR_DISK` causes this error if the server was told not to wait.
  if (code === '22023' && message.includes('fsync')) return notDurable(name, cause);
  if (code === '53100') {
    return transientFault('store_full', `No space is left for ${name}. Free some.`, cause);
  }
  if (code === '25006' || code === '42501' || code === '3F000') {
    const what = `${name} cannot be written (${message}). Name the primary, and a role that owns settled's tables.`;
    return transientFault('store_unwritable', what, cause);
  }
  if (UNPREPARED.has(code)) {
    const what = `A pooler before ${name} lends a session for one transaction, and loses prepared statements (${message}).`;
    const remedy = 'Use pgbouncer 1.21 or later with max_prepared_statements above 0, or name the server itself.';
    return unusable(`${what} ${remedy}`, cause);
  }
  if (code === '53300') {
    const remedy =
      "Raise max_connections there, or the role's or database's own limit: see Sizing in docs/postgres.md.";
    const what = `${name} has no connection left (${message}). ${remedy}`;
    return transientFault('store_busy', what, cause);
  }
  if (RERUN.has(code) || code.startsWith('53') || code === '57014' || code.startsWith('55P')) {
    return busy(name, message, cause);
  }
  return error;
}

export function notDurable(name: string, cause?: ErrorOptions): Fault {
  const detail = `${name} would lose what it acknowledged when its machine fails, because fsync is off. Set it on at the server.`;
  return transientFault('store_not_durable', detail, cause);
}

/** A message that a server sends besides its answers. */
type Notice = { readonly code?: string | undefined; readonly message?: string | undefined };

/**
 * Whether a server's message is more than advice (PostgreSQL, Appendix A: class 01), or says that its session ends
 * (57P). If a commit's wait for a standby is cancelled or cut, nothing else tells its answer from a proper one.
 */
function isWarning({ code = '' }: Notice): boolean {
  return /^(01|57P)/.test(code);
}

/** The fault of a commit with a warning: no other server may have it. A retry finds it, or carries it out again. */
function unconfirmed(name: string, { message = '' }: Notice): Fault {
  const what = `${name} committed, and warns (${message}). Whether a failover would keep it is not known, so it does not count as stored.`;
  return transientFault('store_unreachable', `${what} See that the standby answers.`);
}

/** Runs `work` on a connection. A commit that a required standby did not confirm counts as failed. */
export async function confirmed<T>(client: ClientBase, name: string, work: () => Promise<T>): Promise<T> {
  let warning: Notice | null = null;
  const note = (notice: Notice) => {
    if (isWarning(notice)) warning ??= notice;
  };
  client.on('notice', note);
  try {
    const value = await work();
    if (warning !== null) throw unconfirmed(name, warning);
    return value;
  } finally {
    client.off('notice', note);
  }
}

/** A statement is prepared already, or is not, because the session has changed. */
const UNPREPARED = new Set(['42P05', '26000']);

const WHO = 'Check the user, the password and the database in SETTLED_STORE.';
/** For a server that admits only the users of its pg_hba.conf. */
const HOW = 'Check sslmode, the user and the database in SETTLED_STORE, and the lines of pg_hba.conf.';

function refused(name: string, why: string, remedy: string, cause: ErrorOptions): Fault {
  return unusable(`${name} refuses settled (${why}). ${remedy}`, cause);
}

/** Transient: passwords are changed in two places, and files are replaced, while settled serves. */
function unusable(what: string, cause: ErrorOptions = {}): Fault {
  return transientFault('configuration_invalid', what, cause);
}

export function busy(name: string, why: string, cause?: ErrorOptions): Fault {
  const what = `${name} does not keep up (${why}). Look at its load and its locks, and see ${STANDBY}; try again.`;
  return transientFault('store_busy', what, cause);
}

const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT|EACCES|ESOCKET|ERR_TLS)/;
/** Messages of `pg` about connections, which have no code. */
const WORDS = /timeout|terminated|not queryable|connection error|Connection ended|SSL/i;

function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errors } = error as NodeJS.ErrnoException & { errors?: unknown[] };
  // A name with several addresses fails with the errors of all of them.
  if (Array.isArray(errors)) return errors.some(isConnectionLoss);
  return NETWORK.test(code ?? '') || (code === undefined && WORDS.test(error.message));
}

/** Whether a failed server may no longer be the primary (SQLSTATE 25006, 57P01 to 57P03, class 08), or may be gone. */
export function isDoubtful(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'store_unwritable' || error.code === 'store_unreachable';
  if (error instanceof DatabaseError) return /^(25006|57P0[123]|08)/.test(error.code ?? '');
  return isConnectionLoss(error);
}

/** The files that an address may name, and how each is read. */
const FILES = {
  sslrootcert: { read: certificate, what: 'no certificate in PEM' },
  sslcert: { read: certificate, what: 'no certificate in PEM' },
  sslkey: { read: createPrivateKey, what: 'no private key in PEM that is without a passphrase' },
} as const;

/** Throws if the TLS files of the addresses cannot be used. */
export function assertTlsFiles(servers: readonly ServerAddress[]): void {
  const fault = servers.map(({ url, name }) => tlsFilesFault(url, name)).find((one) => one !== null);
  if (fault !== undefined) throw fault;
}

function tlsFilesFault(url: string, name: string): Fault | null {
  const given = new URL(url).searchParams;
  for (const [parameter, { read, what }] of Object.entries(FILES)) {
    const path = given.get(parameter);
    if (path === null) continue;
    const file = `${name} cannot be connected to: ${parameter} in SETTLED_STORE names ${path}, which`;
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch (error) {
      return unusable(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    }
    try {
      read(text);
    } catch {
      return unusable(`${file} is ${what}.`);
    }
  }
  return null;
}

/** The first certificate of a file. The driver accepts a file without one, and then trusts no server. */
function certificate(text: string): X509Certificate {
  if (!text.includes('-----BEGIN ')) throw new Error('not PEM');
  return new X509Certificate(text);
}
