import { resolve } from 'node:path';

/** Where the store is. People see its `name` only, because the URL may hold a password. */
export type StoreAddress = SqliteAddress | PostgresAddress;

type SqliteAddress = { readonly engine: 'sqlite'; readonly path: string; readonly name: string };
export type PostgresAddress = { readonly engine: 'postgres'; readonly url: string; readonly name: string };

export function sqliteAddress(path: string): SqliteAddress {
  return { engine: 'sqlite', path, name: path };
}

/** The store's name, independent of the folder in which a process runs. */
export function wholeName(store: StoreAddress): string {
  return store.engine === 'sqlite' ? resolve(store.path) : store.name;
}

/** The file beside which keys and tokens are kept that the configuration does not give. A shared store has none. */
export function storeFile(store: StoreAddress): string {
  if (store.engine === 'sqlite') return store.path;
  throw new Error(`nothing is kept in files beside ${store.name}`);
}

/** Where the operator's token is kept if the configuration gives none. */
export function operatorTokenPath(storePath: string): string {
  return `${storePath}.operator-token`;
}

type Parameter = { values: RegExp; remedy?: string };

/**
 * The parameters that a URL of PostgreSQL may have (libpq's names), and their values. The driver silently treats some other
 * values as different ones: it would take `allow` for no encryption at all.
 */
const PARAMETERS: Readonly<Record<string, Parameter>> = {
  host: { values: /^/ },
  port: { values: /^/ },
  user: { values: /^/ },
  password: { values: /^/ },
  sslmode: {
    values: /^(disable|no-verify|verify-full)$/,
    remedy:
      'sslmode=verify-full, no-verify or disable. What many providers print, sslmode=require, encrypts and asks for no proof ' +
      "of who answers: that is no-verify here. Better is verify-full, with the provider's authority as sslrootcert",
  },
  sslrootcert: { values: /./ },
  sslcert: { values: /./ },
  sslkey: { values: /./ },
  sslnegotiation: { values: /^(postgres|direct)$/, remedy: 'sslnegotiation=postgres or direct' },
  channel_binding: { values: /^(disable|prefer|require)$/, remedy: 'channel_binding=disable, prefer or require' },
  options: { values: /^/ },
  application_name: { values: /^/ },
  connect_timeout: { values: /^\d+$/, remedy: 'connect_timeout in whole seconds' },
  target_session_attrs: {
    values: /^(any|read-write|read-only|primary|standby|prefer-standby)$/,
    remedy: 'target_session_attrs=any, read-write, read-only, primary, standby or prefer-standby',
  },
};
const PORT = '5432';
const PORT_MAX = 65_535;

/** Throws a sentence without its subject, and without any part of the URL, that says what is wrong with it. */
export function postgresAddress(url: string): PostgresAddress {
  if (namesSeveral(url)) {
    throw new Error(
      'names several servers; name one address that leads to the primary, like a proxy that asks which of them it is',
    );
  }
  const parsed = URL.parse(url);
  if (parsed === null || !isEncoded(parsed) || isCutShort(parsed)) {
    throw new Error(
      'is not an address: write postgres://user:password@host:5432/database, with other characters than letters and ' +
        'digits percent-encoded in user and password',
    );
  }
  const given = parsed.searchParams;
  refuseParameters(given);
  const host = given.get('host') || decodeURIComponent(parsed.hostname);
  if (host === '') throw new Error('names no host: write postgres://user:password@host:5432/database');
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (database === '' || database.includes('/')) {
    throw new Error('names no database: write postgres://user:password@host:5432/database');
  }
  const port = given.get('port') || parsed.port || PORT;
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) === 0 || Number(port) > PORT_MAX) {
    throw new Error(`names a port that is none: write a number from 1 to ${PORT_MAX}`);
  }
  const name = host.startsWith('/')
    ? `postgres://localhost:${port}/${database}?host=${host}`
    : `postgres://${host}:${port}/${database}`;
  return { engine: 'postgres', url, name };
}

function refuseParameters(given: URLSearchParams): void {
  const names = [...given.keys()];
  if (names.some((name) => !Object.hasOwn(PARAMETERS, name))) {
    const all = Object.keys(PARAMETERS).join(', ');
    throw new Error(`may say after its question mark: ${all}; all else settled sets itself`);
  }
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`says ${twice} twice: say it once`);
  for (const [name, value] of given) {
    const { values, remedy = `after ${name}= the path of a file` } = PARAMETERS[name] as Parameter;
    if (!values.test(value)) throw new Error(`must say ${remedy}`);
  }
  if (given.has('sslcert') !== given.has('sslkey')) {
    throw new Error('must say sslcert and sslkey together, a certificate and its key');
  }
  if (given.get('sslnegotiation') === 'direct' && given.get('sslmode') === 'disable') {
    throw new Error('says sslnegotiation=direct, which encrypts, and sslmode=disable: say one of them');
  }
}

/** The driver takes a list of servers, which libpq allows, for the name of one. */
function namesSeveral(url: string): boolean {
  const [, hosts = ''] = /^\w+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(url) ?? [];
  const given = new URLSearchParams(url.split('?')[1]).get('host') ?? '';
  return `${hosts}${given}`.includes(',');
}

/** A password with a slash, a question mark or a number sign ends the host: what comes after it is not what it seems. */
function isCutShort({ pathname, search, hash }: URL): boolean {
  return hash !== '' || `${pathname}${search}`.includes('@');
}

function isEncoded({ username, password, hostname, pathname }: URL): boolean {
  try {
    for (const part of [username, password, hostname, pathname]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}
