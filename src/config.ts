import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isLoopback, isPublicAddress } from './addresses.ts';
import { type EnvFile, type Environment, ownNames, processEnvironment } from './environment.ts';
import { Fault } from './fault.ts';
import { nearest } from './nearest.ts';
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from './observe/level.ts';
import { HEADER_PREFIX } from './paylink/events.ts';
import {
  duration,
  flag,
  type ListenAddress,
  oneOf,
  type Parser,
  parseApiKey,
  parseApiSlots,
  parseApiUrl,
  parseCurrency,
  parseHeaderPrefix,
  parseListen,
  parseOrigin,
  parsePublicUrl,
  parseSecretsKey,
  parseShopSecrets,
  parseShopUrl,
  parseStore,
  parseToken,
  parseTolerance,
  Unfit,
} from './settings.ts';
import type { StoreAddress } from './store/address.ts';

export type Config = {
  readonly store: StoreAddress;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  /** Whether the service can deliver there, or is a sandbox on this machine, which can. */
  readonly publicUrlReaches: boolean;
  readonly hooksListen: ListenAddress;
  readonly operatorListen: ListenAddress;
  /** Null: kept in a file beside the database. Never null with a shared store, and neither is `secretsKey`. */
  readonly operatorToken: string | null;
  readonly shopToken: string | null;
  /** 32 bytes; null: kept in a file beside the database. */
  readonly secretsKey: Buffer | null;
  /** What `secretsKey` takes the place of: secrets that still rest under it are opened. */
  readonly secretsKeyPrevious: Buffer | null;
  readonly toleranceSeconds: number;
  /** The service's API with its path, like https://links.example.com/api/v1; null: settled only receives. */
  readonly apiUrl: string | null;
  readonly apiKey: string | null;
  /** The file that the key came from, where it came from one. */
  readonly apiKeyFile: string | null;
  readonly apiSlots: number;
  readonly confirm: 'in-doubt' | 'always';
  readonly linkLifetimeMs: number;
  /** Whether links send the customer back through settled. */
  readonly customerReturn: boolean;
  /** Codes, a space between two; the first is that of an order that names none. */
  readonly currency: string;
  readonly hooksCors: string | null;
  /** What the names of the two headers of a delivery begin with, in lower case. */
  readonly headerPrefix: string;
  /** Where notices are sent; null: the shop reads the feed. */
  readonly shopUrl: string | null;
  /** What they are signed with; two while the shop changes its secret. */
  readonly shopSecrets: readonly Buffer[] | null;
  /** Whether they may go to addresses that only this network knows. */
  readonly shopAllowPrivate: boolean;
  /** For so long the bytes of settled events are kept. */
  readonly keepBodiesMs: number;
  readonly logLevel: LogLevel;
  /** Null: `pretty` on a terminal, `json` elsewhere. */
  readonly logFormat: LogFormat | null;
  /** What came from a file in the working folder; null if nothing did. */
  readonly envFile: EnvFile | null;
};

type Setting<T> = { name: string; fallback: string | null; parse: Parser<T> };

const SETTINGS = {
  store: setting('SETTLED_STORE', 'sqlite:./data/settled.db', parseStore),
  publicUrl: setting('SETTLED_PUBLIC_URL', 'http://127.0.0.1:8787', parsePublicUrl),
  hooksListen: setting('SETTLED_HOOKS_LISTEN', '127.0.0.1:8787', parseListen),
  operatorListen: setting('SETTLED_OPERATOR_LISTEN', '127.0.0.1:8788', parseListen),
  operatorToken: setting('SETTLED_OPERATOR_TOKEN', null, parseToken),
  shopToken: setting('SETTLED_SHOP_TOKEN', null, parseToken),
  secretsKey: setting('SETTLED_SECRETS_KEY', null, parseSecretsKey),
  secretsKeyPrevious: setting('SETTLED_SECRETS_KEY_PREVIOUS', null, parseSecretsKey),
  toleranceSeconds: setting('SETTLED_TOLERANCE_SECONDS', '300', parseTolerance),
  apiUrl: setting('SETTLED_API_URL', null, parseApiUrl),
  apiKey: setting('SETTLED_API_KEY', null, parseApiKey),
  apiSlots: setting('SETTLED_API_BUDGET_PER_MINUTE', '50', parseApiSlots),
  confirm: setting('SETTLED_CONFIRM', 'in-doubt', oneOf(['in-doubt', 'always'] as const)),
  linkLifetimeMs: setting('SETTLED_LINK_LIFETIME', '3d', duration('5m', '365d')),
  customerReturn: setting('SETTLED_RETURN', 'off', flag),
  currency: setting('SETTLED_CURRENCY', 'BRL', parseCurrency),
  headerPrefix: setting('SETTLED_HEADER_PREFIX', HEADER_PREFIX, parseHeaderPrefix),
  hooksCors: setting('SETTLED_HOOKS_CORS', null, parseOrigin),
  shopUrl: setting('SETTLED_SHOP_URL', null, parseShopUrl),
  shopSecrets: setting('SETTLED_SHOP_SECRET', null, parseShopSecrets),
  shopAllowPrivate: setting('SETTLED_SHOP_ALLOW_PRIVATE', 'false', flag),
  keepBodiesMs: setting('SETTLED_KEEP_BODIES', '90d', duration('1d', '3650d')),
  logLevel: setting('SETTLED_LOG_LEVEL', 'info', oneOf(LOG_LEVELS)),
  logFormat: setting('SETTLED_LOG_FORMAT', null, oneOf(LOG_FORMATS)),
} as const;

/**
 * Reads every SETTLED_* setting, each also as NAME_FILE, the path of a file that holds the value. Throws one fault that
 * lists everything that is wrong. If no environment is given, it is that of this process, and its `.env`.
 */
export function readConfig(given?: Environment): Config {
  const { environment, envFile } = given === undefined ? processEnvironment() : { environment: given, envFile: null };
  const faults = unknownNames(environment);
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    try {
      values[key] = readSetting(environment, setting);
    } catch (error) {
      faults.push(`${setting.name} ${(error as Error).message}`);
    }
  }
  faults.push(...faultsBetween(values as Partial<Config>));
  const { publicUrl, apiUrl } = values as Partial<Config>;
  values.publicUrlReaches =
    publicUrl !== undefined && (isPublicAddress(publicUrl) || (apiUrl != null && isLoopback(new URL(apiUrl).hostname)));
  values.apiKeyFile = environment.SETTLED_API_KEY_FILE || null;
  values.envFile = envFile;
  if (faults.length > 0) {
    const list = faults.map((fault) => `  - ${fault}`).join('\n');
    const from = envFile === null ? '' : `\n${envFile.path} gave: ${envFile.names.join(', ')}`;
    throw new Fault('terminal', 'configuration_invalid', `The configuration cannot be used:\n${list}${from}`);
  }
  return Object.freeze(values) as Config;
}

/** The API key as it is now: a key that is kept in a file may have been changed there since the start. */
export function currentApiKey({ apiKey, apiKeyFile }: Pick<Config, 'apiKey' | 'apiKeyFile'>): string {
  if (apiKeyFile === null) return apiKey ?? '';
  return parseApiKey(readFileSync(apiKeyFile, 'utf8').trim());
}

/** What each replica may have for itself. Which secrets key it has, its id tells. */
const OF_ONE_REPLICA: ReadonlySet<string> = new Set([
  'store',
  'hooksListen',
  'operatorListen',
  'secretsKey',
  'secretsKeyPrevious',
  'logLevel',
  'logFormat',
]);

/** What all replicas must have alike, as it is now, by the names of the settings. Not to be shown: secrets are among it. */
export function commonSettings(config: Config): Record<string, string> {
  const common = Object.entries(SETTINGS).filter(([key]) => !OF_ONE_REPLICA.has(key));
  const value = (key: string) => (key === 'apiKey' ? keyOrNone(config) : config[key as keyof Config]);
  return Object.fromEntries(common.map(([key, { name }]) => [name, JSON.stringify(value(key))]));
}

function keyOrNone(config: Config): string {
  try {
    return currentApiKey(config);
  } catch {
    // Its file is being replaced, or wrong: requests to the service tell of that.
    return '';
  }
}

function setting<T>(name: string, fallback: string | null, parse: Parser<T>): Setting<T> {
  return { name, fallback, parse };
}

function unknownNames(environment: Environment): string[] {
  const names = Object.values(SETTINGS).map(({ name }) => name);
  const known = new Set(names.flatMap((name) => [name, `${name}_FILE`]));
  return ownNames(environment)
    .filter((name) => !known.has(name))
    .map((name) => {
      const meant = nearest(name, [...known]);
      const guess = meant === null ? '' : ` Did you mean ${meant}?`;
      return `${name} is not a setting of this version.${guess} There are: ${names.join(', ')}`;
    });
}

/** What is as long as a token may be one, in the wrong place, and is not shown. */
const SHOWN_MAX = 15;

function readSetting<T>(environment: Environment, { name, fallback, parse }: Setting<T>): T | null {
  const given = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  if (file !== undefined && given !== undefined) {
    throw new Error(`and ${name}_FILE are both given: give one of them`);
  }
  const text = file === undefined ? (given ?? fallback) : readValue(file);
  if (text === null) return null;
  try {
    return parse(text);
  } catch (error) {
    const { message } = error as Error;
    const from = file === undefined ? '' : `from ${file} `;
    // What is shown of a setting shows no space.
    const around = text === text.trim() ? '' : ', and has a space or a line end before or after it';
    if (!(error instanceof Unfit)) throw new Error(from + message + around);
    const isShown = file === undefined && text.length <= SHOWN_MAX;
    throw new Error(`${from}${isShown ? `is "${text}"` : 'cannot be used'}; ${message}${around}`);
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

function readValue(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // The value itself may stand where its file should.
    const shown = isAbsolute(file) || file.startsWith('.') || file.length <= SHOWN_MAX ? file : 'its file';
    throw new Error(`cannot be read from ${shown}: ${UNREADABLE[code] ?? code}`);
  }
}

export const SAME_TOKENS = "SETTLED_SHOP_TOKEN must not be the operator's token: the shop may do less";

/** What is wrong with settings that are right each by itself. A setting that is wrong itself is undefined here. */
function faultsBetween(values: Partial<Config>): string[] {
  const faults: string[] = [];
  const { operatorToken, shopToken, apiUrl, apiKey, confirm, secretsKey, secretsKeyPrevious } = values;
  if (typeof operatorToken === 'string' && operatorToken === shopToken) faults.push(SAME_TOKENS);
  if (isHalf(apiUrl, apiKey)) {
    faults.push('SETTLED_API_URL and SETTLED_API_KEY belong together: give both, or neither to only receive');
  }
  if (confirm === 'always' && apiUrl === null) {
    faults.push("SETTLED_CONFIRM=always needs the service's API: set SETTLED_API_URL and SETTLED_API_KEY");
  }
  if (secretsKeyPrevious && (secretsKey === null || secretsKey?.equals(secretsKeyPrevious))) {
    faults.push('SETTLED_SECRETS_KEY_PREVIOUS is what SETTLED_SECRETS_KEY takes the place of: give both, and two keys');
  }
  return [...faults, ...faultsOfSharing(values), ...faultsOfShop(values)];
}

/** Replicas have no folder in common in which a key or a token could be made for all of them. */
function faultsOfSharing({ store, secretsKey, operatorToken }: Partial<Config>): string[] {
  if (store?.engine !== 'postgres') return [];
  return [
    ...(secretsKey === null
      ? [
          'SETTLED_SECRETS_KEY is needed with PostgreSQL, the same for all replicas: make one with `openssl rand -base64 32` ' +
            'and keep a copy of it apart from the backups',
        ]
      : []),
    ...(operatorToken === null
      ? [
          'SETTLED_OPERATOR_TOKEN is needed with PostgreSQL, the same for all replicas: make one with `openssl rand -hex 24`',
        ]
      : []),
  ];
}

function faultsOfShop({ shopUrl, shopSecrets, shopAllowPrivate }: Partial<Config>): string[] {
  if (isHalf(shopUrl, shopSecrets)) {
    return ['SETTLED_SHOP_URL and SETTLED_SHOP_SECRET belong together: give both, or neither to use the feed alone'];
  }
  if (shopUrl == null || shopAllowPrivate !== false || isPublicAddress(shopUrl)) return [];
  const { origin } = new URL(shopUrl);
  const isPublic = isPublicAddress(shopUrl.replace(/^http:/, 'https:'));
  const fault = isPublic
    ? 'which is not https: anybody on the way could read and change notices. Write https://'
    : 'which is not a public address';
  return [
    `SETTLED_SHOP_URL leads to ${origin}, ${fault}. Where the shop is on this machine or in this network, set ` +
      'SETTLED_SHOP_ALLOW_PRIVATE=true',
  ];
}

/** Whether one of two that belong together is not given. One that is wrong was meant. */
function isHalf(one: unknown, other: unknown): boolean {
  return one !== undefined && other !== undefined && (one === null) !== (other === null);
}
