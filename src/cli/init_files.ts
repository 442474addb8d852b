import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual, parseEnv } from 'node:util';
import type { Environment } from '../config/environment.ts';
import { CommandError } from './exit.ts';

/** What `settled init` writes: `.env`, and a folder with one file for each secret. */

export const ENV_FILE = '.env';
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

export type InitAnswers = {
  apiUrl: string;
  apiKey: string;
  publicUrl: string;
  store: string;
  /** Empty: the shop reads the feed. */
  shopUrl: string;
  shopAllowPrivate: boolean;
};

/** The settings that are there already: of the process, and of `.env`. */
export type SettingsBefore = { readonly inherited: Environment; readonly file: Environment };

export type InitPlan = {
  /** The content of `.env`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Files to write, by their path. */
  readonly secrets: ReadonlyMap<string, string>;
  /** The settings with each planned file's content in place of its path, as `readConfig` takes them. Never show them. */
  readonly environment: Environment;
};

/**
 * Throws `answer_refused` if another user can write what `planFiles` would keep: they would know the secrets, or have
 * chosen where the API key is sent.
 */
export function refuseForeignFiles(): void {
  const ownId = process.geteuid?.();
  for (const path of [ENV_FILE, FOLDER, ...Object.values(SECRET_FILES), ...filesOfStores()]) {
    const found = statIfThere(path);
    const link = statIfThere(path, lstatSync);
    if (found === undefined || link === undefined || ownId === undefined) continue;
    // Who made a link has chosen where it leads.
    const foreign = [found, link].find(({ uid }) => uid !== ownId && uid !== 0);
    const isForeign = foreign !== undefined;
    // Who may write into the folder is corrected when the files are written.
    const mayBeWritten = found.isFile() && (found.mode & OTHERS_WRITE) !== 0;
    if (!isForeign && !mayBeWritten) continue;
    const why = isForeign ? `It belongs to user ${foreign.uid}` : `Its mode is ${(found.mode & 0o777).toString(8)}`;
    const advice = isForeign
      ? `run the command as that user, or give it to user ${ownId}`
      : 'take that away (chmod go-w)';
    const message =
      `Another user can write ${resolve(path)}, and may have chosen what is in it. ${why}: if you know what it says, ` +
      `${advice}; otherwise remove it. Nothing was changed.`;
    throw new CommandError('answer_refused', message);
  }
}

/** The key and the token beside a database in the folder: settled uses those that it finds. */
function filesOfStores(): string[] {
  const names = statIfThere(FOLDER)?.isDirectory() ? readdirSync(FOLDER) : [];
  return names.filter((name) => /\.(key|operator-token)$/.test(name)).map((name) => `${FOLDER}/${name}`);
}

const OTHERS_WRITE = constants.S_IWGRP | constants.S_IWOTH;

/** Undefined also if it cannot be looked at: then it can be neither read nor written. */
function statIfThere(path: string, look: (path: string) => Stats = statSync): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined;
  }
}

const token = () => randomBytes(24).toString('base64url');
const key = () => randomBytes(32).toString('base64');

/**
 * Plans what the answers need. What the environment of the process gives is not written again, and what `.env` or `data/`
 * has already is kept: above all keys, which cannot be replaced.
 */
export function planFiles(answers: InitAnswers, { inherited, file }: SettingsBefore): InitPlan {
  const kept = Object.entries(file).filter(([name, value]) => value !== '' || !name.startsWith('SETTLED_'));
  const settings = Object.fromEntries(kept) as Record<string, string>;
  const secrets = new Map<string, string>();
  const isInherited = (name: string) => isGiven(inherited, name);
  const remove = (name: string) => {
    delete settings[name];
    delete settings[`${name}_FILE`];
  };
  const set = (name: string, value: string) => {
    if (isInherited(name) || settingText(settings, name) === value) return;
    remove(name);
    settings[name] = value;
  };
  const keep = (name: SecretName, value: string) => {
    remove(name);
    settings[`${name}_FILE`] = SECRET_FILES[name];
    secrets.set(SECRET_FILES[name], value);
  };
  const setSecret = (name: SecretName, value: string) => {
    if (!isInherited(name) && settingText(settings, name) !== value) keep(name, value);
  };
  const makeSecret = (name: SecretName, make: () => string) => {
    if (isInherited(name) || isGiven(settings, name)) return;
    keep(name, readIfThere(SECRET_FILES[name]) || make());
  };

  const isShared = /^postgres(ql)?:/i.test(answers.store);
  set('SETTLED_PUBLIC_URL', answers.publicUrl);
  set('SETTLED_API_URL', answers.apiUrl);
  setSecret('SETTLED_API_KEY', answers.apiKey);
  if (isShared) {
    setSecret('SETTLED_STORE', answers.store);
    makeSecret('SETTLED_SECRETS_KEY', key);
    makeSecret('SETTLED_OPERATOR_TOKEN', token);
  } else set('SETTLED_STORE', answers.store);
  makeSecret('SETTLED_SHOP_TOKEN', token);
  if (answers.shopUrl === '') for (const name of OF_CALLBACK) remove(name);
  else {
    set('SETTLED_SHOP_URL', answers.shopUrl);
    makeSecret('SETTLED_SHOP_SECRET', () => `whsec_${key()}`);
    if (answers.shopAllowPrivate) set('SETTLED_SHOP_ALLOW_PRIVATE', 'true');
    else remove('SETTLED_SHOP_ALLOW_PRIVATE');
  }
  return { settings, secrets, environment: { ...inherited, ...withContents(settings, secrets) } };
}

const OF_CALLBACK = ['SETTLED_SHOP_URL', 'SETTLED_SHOP_SECRET', 'SETTLED_SHOP_ALLOW_PRIVATE'];

export function isGiven(environment: Environment, name: string): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

/** A setting's text, from its file if one is named; undefined if it is not given or cannot be read. */
export function settingText(environment: Environment, name: string): string | undefined {
  const file = environment[`${name}_FILE`];
  return environment[name] || (file ? readIfThere(file) : undefined) || undefined;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

function withContents(settings: Readonly<Record<string, string>>, secrets: ReadonlyMap<string, string>): Environment {
  const pairs = Object.entries(settings).map(([name, value]) => {
    const content = name.endsWith('_FILE') ? secrets.get(value) : undefined;
    return content === undefined ? [name, value] : [name.replace(/_FILE$/, ''), content];
  });
  return Object.fromEntries(pairs);
}

const HEAD = '# Written by `settled init`. docs/configure.md lists all settings; each secret has a file of its own.';
const PLAIN = /^[\w@%+=:,./-]+$/;

/** The text of a file `.env` that is read back as these settings. Throws `answer_refused` for a value that no quotes can hold. */
export function envText(settings: Readonly<Record<string, string>>): string {
  const lines = Object.entries(settings).map(([name, value]) => assignment(name, value));
  return `${[HEAD, ...lines].join('\n')}\n`;
}

/** Plain if possible; single quotes before others, because no reader of such files replaces a `$` between them. */
function assignment(name: string, value: string): string {
  const quoted = ["'", '"', '`'].map((quote) => `${quote}${value}${quote}`);
  const forms = [...(PLAIN.test(value) ? [value] : []), ...quoted].map((form) => `${name}=${form}`);
  const fitting = forms.find((form) => isReadAs(form, name, value));
  if (fitting !== undefined) return fitting;
  const message =
    `${name} cannot be written into .env so that it is read back as it is: no kind of quotes can hold its value. Give it in ` +
    'the environment, or as a file that its name with _FILE names.';
  throw new CommandError('answer_refused', message);
}

/** Whether the text is this one setting, and ends so that the next line is read as a line of its own. */
function isReadAs(text: string, name: string, value: string): boolean {
  const next = `${name}_NEXT`;
  const { [name]: read, [next]: after, ...more } = parseEnv(`${text}\n${next}=whole\n`);
  return read === value && after === 'whole' && Object.keys(more).length === 0;
}

export type WrittenFile = {
  path: string;
  /** Where the content before is kept; null if there was none, or the same. */
  before: string | null;
};

/**
 * Writes secrets first and `.env` last, each whole or not at all, so that an interruption leaves no settings that name
 * missing files. Keeps a copy of what it replaces. Returns what it wrote. Throws `files_unwritable`.
 */
export function writeFiles({ settings, secrets }: InitPlan, nowMs: number): WrittenFile[] {
  const text = envText(settings);
  const stamp = new Date(nowMs).toISOString().replace(/[-:.]/g, '');
  try {
    if (secrets.size > 0) {
      mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
      chmodSync(FOLDER, 0o700);
    }
    const written = [...secrets].map(([path, secret]) => writeOne(path, `${secret}\n`, stamp));
    if (secrets.size > 0) syncFolder(FOLDER);
    const env = isSaid(settings) ? null : writeOne(ENV_FILE, text, stamp);
    syncFolder('.');
    return [...written, env].filter((one) => one !== null);
  } catch (error) {
    const { code, path = '.' } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const message = `${resolve(path)} cannot be written (${code}). Run the command in a folder that this user may write.`;
    throw new CommandError('files_unwritable', message);
  }
}

/** Whether `.env` has just these settings, in whatever order and beside whatever remarks. */
function isSaid(settings: Readonly<Record<string, string>>): boolean {
  const said = existsSync(ENV_FILE) ? parseEnv(readFileSync(ENV_FILE, 'utf8')) : {};
  return isDeepStrictEqual({ ...said }, { ...settings });
}

/** Null if the file says so already. */
function writeOne(path: string, text: string, stamp: string): WrittenFile | null {
  const content = existsSync(path) ? readFileSync(path, 'utf8') : null;
  if (content !== null) restrict(path);
  if (content?.trim() === text.trim()) return null;
  const before = content === null ? null : `${path}.before-${stamp}`;
  if (before !== null) {
    copyFileSync(path, before, constants.COPYFILE_EXCL);
    chmodSync(before, 0o600);
  }
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  return { path, before };
}

/** For this user alone; a link, which may lead to a file of others, is left as it is, and replaced if it has to say more. */
function restrict(path: string): void {
  if (lstatSync(path).isSymbolicLink()) return;
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    fchmodSync(descriptor, 0o600);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes the names of new files durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
