import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { PERSON_ROLES, type PersonRole } from '../domain/access.ts';

/** How a proxy says who signed in, from SETTLED_PROXY_AUTH. Header names are in lower case. */
export type ProxyAuth = {
  readonly user: string;
  readonly groups: string | null;
  /** Proof that a request came from the proxy: a header with a secret, or the peer's address. */
  readonly secret: { readonly header: string; readonly value: string } | null;
  readonly from: readonly string[];
  /** The group for each role. */
  readonly roles: Readonly<Partial<Record<PersonRole, string>>>;
};

const NAME_MAX = 128;

/**
 * The person that the proxy signed in. Null if the request did not come from it, if it names nobody, or if none of the
 * person's groups has a role. A repeated header counts as forged.
 */
export function proxyPerson(request: IncomingMessage, auth: ProxyAuth): { name: string; role: PersonRole } | null {
  const name = proxyName(request, auth);
  const role = name === null ? null : roleOf(request, auth);
  return name === null || role === null ? null : { name, role };
}

/** The name that the proxy signed in, with a role or without. */
export function proxyName(request: IncomingMessage, auth: ProxyAuth): string | null {
  if (!isFromProxy(request, auth)) return null;
  const name = single(request, auth.user);
  return name === null || name.length > NAME_MAX || !/^[^\p{Cc}\p{Cs}]+$/u.test(name) ? null : name;
}

function isFromProxy(request: IncomingMessage, { secret, from }: ProxyAuth): boolean {
  if (secret !== null) {
    const given = single(request, secret.header);
    if (given === null || !isSame(given, secret.value)) return false;
  }
  return from.length === 0 || from.some((range) => isWithin(request.socket.remoteAddress ?? '', range));
}

/** The highest role of the person's groups. */
function roleOf(request: IncomingMessage, { groups, roles }: ProxyAuth): PersonRole | null {
  const own = groups === null ? [] : (single(request, groups) ?? '').split(',').map((group) => group.trim());
  const held = PERSON_ROLES.filter((role) => {
    const group = roles[role];
    return group === '*' || (group !== undefined && own.includes(group));
  });
  return held.at(-1) ?? null;
}

/** The value of a header that occurs exactly once. */
function single({ rawHeaders }: IncomingMessage, name: string): string | null {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
  return values.length === 1 && values[0] !== '' ? (values[0] as string) : null;
}

function isWithin(address: string, range: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const [network, bits] = ipaddr.parseCIDR(range);
  const peer = ipaddr.process(address);
  if (peer instanceof ipaddr.IPv4) return network instanceof ipaddr.IPv4 && peer.match(network, bits);
  return network instanceof ipaddr.IPv6 && peer.match(network, bits);
}

/** Compares digests, whose equal lengths hide the secret's length from timing. */
function isSame(given: string, secret: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', secret, 'buffer'));
}
