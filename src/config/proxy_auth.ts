import ipaddr from 'ipaddr.js';
import type { ProxyAuth } from '../access/proxy.ts';
import { PERSON_ROLES, type PersonRole } from '../domain/access.ts';

const PARTS = ['user', 'groups', 'secret', 'from', ...PERSON_ROLES] as const;
type Part = (typeof PARTS)[number];

const EXAMPLE =
  'user=X-Forwarded-User; groups=X-Forwarded-Groups; secret=X-Proxy-Secret:VALUE; operator=support; admin=platform';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const SECRET_MIN = 16;

/**
 * Reads how a proxy says who signed in: parts separated by semicolons. `user` and `groups` name headers; `secret` names
 * a header and its value; `from` lists the proxy's addresses; `viewer`, `operator` and `admin` each name a group, or
 * `*` for everyone signed in. Throws unless something proves that a request came from the proxy. Never shows the text,
 * which holds a secret.
 */
export function parseProxyAuth(text: string): ProxyAuth {
  const given = readParts(text);
  const { user, groups = null, secret, from } = given;
  if (user === undefined) throw new Error(`does not say which header names the user; write one like: ${EXAMPLE}`);
  for (const name of [user, groups])
    if (name !== null && !TOKEN.test(name)) throw new Error('names a header that cannot be');
  if (secret === undefined && from === undefined) {
    throw new Error(
      'does not say how settled knows the proxy: anyone could send its headers. Add secret=HEADER:VALUE with a value of ' +
        `${SECRET_MIN} or more characters, or from=ADDRESSES like 10.0.0.2/32`,
    );
  }
  const roles = Object.fromEntries(
    PERSON_ROLES.flatMap((role) => (given[role] === undefined ? [] : [[role, given[role]]])),
  );
  if (Object.keys(roles).length === 0)
    throw new Error('gives no group a role: add viewer=GROUP, operator=GROUP or admin=GROUP');
  if (groups === null && Object.values(roles).some((group) => group !== '*')) {
    throw new Error('names groups of people, and no header that has them: add groups=HEADER');
  }
  return {
    user: user.toLowerCase(),
    groups: groups?.toLowerCase() ?? null,
    secret: secret === undefined ? null : readSecret(secret),
    from: from === undefined ? [] : from.split(/[ ,]+/).map(readRange),
    roles: roles as Partial<Record<PersonRole, string>>,
  };
}

function readParts(text: string): Partial<Record<Part, string>> {
  const parts: Partial<Record<Part, string>> = {};
  for (const part of text.split(';').filter((one) => one.trim() !== '')) {
    const at = part.indexOf('=');
    const name = PARTS.find((known) => known === part.slice(0, at).trim());
    const value = part.slice(at + 1).trim();
    if (at < 0 || name === undefined || value === '') {
      throw new Error(
        `has a part that settled does not know; there are ${PARTS.join(', ')}, each followed by = and a value`,
      );
    }
    if (parts[name] !== undefined) throw new Error(`says ${name} twice`);
    parts[name] = value;
  }
  return parts;
}

function readSecret(text: string): ProxyAuth['secret'] {
  const [header = '', value = ''] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  if (!TOKEN.test(header) || !/^[\x21-\x7e]+$/.test(value) || value.length < SECRET_MIN) {
    throw new Error(
      `has a secret that cannot be used: write HEADER:VALUE, with a value of ${SECRET_MIN} or more characters`,
    );
  }
  return { header: header.toLowerCase(), value };
}

function readRange(text: string): string {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
  try {
    ipaddr.parseCIDR(range);
    return range;
  } catch {
    throw new Error('has an address that is none: write it like 10.0.0.2 or 10.0.0.0/24');
  }
}
