import type { StoreAddress } from '../store/address.ts';
import { readConfig, readSetting } from './config.ts';
import { type Environment, processEnvironment } from './environment.ts';
import { SETTINGS, type Setting } from './settings.ts';

/** What each setting is and where it comes from, for a person who looks for why settled does what it does. */

export type ShownSetting = {
  readonly name: string;
  /** Null if it is not set, hidden or cannot be used. */
  readonly value: string | null;
  readonly source: 'environment' | '.env' | 'file' | 'default' | 'not set';
  /** The file that it comes from: a `.env`, or the one that NAME_FILE names; null otherwise. */
  readonly file: string | null;
  /** Whether there is a value that is not shown because it is, or holds, a secret. */
  readonly hidden: boolean;
  /** Why it cannot be used; null if it can. */
  readonly fault: string | null;
};

export type ShownConfig = {
  readonly settings: readonly ShownSetting[];
  /** Everything that is wrong, between settings too; null if the configuration can be used. */
  readonly fault: string | null;
};

/** Settings that hold no secret. All others are hidden, so that a new one is hidden until it is named here. */
const SHOWN: ReadonlySet<keyof typeof SETTINGS> = new Set([
  'store',
  'storeDirect',
  'storeDurability',
  'publicUrl',
  'hooksListen',
  'operatorListen',
  'toleranceSeconds',
  'apiUrl',
  'apiSlots',
  'confirm',
  'linkLifetimeMs',
  'customerReturn',
  'currency',
  'headerPrefix',
  'hooksCors',
  'shopUrl',
  'shopAllowPrivate',
  'consoleUrl',
  'consoleBadge',
  'keepBodiesMs',
  'logLevel',
  'logFormat',
]);

/** Every setting, in the order of `SETTINGS`. Without an environment it reads that of this process, and its `.env`. */
export function showConfig(given?: Environment): ShownConfig {
  const { environment, envFile } = given === undefined ? processEnvironment() : { environment: given, envFile: null };
  const ofEnvFile = new Set(envFile?.names ?? []);
  const settings = Object.entries(SETTINGS).map(([key, setting]) => {
    const { source, file } = sourceOf(setting, environment);
    const isOfEnvFile = ofEnvFile.has(setting.name) && source === 'environment';
    return {
      name: setting.name,
      ...shownValue(key as keyof typeof SETTINGS, setting, environment),
      source: isOfEnvFile ? ('.env' as const) : source,
      file: isOfEnvFile ? (envFile?.path ?? null) : file,
    };
  });
  return { settings, fault: faultOf(given) };
}

function faultOf(given: Environment | undefined): string | null {
  try {
    readConfig(given);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function sourceOf(
  { name, fallback }: Setting<unknown>,
  environment: Environment,
): Pick<ShownSetting, 'source' | 'file'> {
  const file = environment[`${name}_FILE`] || null;
  if (file !== null) return { source: 'file', file };
  if (environment[name]) return { source: 'environment', file: null };
  return { source: fallback === null ? 'not set' : 'default', file: null };
}

type Value = Pick<ShownSetting, 'value' | 'hidden' | 'fault'>;

function shownValue(key: keyof typeof SETTINGS, setting: Setting<unknown>, environment: Environment): Value {
  try {
    const value = readSetting(environment, setting);
    if (value === null) return { value: null, hidden: false, fault: null };
    if (!SHOWN.has(key)) return { value: null, hidden: true, fault: null };
    return { value: inWords(key, value, environment[setting.name] || setting.fallback), hidden: false, fault: null };
  } catch (error) {
    return { value: null, hidden: false, fault: (error as Error).message };
  }
}

/**
 * Addresses without what may be a secret: passwords, queries, and the path of the shop's callback. Anything else as it was
 * written, or as it was read.
 */
function inWords(key: keyof typeof SETTINGS, value: unknown, written: string | null): string {
  if (typeof value === 'object' && value !== null && 'engine' in value) return nameOf(value as StoreAddress);
  const text = typeof value === 'string' ? value : (written ?? String(value));
  const url = URL.parse(text);
  if (key === 'shopUrl' && url !== null)
    return url.pathname === '/' && url.search === '' ? url.origin : `${url.origin}/…`;
  return url === null || url.search === '' ? text : `${url.origin}${url.pathname}?…`;
}

function nameOf({ engine, name }: StoreAddress): string {
  return engine === 'sqlite' ? `sqlite:${name}` : name;
}
