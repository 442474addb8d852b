import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import type { Finished } from '../../prove/harness/program.ts';
import { run, settledIn } from '../../src/cli/commands.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { reportText } from '../../src/terminal/output.ts';
import { reportOf } from '../../src/terminal/run.ts';
import { PIPE } from '../../src/terminal/screen.ts';
import { OPERATOR_TOKEN, type TestApp } from '../support/app.ts';
import { printedBy, runSettled } from '../support/process.ts';

/** The environment in which a command finds the server of the test. */
export function environmentOf({ apiUrl, storePath, database }: TestApp): Record<string, string> {
  return {
    ...(database === null ? { SETTLED_STORE: `sqlite:${storePath}` } : database.environment),
    // As for a server that listens on every address.
    SETTLED_OPERATOR_LISTEN: `0.0.0.0:${new URL(apiUrl).port}`,
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
  };
}

export type Said = {
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  data: any;
};

/** Runs a command, which must end with `code`: what it says to a person, and to a program. */
export async function say(args: readonly string[], environment: Record<string, string>, code = 0): Promise<Said> {
  const report = await reportOf(settledIn(environment), args, { screen: PIPE, print: async () => true });
  if (typeof report === 'number') throw new Error(`${args} has printed what it found itself`);
  expect(report.exit ?? 0).toBe(code);
  const machine = reportText(report, true);
  expectNothingToObey(machine);
  return { text: reportText(report, false), data: JSON.parse(machine) };
}

/** Runs a command with --json that must fail, and reads its error. Standard output must stay empty. */
export async function failing(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: string; message: string; exit: number }> {
  const end = await runSettled([...args, '--json'], environment);
  return readFailure(end);
}

/** Runs a command line that must not be understood, and returns the message. */
export async function misunderstood(args: readonly string[]): Promise<string> {
  const { code, message } = await failing(args);
  expect(code).toBe('usage');
  return message;
}

/** JSON may hold characters that a terminal obeys, and people read it in terminals. */
export function expectNothingToObey(lines: string): void {
  expect(lines.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
}

function readFailure(end: Finished): { code: string; message: string; exit: number } {
  expect(end.stdout).toBe('');
  expect(end.stderr.trim().split('\n')).toHaveLength(1);
  expectNothingToObey(end.stderr);
  const { error } = JSON.parse(end.stderr);
  expect(end.code).toBe(error.exit);
  return error;
}

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

/** A database as an earlier settled left it: all migrations but the last, recorded as store/migrate.ts does. */
export function olderDatabase(path: string, key: Buffer): string {
  const names = readdirSync(MIGRATIONS).sort();
  const last = names.pop() as string;
  const db = new Database(path);
  db.pragma(`application_id = ${0x5e771ed0}`);
  db.exec('CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT');
  for (const [index, name] of names.entries()) {
    const sql = readFileSync(join(MIGRATIONS, name), 'utf8');
    const sha256 = createHash('sha256').update(sql).digest('hex');
    db.unsafeMode();
    db.exec(sql);
    db.unsafeMode(false);
    db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(index + 1, name, sha256);
    db.pragma(`user_version = ${index + 1}`);
  }
  const instance =
    'INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, ?, ?, 0, 0)';
  db.prepare(instance).run('older', openKeyring(key).keyId);
  db.close();
  return last;
}

/** Runs a command in this process, which for that long has the folder and the environment of a shell. */
export async function runIn(folder: string, args: readonly string[], environment: Record<string, string>) {
  const { env } = process;
  const before = { folder: process.cwd(), mask: process.umask() };
  process.chdir(folder);
  process.env = { PATH: env.PATH, ...environment };
  try {
    return await printedBy((surroundings) => run(args, surroundings));
  } finally {
    process.chdir(before.folder);
    process.env = env;
    process.umask(before.mask);
  }
}
