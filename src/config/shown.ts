import type { StoreAddress } from '../store/address.ts';
import { readConfig, readSetting } from './config.ts';
import { type Environment, processEnvironment } from './environment.ts';
import { SETTINGS, type Setting } from './settings.ts';

/** Shows each setting and its source, for a person who wants to know why settled does what it does. */

export type ShownSetting = {
  readonly name: string;
  /** Null if it is not set, hidden or invalid. */
  readonly value: string | null;
  readonly source: 'environment' | '.env' | 'file' | 'default' | 'not set';
  /** The file that it comes from: a `.env`, or the one that NAME_FILE names; otherwise null. */
  readonly file: string | null;
  /** Whether it has a value that is not shown because it is, or holds, a secret. */
  readonly hidden: boolean;
  /** Why it is invalid; null if it is valid. */
  readonly fault: string | null;
};

export type ShownConfig = {
  readonly settings: readonly ShownSetting[];
  /** Everything that is wrong, also between settings; null if the configuration is valid. */
  readonly fault: string | null;
};

/** Every setting, in the order of `SETTINGS`. By default of the environment of this process, and its `.env`. */
export function showConfig(given?: Environment): ShownConfig {
  const { environment, envFile } = given === undefined ? processEnvironment() : { environment: given, envFile: null };
  const settings = Object.entries(SETTINGS).map(([key, setting]) => {
    const { name } = setting;
    const isOfEnvFile = envFile?.names.includes(name) === true;
    const file = environment[`${name}_FILE`] || (isOfEnvFile ? envFile.path : null);
    return { name, ...shownValue(key as keyof typeof SETTINGS, setting, environment), source: sourceOf(), file };

    function sourceOf(): ShownSetting['source'] {
      if (environment[`${name}_FILE`]) return 'file';
      if (environment[name]) return isOfEnvFile ? '.env' : 'environment';
      return setting.fallback === null ? 'not set' : 'default';
    }
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

type Value = Pick<ShownSetting, 'value' | 'hidden' | 'fault'>;

function shownValue(key: keyof typeof SETTINGS, setting: Setting<unknown>, environment: Environment): Value {
  try {
    const value = readSetting(environment, setting);
    if (value === null) return { value: null, hidden: false, fault: null };
    if (!setting.isShown) return { value: null, hidden: true, fault: null };
    return { value: inWords(key, value, environment[setting.name] || setting.fallback), hidden: false, fault: null };
  } catch (error) {
    return { value: null, hidden: false, fault: (error as Error).message };
  }
}

/** Whoever knows the path of a hook may send to it. */
const PATHS_HIDDEN: ReadonlySet<string> = new Set(['shopUrl', 'alertUrl', 'heartbeatUrl']);

/**
 * A setting's value without what may be a secret: passwords, queries, and the paths of callbacks. Other values
 * as written, or as read.
 */
function inWords(key: keyof typeof SETTINGS, value: unknown, written: string | null): string {
  if (typeof value === 'object' && value !== null && 'engine' in value) return nameOf(value as StoreAddress);
  const text = typeof value === 'string' ? value : (written ?? String(value));
  const url = URL.parse(text);
  if (PATHS_HIDDEN.has(key) && url !== null)
    return url.pathname === '/' && url.search === '' ? url.origin : `${url.origin}/…`;
  return url === null || url.search === '' ? text : `${url.origin}${url.pathname}?…`;
}

function nameOf({ engine, name }: StoreAddress): string {
  return engine === 'sqlite' ? `sqlite:${name}` : name;
}
