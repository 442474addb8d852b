import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { readSetting } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';
import { CommandError } from './exit.ts';

/** What `settled init` writes: `.env`, and a folder with one file for each secret. It replaces none that is there. */

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

/** Throws `not_confirmed` if settled, or another program, has its settings in this folder. */
export function refuseSecondTime(): void {
  if (lstatSync(ENV_FILE, { throwIfNoEntry: false }) === undefined) return;
  const message =
    `${resolve(ENV_FILE)} exists, and nothing was changed. It is a text that you can edit; \`settled doctor\` checks a settled ` +
    'that runs with it. To be asked again, move it away: the secrets in data/ are kept. For another shop, take another folder.';
  throw new CommandError('not_confirmed', message);
}

const OTHERS_WRITE = constants.S_IWGRP | constants.S_IWOTH;

/** Throws `answer_refused` if another user can write a secret that is there and would be kept: they would know it. */
export function refuseForeignFiles(): void {
  const ownId = process.geteuid?.();
  const names = statSync(FOLDER, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(FOLDER) : [];
  // Those beside a database as well: settled uses the key and the token that it finds.
  const secrets = names.map((name) => `${FOLDER}/${name}`).filter(isSecret);
  for (const path of [FOLDER, ...secrets].filter(() => ownId !== undefined)) {
    const found = statSync(path, { throwIfNoEntry: false });
    // Who made a link has chosen where it leads.
    const isOthers = [found, lstatSync(path, { throwIfNoEntry: false })].some(
      (one) => one !== undefined && one.uid !== ownId && one.uid !== 0,
    );
    // Who may write into the folder is corrected when the files are written.
    const isOpen = found?.isFile() === true && (found.mode & OTHERS_WRITE) !== 0;
    if (!isOthers && !isOpen) continue;
    throw new CommandError(
      'answer_refused',
      `Another user can write ${resolve(path)}, and may have chosen what is in it. If you know what it says, make it yours ` +
        '(chown, and chmod go-w); otherwise remove it. Nothing was changed.',
    );
  }
}

function isSecret(path: string): boolean {
  return Object.values<string>(SECRET_FILES).includes(path) || /\.(key|operator-token)$/.test(path);
}

export type InitPlan = {
  /** The content of `.env`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Content of the files to write, by their path. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Paths of secrets that are there. */
  readonly kept: readonly string[];
  /** The settings with each file's content in place of its path, as `readConfig` takes them. Never show them. */
  readonly environment: Environment;
};

const token = () => randomBytes(24).toString('base64url');
const key = () => randomBytes(32).toString('base64');

/**
 * Plans what the answers, by the names of their settings, need. What the environment of the process gives is not written
 * again. Throws `answer_refused`.
 */
export function planFiles(answers: Readonly<Record<string, string>>, inherited: Environment): InitPlan {
  const settings: Record<string, string> = {};
  const secrets = new Map<string, string>();
  const kept: string[] = [];
  const environment: Record<string, string | undefined> = { ...inherited };
  /** `given`: null if it is made, unless there is one. */
  const setSecret = (name: SecretName, given: string | null, make = token) => {
    if (isGiven(inherited, name)) return;
    const path = SECRET_FILES[name];
    const there = readIfThere(path);
    if (there === '' || (there !== undefined && given !== null && there !== given)) {
      const message = `${resolve(path)} has another content, and no secret is replaced: if nothing needs it, remove it.`;
      throw new CommandError('answer_refused', `${message} Nothing was changed.`);
    }
    const value = there ?? given ?? make();
    settings[`${name}_FILE`] = path;
    environment[name] = value;
    if (there === undefined) secrets.set(path, value);
    else kept.push(path);
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
    setSecret('SETTLED_SECRETS_KEY', null, key);
    setSecret('SETTLED_OPERATOR_TOKEN', null);
  }
  setSecret('SETTLED_SHOP_TOKEN', null);
  if (isGiven(environment, 'SETTLED_SHOP_URL')) setSecret('SETTLED_SHOP_SECRET', null, () => `whsec_${key()}`);
  return { settings, secrets, kept, environment };
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

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/**
 * Writes secrets first and `.env` last, so that an interruption leaves no settings that name missing files. Returns the
 * paths. Throws `files_unwritable`.
 */
export async function writeFiles({ settings, secrets, kept }: InitPlan): Promise<string[]> {
  const { syncPath } = await import('../store/sqlite/file.ts');
  const text = envText(settings);
  try {
    mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
    chmodSync(FOLDER, 0o700);
    for (const path of kept) restrict(path);
    for (const [path, secret] of secrets) writeNew(path, `${secret}\n`);
    // Makes the names of new files durable.
    syncPath(FOLDER);
    writeNew(ENV_FILE, text);
    syncPath('.');
    return [...secrets.keys(), ENV_FILE];
  } catch (error) {
    const { code, path = '.' } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const message = `${resolve(path)} cannot be written (${code}). Run the command in a folder that this user may write.`;
    throw new CommandError('files_unwritable', message);
  }
}

/** For this user alone; a link, which may lead to a file of others, is left as it is. */
function restrict(path: string): void {
  if (!lstatSync(path).isSymbolicLink()) chmodSync(path, 0o600);
}

/** Leaves no part of a file if the disk is full. */
function writeNew(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(path, { force: true });
    throw error;
  }
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
