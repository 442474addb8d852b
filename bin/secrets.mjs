#!/usr/bin/env node
// What compose.yaml and compose.postgres.yaml run once before settled: makes the secrets that are missing, as files that
// only this user can read. A file of the same name in the folder that is given first goes before one that was made.
//   node bin/secrets.mjs [--say TEXT] GIVEN_FOLDER FILE ...
// TEXT is printed when something was made. Nothing prints a secret. It changes nothing if nothing is missing.
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

const EXIT = { usage: 64, cannotCreate: 73, configuration: 78 };

/** How each secret is made, from those before it; what returns undefined comes only from outside. */
const MADE = {
  'api-key': () => undefined,
  'shop-token': () => randomBytes(24).toString('hex'),
  'shop-secret': () => `whsec_${randomBytes(32).toString('base64')}`,
  'operator-token': () => randomBytes(24).toString('hex'),
  'secrets-key': () => randomBytes(32).toString('base64'),
  'database-password': () => randomBytes(24).toString('hex'),
  store: (before) => `postgres://settled:${encodeURIComponent(before.get('database-password'))}@postgres:5432/settled`,
};

const { say, given, files } = readArguments();
const secrets = new Map();
const told = { made: [], taken: [], kept: [] };
for (const file of files) settle(file);
const parts = Object.entries(told).filter(([, names]) => names.length > 0);
const words = { made: 'made', taken: `taken from ${given}`, kept: 'unchanged' };
process.stdout.write(`${parts.map(([how, names]) => `${words[how]}: ${names.join(', ')}`).join('; ') || 'none'}\n`);
if (told.made.length > 0 && say !== undefined) process.stdout.write(`${say}\n`);

function readArguments() {
  try {
    const { values, positionals } = parseArgs({ options: { say: { type: 'string' } }, allowPositionals: true });
    const [folder, ...paths] = positionals;
    const unknown = paths.find((path) => !Object.hasOwn(MADE, basename(path)));
    if (folder === undefined || paths.length === 0) throw new Error('name the folder of given secrets, and the files');
    if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(MADE).join(', ')}`);
    return { say: values.say, given: folder, files: paths };
  } catch ({ message }) {
    return stop(EXIT.usage, `${message}\nusage: secrets.mjs [--say TEXT] GIVEN_FOLDER FILE ...`);
  }
}

/** Sees that the file is there: as it was given, else as it is, else made. */
function settle(file) {
  const name = basename(file);
  const own = read(join(given, name));
  const before = read(file);
  const secret = own ?? derived(name) ?? before ?? MADE[name](secrets);
  if (secret === undefined) return refuseIfNeeded(name);
  secrets.set(name, secret);
  if (secret === before) {
    told.kept.push(name);
    return;
  }
  write(file, secret);
  told[own === undefined ? 'made' : 'taken'].push(name);
}

/** The database's address follows its password. */
function derived(name) {
  return name === 'store' ? MADE.store(secrets) : undefined;
}

function refuseIfNeeded(name) {
  if (!process.env.SETTLED_API_URL) return;
  const advice = `SETTLED_API_URL is set, and the key for it is missing: write it into the file secrets/${name}`;
  stop(EXIT.configuration, `${advice}, next to compose.yaml, so that user ${process.getuid?.()} can read it.`);
}

/** Without spaces around it; undefined if there is no such file. An empty one is a mistake. */
function read(path) {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return text === '' ? stop(EXIT.configuration, `${path} is empty: write the secret into it, or remove it.`) : text;
  } catch ({ code }) {
    if (code === 'ENOENT') return undefined;
    const advice = `let user ${process.getuid?.()} read it (chown it, or the folder that it is in)`;
    return stop(EXIT.configuration, `${path} cannot be read (${code}): ${advice}.`);
  }
}

/** Whole or not at all, even if the machine stops. */
function write(path, secret) {
  const unfinished = `${path}.new`;
  try {
    rmSync(unfinished, { force: true });
    const file = openSync(unfinished, 'wx', 0o600);
    writeSync(file, secret);
    fsyncSync(file);
    closeSync(file);
    renameSync(unfinished, path);
    const folder = openSync(dirname(path), 'r');
    fsyncSync(folder);
    closeSync(folder);
  } catch ({ code }) {
    stop(
      EXIT.cannotCreate,
      `${path} cannot be written (${code}): its folder must belong to user ${process.getuid?.()}.`,
    );
  }
}

function stop(exit, message) {
  process.stderr.write(`${message}\n`);
  process.exit(exit);
}
