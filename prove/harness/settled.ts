import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningProcess, startProgram } from './program.ts';
import { AMOUNT, exchange, type Reserved, readReserved } from './send.ts';

/** settled as a process: how it is started, killed and asked. */

/** This checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Set by the test command, which runs parts of proofs: settled bundled, for starts that take half of the time. */
const BUNDLED = process.env.SETTLED_TEST_PROGRAMS;
export const MAIN = BUNDLED === undefined ? join(ROOT, 'src/cli/main.ts') : join(BUNDLED, 'settled.mjs');
/** The launcher's own, if nothing is bundled; it halves the processor time of a start. */
export const COMPILE_CACHE = join(BUNDLED ?? join(ROOT, 'node_modules/.cache'), 'compile');
/** The arguments that `npm start` gives Node. */
const START = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  .scripts.start.split(' ')
  .slice(1);
export const OPERATOR_TOKEN = 'operator-token-of-the-tests';
/** How long a question waits for its answer. */
const ANSWER_MS = 20_000;
const CONNECTIONS_MAX = 32;

type Environment = Readonly<Record<string, string>>;

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
export type Answer = { status: number; body: any };

export type Serving = RunningProcess & {
  hooksPort: number;
  operatorPort: number;
  /** Calls the private API as the operator. */
  api(path: string, body?: unknown): Promise<Answer>;
  /** The same of a process that may be killed meanwhile; null if there was no complete answer. */
  ask(path: string, body?: unknown): Promise<Answer | null>;
  reserve(reference: string): Promise<Reserved>;
};

/** A database of SQLite, and free ports. */
export function serveEnvironment(storePath: string): Record<string, string> {
  return {
    SETTLED_STORE: `sqlite:${storePath}`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
  };
}

/** Has a process kill itself at a commit: see kill_point.ts. */
export function dyingAt(point: string): Record<string, string> {
  return { NODE_OPTIONS: `--import ${new URL('../kill_point.ts', import.meta.url).href}`, KILL_POINT: point };
}

/**
 * Starts `settled serve` on free ports, if the environment names no others.
 *
 * @param checkout the folder of the program, this one or another
 */
export function startSettled(environment: Environment, checkout = ROOT): RunningProcess {
  const main = checkout === ROOT ? MAIN : join(checkout, 'src/cli/main.ts');
  const given = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...serveEnvironment(''), ...environment };
  return startProgram([process.execPath, main, 'serve'], given);
}

/** Starts settled as `npm start` does, with a database in this folder, and waits until it serves. */
export function startAsInstalled(folder: string): Promise<Serving> {
  const environment = serveEnvironment(join(folder, 'settled.db'));
  return whenServing(startProgram([process.execPath, ...START], environment, ROOT));
}

/** The most KiB that a process ever had in memory. */
export function peakKib({ child }: Pick<RunningProcess, 'child'>): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);
}

/** Resolves when it serves; rejects if it ends before. */
export async function whenServing(running: RunningProcess): Promise<Serving> {
  const started = JSON.parse(await running.line(/"settled is serving"/));
  const operatorPort: number = started.operator.port;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX });
  void running.finished.then(() => agent.destroy());
  const call = async (path: string, body?: unknown, patienceMs?: number): Promise<Answer> => {
    const answer = await exchange({
      agent,
      port: operatorPort,
      method: body === undefined ? 'GET' : 'POST',
      path,
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: body === undefined ? '' : JSON.stringify(body),
      ...(patienceMs !== undefined && { patienceMs }),
    });
    return { status: answer.status, body: JSON.parse(answer.text) };
  };
  return {
    ...running,
    hooksPort: started.hooks.port,
    operatorPort,
    api: (path, body) => call(path, body),
    ask: (path, body) => call(path, body, ANSWER_MS).catch(() => null),
    reserve: async (reference) => {
      const { status, body } = await call('/v1/links', { reference, amount: AMOUNT });
      if (status !== 201) throw new Error(`reserving answered ${status}: ${JSON.stringify(body)}`);
      return readReserved(body);
    },
  };
}
