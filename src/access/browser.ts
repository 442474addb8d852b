import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Checks of requests without a bearer token, which another site may have made a browser send. */

/** Whether a request has a bearer token. Credentials of another scheme may be a proxy's own. */
export function hasBearer({ authorization }: IncomingMessage['headers']): boolean {
  return authorization !== undefined && /^bearer\b/i.test(authorization);
}

/** Where people open the console; null if only on this machine, at settled's listen address. */
export type ConsoleAddress = { readonly origin: string; readonly host: string; readonly path: string } | null;

/** `url`: SETTLED_CONSOLE_URL, without a slash at its end. */
export function consoleAddress(url: string | null): ConsoleAddress {
  if (url === null) return null;
  const { origin, host, pathname } = new URL(url);
  return { origin, host, path: pathname.replace(/\/$/, '') };
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * Why a request may not have come to the console's own address; null if it did. A name that an attacker points at this
 * machine would pass for the same origin (DNS rebinding).
 */
export function hostFault({ headers, socket }: IncomingMessage, address: ConsoleAddress): string | null {
  const { host = '' } = headers;
  const own = address === null ? LOOPBACK.map((name) => `${name}:${socket.localPort}`) : ownHosts(address);
  if (own.includes(host.toLowerCase())) return null;
  const set = 'Set SETTLED_CONSOLE_URL to the address at which people open the console, and restart settled.';
  return `The console is at ${own.join(', ')}, and this request names another host. ${set}`;
}

/** A proxy may add the default port of https. */
function ownHosts({ host, origin }: NonNullable<ConsoleAddress>): string[] {
  return origin === `https://${host}` && !/:\d+$/.test(host) ? [host, `${host}:443`] : [host];
}

/**
 * Why an unsafe request may have come from another site; null if it came from the console. Browsers send `Sec-Fetch-Site`,
 * older ones only `Origin`.
 */
export function crossSiteFault({ method, headers }: IncomingMessage, address: ConsoleAddress): string | null {
  if (method === 'GET' || method === 'HEAD') return null;
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined ? origin === (address?.origin ?? `http://${host}`) : site === 'same-origin';
  return isOwn ? null : 'Another site may have made this request: send it from a page of the console, or with a token.';
}

/**
 * The name of the session cookie. Over https it has the prefix that binds it to the host. Instances that share a host
 * get distinct names.
 */
export function cookieName(address: ConsoleAddress, port: number | undefined): string {
  if (address === null) return `settled-${port}`;
  const name = `settled-${createHash('sha256')
    .update(address.origin + address.path)
    .digest('hex')
    .slice(0, 8)}`;
  return address.origin.startsWith('https:') ? `__Host-${name}` : name;
}

/** The value of a cookie; null if it is absent or repeated. */
export function readCookie({ headers }: IncomingMessage, name: string): string | null {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const values = pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? (values[0] as string) : null;
}

/** A `Set-Cookie` header for a session; a null `value` removes it. */
export function sessionCookie(name: string, value: string | null, { isSecure }: { isSecure: boolean }): string {
  const life = value === null ? '; Max-Age=0' : '';
  return `${name}=${value ?? ''}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}${life}`;
}

const NO_HOST = 'http://console.invalid';

/** The console's address below `prefix` to return to, or its first page if the given address leads elsewhere. */
export function safeBack(given: unknown, prefix: string): string {
  const first = `${prefix}/`;
  if (typeof given !== 'string' || given.length > 2_000 || !/^\/[\x21-\x7e]*$/.test(given)) return first;
  const url = URL.parse(given, NO_HOST);
  // Compared after resolving it, because dots and a second slash lead elsewhere.
  const isOwn = url?.origin === NO_HOST && url.pathname.startsWith(first) && !url.pathname.startsWith('//');
  return isOwn ? url.pathname + url.search : first;
}
