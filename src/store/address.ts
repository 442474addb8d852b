import { resolve } from 'node:path';

/** The address of the store. People see only its `name`, because the URL may hold a password. */
export type StoreAddress = SqliteAddress | PostgresAddress;

type SqliteAddress = { readonly engine: 'sqlite'; readonly path: string; readonly name: string };
export type PostgresAddress = {
  readonly engine: 'postgres';
  /** The servers of one database, in the order of the address; at least one. */
  readonly servers: readonly ServerAddress[];
  readonly name: string;
};

/** One server. `url` may hold a password. */
export type ServerAddress = { readonly url: string; readonly name: string };

export function sqliteAddress(path: string): SqliteAddress {
  return { engine: 'sqlite', path, name: path };
}

/** The store's name, independent of the working directory. */
export function wholeName(store: StoreAddress): string {
  return store.engine === 'sqlite' ? resolve(store.path) : store.name;
}

/** The file beside which settled keeps keys and tokens that the configuration leaves out. A shared store has none. */
export function storeFile(store: StoreAddress): string {
  if (store.engine === 'sqlite') return store.path;
  throw new Error(`nothing is kept in files beside ${store.name}`);
}

/** The file of the secrets key, if the configuration gives none. */
export function secretsKeyPath(storePath: string): string {
  return `${storePath}.key`;
}

/** The file of the operator's token, if the configuration gives none. */
export function operatorTokenPath(storePath: string): string {
  return `${storePath}.operator-token`;
}

/** Whether a text is meant to be an address of PostgreSQL. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text);
}

type Parameter = { values: RegExp; remedy?: string };

/**
 * The parameters that a URL of PostgreSQL may have (libpq's names), and their values. The driver silently misreads some
 * other values: it would take `allow` as no encryption at all.
 */
const PARAMETERS: Readonly<Record<string, Parameter>> = {
  host: {
    values: /^[^,]*$/,
    remedy: 'one host here; several go before the question mark: postgres://user@one,two/database',
  },
  port: { values: /^[^,]*$/, remedy: 'one port here; several go before the question mark' },
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
  // settled uses a server that accepts writes, whatever this says.
  target_session_attrs: {
    values: /^(any|read-write|primary)$/,
    remedy: 'target_session_attrs=read-write, primary or any: settled writes, and uses no standby',
  },
};
const PORT = '5432';
const PORT_MAX = 65_535;

/**
 * Reads an address of one server or several, in libpq's form. Throws a sentence without a subject that says what is
 * wrong; it repeats no part of the URL.
 */
export function postgresAddress(url: string): PostgresAddress {
  const servers = urlsOfServers(url).map(serverAddress);
  const names = servers.map(({ name }) => name);
  if (new Set(names).size < names.length) throw new Error('names a server twice: name each once');
  if (servers.length > SERVERS_MAX) throw new Error(`names more than ${SERVERS_MAX} servers`);
  const [first] = servers as [ParsedServer];
  const name =
    servers.length === 1 ? first.name : `postgres://${servers.map(({ host }) => host).join(',')}/${first.database}`;
  return { engine: 'postgres', servers: servers.map(({ url, name }) => ({ url, name })), name };
}

const SERVERS_MAX = 9;

/** Splits a list of servers, which libpq allows, into one URL each: the driver would take it for one server's name. */
function urlsOfServers(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  if (!hosts.includes(',')) return [url];
  if (hosts.split(',').some((host) => host === '')) throw new Error(NO_HOST);
  return hosts.split(',').map((host) => `${before}${host}${after}`);
}

const NO_HOST = 'names no host: write postgres://user:password@host:5432/database';
const NO_ADDRESS =
  'is not an address: write postgres://user:password@host:5432/database, with other characters than letters and digits ' +
  'percent-encoded in user and password';

type ParsedServer = ServerAddress & { host: string; database: string };

function serverAddress(url: string): ParsedServer {
  const parsed = URL.parse(url);
  if (parsed === null || !isEncoded(parsed) || isCutShort(parsed)) throw new Error(NO_ADDRESS);
  const given = parsed.searchParams;
  refuseParameters(given);
  const host = given.get('host') || decodeURIComponent(parsed.hostname);
  if (host === '') throw new Error(NO_HOST);
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
  return { url, name, database, host: `${host.startsWith('/') ? encodeURIComponent(host) : host}:${port}` };
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

/** An unencoded slash, question mark or number sign in a password ends the host, so the rest is misread. */
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
