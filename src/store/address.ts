/** Where the store is. `name` is what a person may see of it: the URL may hold a password, and is shown to nobody. */
export type StoreAddress = SqliteAddress | PostgresAddress;

type SqliteAddress = { readonly engine: 'sqlite'; readonly path: string; readonly name: string };
type PostgresAddress = { readonly engine: 'postgres'; readonly url: string; readonly name: string };

export function sqliteAddress(path: string): SqliteAddress {
  return { engine: 'sqlite', path, name: path };
}

/** The file beside which keys and tokens are kept that the configuration does not give. A shared store has none. */
export function storeFile(store: StoreAddress): string {
  if (store.engine === 'sqlite') return store.path;
  throw new Error(`nothing is kept in files beside ${store.name}`);
}

/** What a URL of PostgreSQL may say beside user, password, host, port and database (libpq's names). */
const PARAMETERS = [
  'host',
  'port',
  'user',
  'password',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'uselibpqcompat',
  'channel_binding',
  'options',
  'application_name',
  'connect_timeout',
  'target_session_attrs',
];
const PORT = '5432';

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
  if ([...given.keys()].some((name) => !PARAMETERS.includes(name))) {
    throw new Error(
      `may say after its question mark: ${PARAMETERS.join(', ')}; all else settled sets itself`,
    );
  }
  const host = given.get('host') || decodeURIComponent(parsed.hostname);
  if (host === '') throw new Error('names no host: write postgres://user:password@host:5432/database');
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (database === '' || database.includes('/')) {
    throw new Error('names no database: write postgres://user:password@host:5432/database');
  }
  const port = given.get('port') || parsed.port || PORT;
  const name = host.startsWith('/')
    ? `postgres://localhost:${port}/${database}?host=${host}`
    : `postgres://${host}:${port}/${database}`;
  return { engine: 'postgres', url, name };
}

/** The driver takes a list of servers, as libpq has it, for the name of one. */
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
