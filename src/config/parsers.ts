import { isCurrency } from '../domain/money.ts';
import { isPostgresUrl, postgresAddress, type StoreAddress, sqliteAddress } from '../store/address.ts';
import { isLoopback } from './addresses.ts';

/** Readers of settings' texts: each takes a text, and returns the value or says what is wrong with it. */

export type ListenAddress = { readonly host: string; readonly port: number };

/**
 * Reads a setting's text. Throws a sentence without a subject that says what is wrong. Never quotes the text, which may
 * be a misplaced secret.
 */
export type Parser<T> = (text: string) => T;

/** Its message says what to write instead. `readConfig` may put the text before it, if the text is short. */
export class Unfit extends Error {}

const TOKEN_LENGTH = { min: 16, max: 512 } as const;
const SHOP_SECRET_BYTES = { min: 24, max: 64 } as const;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

export function parseStore(text: string): StoreAddress {
  if (isPostgresUrl(text)) return postgresAddress(text);
  if (/^postgres(ql)?:\/\//i.test(text)) throw new Error('must begin with postgres:// in small letters');
  // The driver trims spaces, and would open another file than the one that was checked.
  const match = /^sqlite:(\S|\S.*\S)$/s.exec(text);
  if (match?.[1] === undefined || match[1] === ':memory:') {
    throw new Error(
      'names no store that settled knows; write sqlite: and the path of a file, like sqlite:./data/settled.db, or ' +
        'postgres://user:password@host:5432/database',
    );
  }
  return sqliteAddress(match[1]);
}

export function parseStoreDirect(text: string): ReturnType<typeof postgresAddress> {
  if (isPostgresUrl(text)) return postgresAddress(text);
  throw new Error('is no address of PostgreSQL: write postgres://user:password@host:5432/database');
}

const DECLARATION_LENGTH_MAX = 200;

/** `declared:` and a sentence by the operator, which doctor, console and log show unchanged. Returns the sentence. */
export function parseDeclaration(text: string): string {
  const why = /^declared:(.*)$/s.exec(text)?.[1]?.trim() ?? '';
  if (why === '') {
    throw new Unfit(
      'write declared: and why its commits are durable, like: declared:Neon keeps its log on safekeepers',
    );
  }
  if (why.length > DECLARATION_LENGTH_MAX || /[\p{C}\p{Zl}\p{Zp}]/u.test(why)) {
    throw new Error(`must say why in at most ${DECLARATION_LENGTH_MAX} printable characters on one line`);
  }
  return why;
}

export function parsePublicUrl(text: string): string {
  return parseBaseUrl(text, 'https://pay.example.com');
}

export function parseConsoleUrl(text: string): string {
  const url = parseBaseUrl(text, 'https://shop.example.com/ops/pay');
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    throw new Error('must begin with https://: a session must not travel in the clear');
  }
  if (/[^\w./~-]|\/\//.test(pathname)) throw new Error('must have a plain path, like /ops/pay');
  return url;
}

export function parseBadge(text: string): string {
  if (/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,23}$/u.test(text)) return text;
  throw new Unfit('write one short word, like sandbox');
}

export function parseTimezone(text: string): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    throw new Unfit('write the name of a time zone, like America/Sao_Paulo or UTC');
  }
}

function parseUrl(text: string, example: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new Error(`is not an address; write one like ${example}`);
}

function parseBaseUrl(text: string, example: string): string {
  const url = parseUrl(text, example);
  // A slash in a password ends the host, and the rest would be taken as the path.
  const isCutShort = url.pathname.includes('@');
  if (url.search !== '' || url.hash !== '' || url.username + url.password !== '' || isCutShort) {
    throw new Error('must be an origin and perhaps a path, without a query, a fragment or credentials');
  }
  return url.href.replace(/\/+$/, '');
}

export function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new Unfit('write host:port, like 127.0.0.1:8788');
  return { host: (match[1] ?? match[2]) as string, port };
}

export function parseToken(text: string): string {
  const { min, max } = TOKEN_LENGTH;
  if (text.length < min || text.length > max) {
    throw new Error(`has ${text.length} characters; use ${min} to ${max}`);
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('must be printable ASCII without spaces');
  return text;
}

export function parseSecretsKey(text: string): Buffer {
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32 || key.toString('base64') !== text) {
    throw new Error('must be 32 random bytes in base64, like the output of `openssl rand -base64 32`');
  }
  return key;
}

export function wholeNumber({ min, max }: { min: number; max: number }, advice: string): Parser<number> {
  return (text) => {
    const number = Number(text);
    if (/^[1-9][0-9]*$/.test(text) && number >= min && number <= max) return number;
    throw new Unfit(advice);
  };
}

// Like the codes of ISO 4217, and a little longer.
const OTHER_CURRENCY = /^([A-Z][A-Z0-9]{2,11}):([0-9]+)$/;

/**
 * Currencies, separated by spaces: `BRL`, or `BRL USDT:2`. One that is not in ISO 4217 names its decimals, which are
 * always two (decision 0040). Returns the codes, separated by spaces.
 */
export function parseCurrency(text: string): string {
  return text.split(' ').map(currencyCode).join(' ');
}

function currencyCode(text: string): string {
  if (isCurrency(text)) return text;
  const [, code = '', decimals] = OTHER_CURRENCY.exec(text) ?? [];
  if (isCurrency(code)) throw new Unfit(`write ${code}: ISO 4217 knows its decimals`);
  if (decimals !== undefined && decimals !== '2') {
    throw new Unfit(`write ${code}:2: currencies that ISO 4217 does not know have two decimals here`);
  }
  if (code === '') {
    throw new Unfit(
      'write an ISO 4217 code in capitals, like BRL; one that it does not know with its decimals, like USDT:2',
    );
  }
  return code;
}

export function parseOrigin(text: string): string {
  if (URL.parse(text)?.origin !== text || text === 'null') {
    throw new Error('is not an origin; write one without a path, like https://sandbox.example.com');
  }
  return text;
}

/** The prefix of the names of a delivery's two headers: a token of RFC 9110 §5.6.2. Returns it in lower case. */
export function parseHeaderPrefix(text: string): string {
  const isWhole = /-(?:signature|timestamp)?$/i.test(text);
  if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(text) && !isWhole) return text.toLowerCase();
  throw new Unfit('write what comes before -signature and -timestamp in the names of the headers, like x-service');
}

export function oneOf<const T extends string>(choices: readonly T[]): Parser<T> {
  return (text) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen === undefined) throw new Unfit(`choose one of ${choices.join(', ')}`);
    return chosen;
  };
}

export function flag(text: string): boolean {
  const said = oneOf(['on', 'off', 'true', 'false'])(text);
  return said === 'on' || said === 'true';
}

const API_PATH = '/api/v1';

export function parseApiUrl(text: string): string {
  const url = parseBaseUrl(text, 'https://links.example.com');
  const { protocol, hostname } = new URL(url);
  // The key is sent in a header.
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    throw new Error('must begin with https://: the API key must not travel in the clear');
  }
  return url.endsWith(API_PATH) ? url : url + API_PATH;
}

export function parseApiKey(text: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(text)) return text;
  throw new Error('must be 1 to 512 printable ASCII characters without spaces');
}

/** A duration in minutes, hours or days, as milliseconds. */
export function duration(min: string, max: string): Parser<number> {
  return (text) => {
    const ms = durationMs(text);
    if (ms >= durationMs(min) && ms <= durationMs(max)) return ms;
    throw new Unfit(`write ${min} to ${max}, in minutes, hours or days, like 90m, 12h or 3d`);
  };
}

function durationMs(text: string): number {
  const match = /^([1-9][0-9]{0,5})([mhd])$/.exec(text);
  return Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ''] ?? Number.NaN);
}

/** The shop's address. `readConfig` checks whether settled may send there. */
export function parseShopUrl(text: string): string {
  const url = parseUrl(text, 'https://shop.example.com/settled');
  if (url.hash !== '' || url.username + url.password !== '') {
    throw new Error('must not have a fragment, a user name or a password: the signature says who calls');
  }
  return url.href;
}

/** One key, or the new and the old one during a change: `whsec_` and base64 (Standard Webhooks). */
export function parseShopSecrets(text: string): readonly Buffer[] {
  const { min, max } = SHOP_SECRET_BYTES;
  const keys = text.split(/\s+/).map((secret) => {
    const encoded = /^whsec_(.+)$/.exec(secret)?.[1] ?? '';
    const key = Buffer.from(encoded, 'base64');
    if (key.toString('base64') === encoded && key.length >= min && key.length <= max) return key;
    throw new Error(
      `must be whsec_ and ${min} to ${max} random bytes in base64, like: echo "whsec_$(openssl rand -base64 32)"`,
    );
  });
  if (keys.length > 2) throw new Error('has more than two secrets: give the new one, a space, and the old one');
  return keys;
}
