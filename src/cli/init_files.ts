import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { readSetting } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';
import { CommandError } from './exit.ts';

/** What `settled init` writes: `.env`, and a folder with one file for each secret. Neither may be there before. */

const ENV_FILE = '.env';
const FOLDER = 'data';

/** The file in the folder that holds each secret. */
const SECRET_FILES = {
  SETTLED_API_KEY: `${FOLDER}/api-key`,
  SETTLED_STORE: `${FOLDER}/store`,
  SETTLED_SECRETS_KEY: `${FOLDER}/secrets-key`,
  SETTLED_OPERATOR_TOKEN: `${FOLDER}/operator-token`,
  SETTLED_SHOP_TOKEN: `${FOLDER}/shop-token`,
  SETTLED_SHOP_SECRET: `${FOLDER}/shop-secret`,
} as const;
type SecretName = keyof typeof SECRET_FILES;

/** Throws `not_confirmed` if something is there: settings of settled or of another program, or what another user has put there. */
export function refuseSecondTime(): void {
  const there = [ENV_FILE, FOLDER].find((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined);
  if (there === undefined) return;
  const message =
    `${resolve(there)} exists, and nothing was changed: settled is set up in a folder that has neither ${ENV_FILE} nor ` +
    `${FOLDER}. To change a setting, edit it there and start settled again. To begin anew, move both away; for another ` +
    'shop, take another folder.';
  throw new CommandError('not_confirmed', message);
}

export type InitPlan = {
  /** The content of `.env`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Content of the files to write, by their path. */
  readonly secrets: ReadonlyMap<string, string>;
  /** The settings with each file's content in place of its path, as `readConfig` takes them. Never show them. */
  readonly environment: Environment;
};

const token = () => randomBytes(24).toString('base64url');
const key = () => randomBytes(32).toString('base64');

/**
 * Plans what the answers, by the names of their settings, need. What the environment of the process gives is not written
 * again.
 */
export function planFiles(answers: Readonly<Record<string, string>>, inherited: Environment): InitPlan {
  const settings: Record<string, string> = {};
  const secrets = new Map<string, string>();
  const environment: Record<string, string | undefined> = { ...inherited };
  const setSecret = (name: SecretName, value: string) => {
    if (isGiven(inherited, name)) return;
    const path = SECRET_FILES[name];
    settings[`${name}_FILE`] = path;
    secrets.set(path, value);
    environment[name] = value;
  };
  const isShared = isPostgres({ ...inherited, ...answers });
  for (const [name, value] of Object.entries(answers)) {
    if (name === 'SETTLED_API_KEY' || (name === 'SETTLED_STORE' && isShared)) setSecret(name, value);
    else {
      settings[name] = value;
      environment[name] = value;
    }
  }
  if (isShared) {
    setSecret('SETTLED_SECRETS_KEY', key());
    setSecret('SETTLED_OPERATOR_TOKEN', token());
  }
  setSecret('SETTLED_SHOP_TOKEN', token());
  if (isGiven(environment, 'SETTLED_SHOP_URL')) setSecret('SETTLED_SHOP_SECRET', `whsec_${key()}`);
  return { settings, secrets, environment };
}

export function isGiven(environment: Environment, name: string): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

/** What is no address is refused with the whole configuration. */
function isPostgres(environment: Environment): boolean {
  try {
    return readSetting(environment, SETTINGS.store)?.engine === 'postgres';
  } catch {
    return false;
  }
}

/** Writes all, durably, or nothing. Returns the paths. Throws `files_unwritable`. */
export async function writeFiles({ settings, secrets }: InitPlan): Promise<string[]> {
  const { syncPath } = await import('../store/sqlite/file.ts');
  const text = envText(settings);
  const made: string[] = [];
  try {
    mkdirSync(FOLDER, { mode: 0o700 });
    made.push(FOLDER);
    for (const [path, secret] of secrets) writeNew(path, `${secret}\n`);
    // Makes the names of new files durable.
    syncPath(FOLDER);
    made.push(ENV_FILE);
    // Last, so that no interruption leaves settings that name missing files.
    writeNew(ENV_FILE, text);
    syncPath('.');
    return [...secrets.keys(), ENV_FILE];
  } catch (error) {
    const { code, path = '.' } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    // What another process made in the meantime is not this one's to remove.
    if (code === 'EEXIST') made.pop();
    for (const ours of made) rmSync(ours, { recursive: true, force: true });
    const message = `${resolve(path)} cannot be written (${code}). Run the command in a folder that this user may write.`;
    throw new CommandError('files_unwritable', message);
  }
}

function writeNew(path: string, text: string): void {
  writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true });
}

const HEAD = '# Written by `settled init`. docs/configure.md lists all settings; each secret has a file of its own.';
const PLAIN = /^[\w@%+=:,./-]+$/;

/** The text of a file `.env` that is read back as these settings. Throws `answer_refused` for a value that cannot be quoted. */
export function envText(settings: Readonly<Record<string, string>>): string {
  const lines = Object.entries(settings).map(([name, value]) => assignment(name, value));
  return `${[HEAD, ...lines].join('\n')}\n`;
}

/** Plain, or in single quotes, because no reader of such files replaces a `$` between them. */
function assignment(name: string, value: string): string {
  const line = `${name}=${PLAIN.test(value) ? value : `'${value}'`}`;
  if (!/\p{Cc}/u.test(value) && parseEnv(`${line}\n`)[name] === value) return line;
  throw new CommandError(
    'answer_refused',
    `${name} cannot be written into .env so that it is read back as it is. Give it in the environment.`,
  );
}
