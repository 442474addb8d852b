import { readFileSync } from 'node:fs';
import { isLoopback, isPublicAddress } from './addresses.ts';
import { isCurrency } from './domain/money.ts';
import { Fault } from './fault.ts';
import { LOG_LEVELS, type LogLevel } from './observe/log.ts';

export type ListenAddress = { readonly host: string; readonly port: number };

export type Config = {
  readonly storePath: string;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  /** Whether the service can deliver there, or is a sandbox on this machine, which can. */
  readonly publicUrlReaches: boolean;
  readonly hooksListen: ListenAddress;
  readonly operatorListen: ListenAddress;
  /** Null: kept in a file beside the database. */
  readonly operatorToken: string | null;
  readonly shopToken: string | null;
  /** 32 bytes; null: kept in a file beside the database. */
  readonly secretsKey: Buffer | null;
  readonly toleranceSeconds: number;
  /** The service's API with its path, like https://pay.example.com/api/v1; null: settled only receives. */
  readonly apiUrl: string | null;
  readonly apiKey: string | null;
  /** The file that the key came from, where it came from one. */
  readonly apiKeyFile: string | null;
  readonly apiSlots: number;
  readonly confirm: 'in-doubt' | 'always';
  readonly linkLifetimeMs: number;
  /** Whether links send the customer back through settled. */
  readonly customerReturn: boolean;
  readonly currency: string;
  readonly hooksCors: string | null;
  readonly logLevel: LogLevel;
};

const TOKEN_LENGTH = { min: 16, max: 512 } as const;
const API_SLOTS = { min: 5, max: 55 } as const;
const LIFETIME_MS = { min: 300_000, max: 365 * 86_400_000 } as const;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Throws a sentence that says what is wrong with the text. */
type Parser<T> = (text: string) => T;
type Setting<T> = { name: string; fallback: string | null; parse: Parser<T> };

const SETTINGS = {
  storePath: setting('SETTLED_STORE', 'sqlite:./data/settled.db', parseStore),
  publicUrl: setting('SETTLED_PUBLIC_URL', 'http://127.0.0.1:8787', parsePublicUrl),
  hooksListen: setting('SETTLED_HOOKS_LISTEN', '0.0.0.0:8787', parseListen),
  operatorListen: setting('SETTLED_OPERATOR_LISTEN', '127.0.0.1:8788', parseListen),
  operatorToken: setting('SETTLED_OPERATOR_TOKEN', null, parseToken),
  shopToken: setting('SETTLED_SHOP_TOKEN', null, parseToken),
  secretsKey: setting('SETTLED_SECRETS_KEY', null, parseSecretsKey),
  toleranceSeconds: setting('SETTLED_TOLERANCE_SECONDS', '300', parseTolerance),
  apiUrl: setting('SETTLED_API_URL', null, parseApiUrl),
  apiKey: setting('SETTLED_API_KEY', null, parseApiKey),
  apiSlots: setting('SETTLED_API_BUDGET_PER_MINUTE', '50', parseApiSlots),
  confirm: setting('SETTLED_CONFIRM', 'in-doubt', oneOf(['in-doubt', 'always'] as const)),
  linkLifetimeMs: setting('SETTLED_LINK_LIFETIME', '3d', parseLifetime),
  customerReturn: setting('SETTLED_RETURN', 'off', (text) => oneOf(['on', 'off'] as const)(text) === 'on'),
  currency: setting('SETTLED_CURRENCY', 'BRL', parseCurrency),
  hooksCors: setting('SETTLED_HOOKS_CORS', null, parseOrigin),
  logLevel: setting('SETTLED_LOG_LEVEL', 'info', oneOf(LOG_LEVELS)),
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads every SETTLED_* setting, each also as NAME_FILE, the path of a file that holds the value. Throws one fault that
 * lists everything that is wrong. The only reader of the environment.
 */
export function readConfig(environment: Environment = process.env): Config {
  const faults = unknownNames(environment);
  const values: Record<string, unknown> = {};
  for (const [key, { name, fallback, parse }] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    try {
      const text = readText(environment, name) ?? fallback;
      values[key] = text === null ? null : parse(text);
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`);
    }
  }
  const { operatorToken, shopToken } = values;
  if (typeof operatorToken === 'string' && operatorToken === shopToken) {
    faults.push('SETTLED_SHOP_TOKEN must not be the operator token: the shop may do less');
  }
  if ((values.apiUrl === null) !== (values.apiKey === null)) {
    faults.push('SETTLED_API_URL and SETTLED_API_KEY belong together: give both, or neither to only receive');
  }
  if (values.confirm === 'always' && values.apiUrl === null) {
    faults.push("SETTLED_CONFIRM=always needs the service's API: set SETTLED_API_URL and SETTLED_API_KEY");
  }
  const { publicUrl, apiUrl } = values as Partial<Config>;
  values.publicUrlReaches =
    publicUrl !== undefined &&
    (isPublicAddress(publicUrl) || (apiUrl != null && isLoopback(new URL(apiUrl).hostname)));
  values.apiKeyFile = environment.SETTLED_API_KEY_FILE || null;
  if (faults.length > 0) {
    const list = faults.map((fault) => `  - ${fault}`).join('\n');
    throw new Fault('terminal', 'configuration_invalid', `The configuration cannot be used:\n${list}`);
  }
  return Object.freeze(values) as Config;
}

/** The API key as it is now: a key that is kept in a file may have been changed there since the start. */
export function currentApiKey({ apiKey, apiKeyFile }: Pick<Config, 'apiKey' | 'apiKeyFile'>): string {
  if (apiKeyFile === null) return apiKey ?? '';
  return parseApiKey(readFileSync(apiKeyFile, 'utf8').trim());
}

function setting<T>(name: string, fallback: string | null, parse: Parser<T>): Setting<T> {
  return { name, fallback, parse };
}

function unknownNames(environment: Environment): string[] {
  const names = Object.values(SETTINGS).map(({ name }) => name);
  const known = new Set(names.flatMap((name) => [name, `${name}_FILE`]));
  return Object.keys(environment)
    .filter((name) => name.startsWith('SETTLED_') && !known.has(name))
    .map((name) => `${name} is not a setting of this version. There are: ${names.join(', ')}`);
}

function readText(environment: Environment, name: string): string | undefined {
  const text = environment[name];
  const file = environment[`${name}_FILE`];
  if (file === undefined || file === '') return text === '' ? undefined : text;
  if (text !== undefined && text !== '') throw new Error(`and ${name}_FILE are both given: give one of them`);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(`cannot be read from ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function parseStore(text: string): string {
  // The driver drops spaces at the ends, and would open another file than the one that was looked for.
  const match = /^sqlite:(\S|\S.*\S)$/s.exec(text);
  if (match?.[1] === undefined || match[1] === ':memory:') {
    throw new Error(
      `is "${withoutPassword(text)}"; write sqlite: and the path of a file, like sqlite:./data/settled.db`,
    );
  }
  return match[1];
}

function withoutPassword(text: string): string {
  return text.replace(/\/\/[^@/]*@/, '//…@');
}

function parsePublicUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new Error(`is "${withoutPassword(text)}"; write an address like https://pay.example.com`);
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '') {
    throw new Error('must be an origin and perhaps a path, without a query, a fragment or credentials');
  }
  return url.href.replace(/\/+$/, '');
}

function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new Error(`is "${text}"; write host:port, like 127.0.0.1:8788`);
  return { host: (match[1] ?? match[2]) as string, port };
}

function parseToken(text: string): string {
  const { min, max } = TOKEN_LENGTH;
  if (text.length < min || text.length > max) {
    throw new Error(`has ${text.length} characters; use ${min} to ${max}`);
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('must be printable ASCII without spaces');
  return text;
}

function parseSecretsKey(text: string): Buffer {
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32 || key.toString('base64') !== text) {
    throw new Error('must be 32 random bytes in base64, like the output of `openssl rand -base64 32`');
  }
  return key;
}

function parseTolerance(text: string): number {
  const seconds = Number(text);
  if (!/^[1-9][0-9]{0,4}$/.test(text) || seconds > 86_400) {
    throw new Error(`is "${text}"; write whole seconds from 1 to 86400`);
  }
  return seconds;
}

function parseCurrency(text: string): string {
  if (!isCurrency(text)) throw new Error(`is "${text}"; write an ISO 4217 code in capitals, like BRL`);
  return text;
}

function parseOrigin(text: string): string {
  if (URL.parse(text)?.origin !== text || text === 'null') {
    throw new Error(`is "${text}"; write one origin without a path, like https://sandbox.example.com`);
  }
  return text;
}

function oneOf<const T extends string>(choices: readonly T[]): Parser<T> {
  return (text) => {
    const chosen = choices.find((choice) => choice === text);
    if (chosen === undefined) throw new Error(`is "${text}"; choose one of ${choices.join(', ')}`);
    return chosen;
  };
}

const API_PATH = '/api/v1';

function parseApiUrl(text: string): string {
  const url = parsePublicUrl(text);
  const { protocol, hostname } = new URL(url);
  // The key travels in a header.
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    throw new Error(`is "${url}"; the API key must not travel in the clear: use https`);
  }
  return url.endsWith(API_PATH) ? url : url + API_PATH;
}

function parseApiKey(text: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(text)) return text;
  throw new Error('must be 1 to 512 printable ASCII characters without spaces');
}

function parseApiSlots(text: string): number {
  const slots = Number(text);
  if (!/^[1-9][0-9]?$/.test(text) || slots < API_SLOTS.min || slots > API_SLOTS.max) {
    throw new Error(
      `is "${text}"; write a whole number from ${API_SLOTS.min} to ${API_SLOTS.max}: the service allows 60 requests a minute`,
    );
  }
  return slots;
}

function parseLifetime(text: string): number {
  const match = /^([1-9][0-9]{0,5})([mhd])$/.exec(text);
  const ms = Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ''] ?? Number.NaN);
  if (!(ms >= LIFETIME_MS.min && ms <= LIFETIME_MS.max)) {
    throw new Error(`is "${text}"; write 5m to 365d, in minutes, hours or days, like 90m, 12h or 3d`);
  }
  return ms;
}
