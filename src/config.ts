import { readFileSync } from 'node:fs';
import { isCurrency } from './domain/money.ts';
import { Fault } from './fault.ts';
import { LOG_LEVELS, type LogLevel } from './observe/log.ts';

export type ListenAddress = { readonly host: string; readonly port: number };

export type Config = {
  readonly storePath: string;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly hooksListen: ListenAddress;
  readonly operatorListen: ListenAddress;
  /** Null: kept in a file beside the database. */
  readonly operatorToken: string | null;
  readonly shopToken: string | null;
  /** 32 bytes; null: kept in a file beside the database. */
  readonly secretsKey: Buffer | null;
  readonly toleranceSeconds: number;
  readonly currency: string;
  readonly hooksCors: string | null;
  readonly logLevel: LogLevel;
};

const TOKEN_LENGTH = { min: 16, max: 512 } as const;

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
  currency: setting('SETTLED_CURRENCY', 'BRL', parseCurrency),
  hooksCors: setting('SETTLED_HOOKS_CORS', null, parseOrigin),
  logLevel: setting('SETTLED_LOG_LEVEL', 'info', parseLogLevel),
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
  if (faults.length > 0) {
    const list = faults.map((fault) => `  - ${fault}`).join('\n');
    throw new Fault('terminal', 'configuration_invalid', `The configuration cannot be used:\n${list}`);
  }
  return Object.freeze(values) as Config;
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

function parseLogLevel(text: string): LogLevel {
  if (!(LOG_LEVELS as readonly string[]).includes(text)) {
    throw new Error(`is "${text}"; choose one of ${LOG_LEVELS.join(', ')}`);
  }
  return text as LogLevel;
}
