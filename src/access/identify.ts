import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Actor, PersonRole, Role } from '../domain/access.ts';
import type { Store } from '../store/contract.ts';
import type { SessionSummary } from '../store/verbs/access.ts';
import type { Author } from '../store/verbs/audit.ts';
import type { Clock } from '../work/clock.ts';
import { type ConsoleAddress, cookieName, hasBearer, readCookie } from './browser.ts';
import { type ProxyAuth, proxyName, proxyPerson } from './proxy.ts';

/** The sender of a request. `author` is null for the shop, whose changes are in the history of its orders. */
export type Caller = {
  readonly role: Role;
  readonly name: string;
  readonly author: Author | null;
  /** The session of a browser that signed in here. */
  readonly session: SessionSummary | null;
  /** Of the request's bearer token; null if it has none. */
  readonly tokenSha256: Uint8Array | null;
};

export type CallersOptions = {
  store: Pick<
    Store,
    'findToken' | 'findSession' | 'touchSession' | 'beginSession' | 'consumeSignInLink' | 'endSession'
  >;
  clock: Clock;
  /** The bootstrap token and the shop's token. */
  tokens: { operator: string; shop: string | null };
  address: ConsoleAddress;
  proxyAuth: ProxyAuth | null;
  auditKey: Uint8Array;
  /** Called with each request whose sender is known. */
  onKnown?: (request: IncomingMessage) => void;
};

export type Callers = ReturnType<typeof openCallers>;

/** The name of the bearer of SETTLED_OPERATOR_TOKEN. */
const BOOTSTRAP_NAME = 'operator';

/** How often the use of a session is recorded. */
const TOUCH_EVERY_MS = 300_000;
const FAILURES = { max: 5, withinMs: 60_000, addressesMax: 10_000 } as const;

/** Identifies the senders of requests, and signs browsers in and out. */
export function openCallers(options: CallersOptions) {
  const { store, clock, tokens, address, proxyAuth, auditKey } = options;
  const bootstrapSha256 = digest(tokens.operator);
  const shop = tokens.shop === null ? null : digest(tokens.shop);
  const failures = countFailures(clock);

  const authorOf = (request: IncomingMessage, who: Who, isBrowser: boolean, token: Buffer | null): Author => {
    const tokenSha256 = token?.equals(bootstrapSha256) === false ? token : null;
    return { ...actorOf(request, who, isBrowser), auditKey, tokenSha256 };
  };

  async function byToken(request: IncomingMessage, token: string, isBrowser = false): Promise<Caller | null> {
    const presented = digest(token);
    const isOperator = timingSafeEqual(presented, bootstrapSha256);
    if (shop !== null && timingSafeEqual(presented, shop)) {
      return { role: 'shop', name: 'shop', author: null, session: null, tokenSha256: presented };
    }
    const known = isOperator
      ? { name: BOOTSTRAP_NAME, role: 'admin' as const }
      : await store.findToken({ sha256: presented, nowMs: clock.nowMs() });
    if (known === null) return null;
    const { name, role } = known;
    const author = authorOf(request, known, isBrowser, presented);
    return { role, name, author, session: null, tokenSha256: presented };
  }

  async function bySession(request: IncomingMessage, isUse: boolean): Promise<Caller | null> {
    const id = readCookie(request, cookieName(address, request.socket.localPort));
    if (id === null) return null;
    const nowMs = clock.nowMs();
    const found = await store.findSession({ sha256: digest(id), bootstrapSha256, nowMs });
    if (found === null) return null;
    const { tokenSha256: token, ...session } = found;
    // If it fails, the session ends sooner.
    if (isUse && nowMs - session.usedAtMs > TOUCH_EVERY_MS) {
      store.touchSession({ key: session.key, atMs: nowMs }).catch(() => {});
    }
    const { name, role } = session;
    return { role, name, author: authorOf(request, session, true, Buffer.from(token)), session, tokenSha256: null };
  }

  function byProxy(request: IncomingMessage): Caller | null {
    const person = proxyAuth === null ? null : proxyPerson(request, proxyAuth);
    if (person === null) return null;
    // The prefix tells this person from a token of the same name.
    const who = { name: `proxy:${person.name}`, role: person.role };
    return { ...who, author: authorOf(request, who, true, null), session: null, tokenSha256: null };
  }

  async function identify(request: IncomingMessage, isUse: boolean): Promise<Caller | null> {
    const { headers } = request;
    if (!hasBearer(headers)) return byProxy(request) ?? bySession(request, isUse);
    const given = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(headers.authorization ?? '')?.[1];
    return given === undefined ? null : byToken(request, given);
  }

  return {
    address,
    /** The console's path prefix: empty, or like `/ops/pay`. */
    prefix: address?.path ?? '',
    /** SHA-256 of the bootstrap token, by which the store recognises its sessions. */
    bootstrapSha256,
    /**
     * Identifies a caller by the bearer token alone, if there is one; otherwise by proxy or session. Null if the caller
     * is unknown. `isUse`: whether the request keeps an idle session alive.
     */
    identify: async (request: IncomingMessage, { isUse = true } = {}): Promise<Caller | null> => {
      const caller = await identify(request, isUse);
      if (caller !== null) options.onKnown?.(request);
      return caller;
    },
    /** A person whom a proxy signed in, but whose groups have no role, and the groups that have one; otherwise null. */
    proxyStranger: (request: IncomingMessage): { name: string; roles: ProxyAuth['roles'] } | null => {
      const name = proxyAuth === null ? null : proxyName(request, proxyAuth);
      return proxyAuth === null || name === null ? null : { name, roles: proxyAuth.roles };
    },
    /** Signs a browser in with a token. A wrong one is `limited` after five failures a minute from one address. */
    signIn: async (request: IncomingMessage, token: string): Promise<NewSession | 'limited' | 'unknown' | 'shop'> =>
      failures.attempt(request, async () => {
        const caller = await byToken(request, token, true);
        if (caller?.role === 'shop') return 'shop';
        if (caller === null || caller.author === null) return 'unknown';
        const id = randomSecret();
        const { name, role } = caller.author;
        const session = { name, role, sha256: digest(id), tokenSha256: digest(token) };
        await store.beginSession({ ...session, by: caller.author, atMs: clock.nowMs() });
        return { id };
      }),
    /** Signs a browser in with the secret of a sign-in link, which works once. */
    useLink: async (request: IncomingMessage, secret: string): Promise<NewSession | 'limited' | 'unknown'> =>
      failures.attempt(request, async () => {
        const id = randomSecret();
        const from = { origin: 'console' as const, address: addressOf(request), auditKey };
        const used = { linkSha256: digest(secret), sha256: digest(id), bootstrapSha256, from, atMs: clock.nowMs() };
        return (await store.consumeSignInLink(used)) === null ? 'unknown' : { id };
      }),
  };
}

/** `id`: the value of the browser's cookie. The store keeps only its SHA-256. */
export type NewSession = { id: string };

const SECRET_BYTES = 32;

/** A token, a session id or a sign-in link's secret: 256 random bits. */
export function randomSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** SHA-256 of a secret. Digests have equal lengths, so comparing them does not reveal the secret's length. */
export function digest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

type Who = { name: string; role: PersonRole };

function actorOf(request: IncomingMessage, { name, role }: Who, isBrowser: boolean): Actor {
  const isCli = request.headers['user-agent']?.startsWith('settled-cli/') === true;
  return { name, role, origin: isBrowser ? 'console' : isCli ? 'cli' : 'api', address: addressOf(request) };
}

function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? '';
}

/**
 * Counts sign-ins that failed, by the peer's address. A right token or link always signs in, because many people may
 * share one address; it does not take back what failed before.
 */
function countFailures(clock: Pick<Clock, 'monotonicMs'>) {
  const timesByAddress = new Map<string, number[]>();

  function isLimited(address: string): boolean {
    const nowMs = clock.monotonicMs();
    const recent = (timesByAddress.get(address) ?? []).filter((atMs) => atMs > nowMs - FAILURES.withinMs);
    if (recent.length >= FAILURES.max) return true;
    timesByAddress.delete(address);
    const [oldest] = timesByAddress.size >= FAILURES.addressesMax ? timesByAddress.keys() : [];
    if (oldest !== undefined) timesByAddress.delete(oldest);
    timesByAddress.set(address, [...recent, nowMs]);
    return false;
  }

  return {
    /** Makes an attempt. Only the result `unknown` is a failure; after too many of them it is `limited` instead. */
    attempt: async <T>(request: IncomingMessage, make: () => Promise<T>): Promise<T | 'limited'> => {
      const result = await make();
      return result === 'unknown' && isLimited(networkOf(addressOf(request))) ? 'limited' : result;
    },
  };
}

/** A peer's address; for IPv6 its network, because one machine may use all addresses in it. */
function networkOf(address: string): string {
  return address.includes(':') && !address.includes('.') ? address.split(':').slice(0, 4).join(':') : address;
}
