import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { terminalFault } from '../fault.ts';
import { nearest, whyUnreadable } from '../terminal/failure.ts';
import { isLoopback, isPublicAddress } from './addresses.ts';
import { type EnvFile, type Environment, ownNames, processEnvironment } from './environment.ts';
import { parseApiKey, Unfit } from './parsers.ts';
import { SETTINGS, type Setting } from './settings.ts';

type Settings = {
  readonly [Key in keyof typeof SETTINGS]: (typeof SETTINGS)[Key] extends Setting<infer T> ? T : never;
};

export type Config = Settings & {
  /** Whether the service can deliver to `publicUrl`. A sandbox on this machine always can. */
  readonly publicUrlReaches: boolean;
  /** The file of the API key; null if the key came from the environment. */
  readonly apiKeyFile: string | null;
  /** The settings from a `.env` file in the working directory; null if there are none. */
  readonly envFile: EnvFile | null;
};

/**
 * Reads every SETTLED_* setting. Each may also be given as NAME_FILE, the path of a file with its value. Throws one
 * fault that lists everything wrong. By default reads the environment of this process, and its `.env`.
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
    throw terminalFault('configuration_invalid', `The configuration cannot be used:\n${list}${from}`);
  }
  return Object.freeze(values) as Config;
}

/** The current API key: one in a file may have changed since the start. */
export function currentApiKey({ apiKey, apiKeyFile }: Pick<Config, 'apiKey' | 'apiKeyFile'>): string {
  if (apiKeyFile === null) return apiKey ?? '';
  return parseApiKey(readFileSync(apiKeyFile, 'utf8').trim());
}

/** Settings that may differ between replicas. The id of the secrets key shows whether that differs. */
const OF_ONE_REPLICA: ReadonlySet<string> = new Set([
  'store',
  'storeDirect',
  'hooksListen',
  'operatorListen',
  'secretsKey',
  'secretsKeyPrevious',
  'logLevel',
  'logFormat',
]);

/** The settings that all replicas must share, by name, as they are now. Never show them: some are secrets. */
export function commonSettings(config: Config): Record<string, string> {
  const common = Object.entries(SETTINGS).filter(([key]) => !OF_ONE_REPLICA.has(key));
  const value = (key: string) => (key === 'apiKey' ? keyOrNone(config) : config[key as keyof Config]);
  return Object.fromEntries(common.map(([key, { name }]) => [name, JSON.stringify(value(key))]));
}

function keyOrNone(config: Config): string {
  try {
    return currentApiKey(config);
  } catch {
    // The file is being replaced, or wrong. Requests to the service report that.
    return '';
  }
}

function unknownNames(environment: Environment): string[] {
  const names = Object.values(SETTINGS).map(({ name }) => name);
  const known = new Set(names.flatMap((name) => [name, `${name}_FILE`]));
  // All begin alike, which would make them similar.
  const ending = (name: string) => name.replace(/^SETTLED_/, '');
  return ownNames(environment)
    .filter((name) => !known.has(name))
    .map((name) => {
      const meant = nearest(ending(name), [...known].map(ending));
      const guess = meant === null ? '' : ` Did you mean SETTLED_${meant}?`;
      return `${name} is not a setting of this version.${guess} There are: ${names.join(', ')}`;
    });
}

/** A longer value may be a misplaced token, so it is not shown. */
const SHOWN_MAX = 15;

/** Throws a sentence without a subject. It quotes at most a short text that is no secret. */
export function readSetting<T>(environment: Environment, { name, fallback, parse }: Setting<T>): T | null {
  const given = environment[name] || undefined;
  const file = environment[`${name}_FILE`] || undefined;
  if (file !== undefined && given !== undefined) {
    throw new Error(`and ${name}_FILE are both given: give one of them`);
  }
  const text = file === undefined ? (given ?? fallback) : readValue(file);
  if (text === null) return null;
  if (/^(["']).*\1$/s.test(text)) {
    throw new Error('has quotation marks around it, which are taken for a part of it: take them away');
  }
  try {
    return parse(text);
  } catch (error) {
    const { message } = error as Error;
    const from = file === undefined ? '' : `from ${file} `;
    // A space is invisible in the shown value.
    const around = text === text.trim() ? '' : ', and has a space or a line end before or after it';
    if (!(error instanceof Unfit)) throw new Error(from + message + around);
    const isShown = file === undefined && text.length <= SHOWN_MAX;
    throw new Error(`${from}${isShown ? `is "${text}"` : 'cannot be used'}; ${message}${around}`);
  }
}

function readValue(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    // The operator may have given the value itself instead of its file.
    const shown = isAbsolute(file) || file.startsWith('.') || file.length <= SHOWN_MAX ? file : 'its file';
    throw new Error(`cannot be read from ${shown}: it ${whyUnreadable(error)}`);
  }
}

export const SAME_TOKENS = "SETTLED_SHOP_TOKEN must not be the operator's token: the shop may do less";

/** Faults between settings that are valid alone. An invalid setting is undefined here. */
function faultsBetween(values: Partial<Config>): string[] {
  const faults: string[] = [];
  const { operatorToken, shopToken, apiUrl, apiKey, confirm, secretsKey, secretsKeyPrevious } = values;
  if (typeof operatorToken === 'string' && operatorToken === shopToken) faults.push(SAME_TOKENS);
  faults.push(...faultOfHalf({ SETTLED_API_URL: apiUrl, SETTLED_API_KEY: apiKey }, 'both, or neither to only receive'));
  if (confirm === 'always' && apiUrl === null) {
    faults.push("SETTLED_CONFIRM=always needs the service's API: set SETTLED_API_URL and SETTLED_API_KEY");
  }
  if (secretsKeyPrevious && (secretsKey === null || secretsKey?.equals(secretsKeyPrevious))) {
    faults.push('SETTLED_SECRETS_KEY_PREVIOUS is the key that SETTLED_SECRETS_KEY replaces: give both, and two keys');
  }
  return [...faults, ...faultsOfSharing(values), ...faultsOfShop(values), ...faultsOfAlerts(values)];
}

/** Replicas share no directory in which settled could make a key or token for all of them. */
function faultsOfSharing({ store, secretsKey, operatorToken, ...more }: Partial<Config>): string[] {
  if (store?.engine === 'sqlite') return faultsOfFile(more);
  if (store === undefined) return [];
  const needed = 'is needed with PostgreSQL, the same for all replicas: make one with';
  const key = `SETTLED_SECRETS_KEY ${needed} \`openssl rand -base64 32\` and keep a copy of it apart from the backups`;
  const token = `SETTLED_OPERATOR_TOKEN ${needed} \`openssl rand -hex 24\``;
  return [...(secretsKey === null ? [key] : []), ...(operatorToken === null ? [token] : [])];
}

/** settled syncs its own file, and uses no pooler. */
function faultsOfFile({ storeDirect, storeDurability }: Partial<Config>): string[] {
  const durability =
    'SETTLED_STORE_DURABILITY is for PostgreSQL alone: settled itself has SQLite sync each commit. Remove it';
  const direct = 'SETTLED_STORE_DIRECT is for PostgreSQL behind a pooler, and SETTLED_STORE is a file. Remove it';
  return [...(storeDurability ? [durability] : []), ...(storeDirect ? [direct] : [])];
}

function faultsOfShop({ shopUrl, shopSecrets, shopAllowPrivate }: Partial<Config>): string[] {
  const pair = { SETTLED_SHOP_URL: shopUrl, SETTLED_SHOP_SECRET: shopSecrets };
  const half = faultOfHalf(pair, 'both, or neither to use the feed alone');
  if (half.length > 0) return half;
  if (shopUrl == null || shopAllowPrivate !== false) return [];
  const shop = { name: 'SETTLED_SHOP_URL', who: 'the shop', what: 'notices', allow: 'SETTLED_SHOP_ALLOW_PRIVATE' };
  return faultOfAddress(shopUrl, shop);
}

/** A channel that is configured by half would be taken to work. */
function faultsOfAlerts(values: Partial<Config>): string[] {
  const { alertUrl, alertSecrets, alertSmtp, alertFrom, alertTo, alertDigest, alertAllowPrivate, heartbeatUrl } =
    values;
  const hook = { SETTLED_ALERT_URL: alertUrl, SETTLED_ALERT_SECRET: alertSecrets };
  const mail = { SETTLED_ALERT_SMTP: alertSmtp, SETTLED_ALERT_FROM: alertFrom, SETTLED_ALERT_TO: alertTo };
  const faults = [...faultOfHalf(hook, 'both, or neither'), ...faultOfHalf(mail, 'all three, or none')];
  if (alertDigest && alertUrl === null && alertSmtp === null) {
    faults.push('SETTLED_ALERT_DIGEST has nowhere to go: set SETTLED_ALERT_URL or SETTLED_ALERT_SMTP too');
  }
  if (alertAllowPrivate !== false) return faults;
  const host = alertSmtp?.host.includes(':') ? `[${alertSmtp.host}]` : alertSmtp?.host;
  const sent = [
    { url: alertUrl, name: 'SETTLED_ALERT_URL', who: 'the hook', what: 'alerts' },
    { url: heartbeatUrl, name: 'SETTLED_HEARTBEAT_URL', who: 'that service', what: 'heartbeats' },
    { url: host && `https://${host}`, name: 'SETTLED_ALERT_SMTP', who: 'the mail server', what: 'mail' },
  ];
  const allow = 'SETTLED_ALERT_ALLOW_PRIVATE';
  return [...faults, ...sent.flatMap(({ url, ...to }) => (url == null ? [] : faultOfAddress(url, { ...to, allow })))];
}

type Sending = { name: string; who: string; what: string; allow: string };

/** Why settled may not send there without permission; empty if it may. */
function faultOfAddress(url: string, { name, who, what, allow }: Sending): string[] {
  if (isPublicAddress(url)) return [];
  const { origin, host } = new URL(url);
  const isPublic = isPublicAddress(url.replace(/^http:/, 'https:'));
  const fault = isPublic
    ? `which is not https: anyone on the way could read and change ${what}. Write https://`
    : 'which is not a public address';
  const address = what === 'mail' ? host : origin;
  return [`${name} leads to ${address}, ${fault}. If ${who} is on this machine or in this network, set ${allow}=true`];
}

/** A fault if one of these settings is given and another is not. An invalid one counts as neither. */
function faultOfHalf(settings: Readonly<Record<string, unknown>>, advice: string): string[] {
  const names = Object.keys(settings);
  const missing = names.filter((name) => settings[name] === null);
  if (missing.length === 0 || !names.some((name) => settings[name] != null)) return [];
  const all = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  return [`${all} belong together: give ${advice}. Missing: ${missing.join(' and ')}`];
}
