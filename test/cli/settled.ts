import { expect } from 'vitest';
import { OPERATOR_TOKEN, type TestApp } from '../support/app.ts';
import { type Finished, runSettled } from '../support/process.ts';

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

/** Runs a command twice at once, for a person and with --json; both must end with `code` and print no error. */
export async function say(args: readonly string[], environment: Record<string, string>, code = 0): Promise<Said> {
  const [human, machine] = await Promise.all([
    runSettled(args, environment),
    runSettled([...args, '--json'], environment),
  ]);
  for (const end of [human, machine]) expect(end).toMatchObject({ code, stderr: '' });
  expectNothingToObey(machine.stdout);
  return { text: human.stdout, data: JSON.parse(machine.stdout) };
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
