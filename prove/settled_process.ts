import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const KILL_POINT = new URL('kill_point.ts', import.meta.url).href;
/** This checkout. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Set by the test command, which runs parts of proofs: settled bundled, for starts that take half of the time. */
const BUNDLED = process.env.SETTLED_TEST_PROGRAMS;
/** The launcher's own cache; it halves the processor time of a start. */
const COMPILE_CACHE = join(BUNDLED ?? join(ROOT, 'node_modules/.cache'), 'compile');
/** The arguments that `npm start` gives Node. */
const START = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  .scripts.start.split(' ')
  .slice(1);
export const TOKEN = 'operator-token-of-the-proof';
/** How long a call waits for its answer. */
const ANSWER_MS = 20_000;

export type Served = {
  readonly hooksPort: number;
  /** Resolves with the signal that ended it. */
  readonly ended: Promise<NodeJS.Signals | null>;
  kill(): void;
  /** Calls the private API; null if there was no complete answer. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  api(path: string, body?: object): Promise<{ status: number; body: any } | null>;
};

/** A process that was started, and may not serve yet. */
export type Begun = {
  readonly child: ChildProcess;
  /** Resolves with the signal that ended it. */
  readonly ended: Promise<NodeJS.Signals | null>;
  /** Resolves when it serves; rejects if it ends before. */
  readonly serving: Promise<Served>;
};

/** Starts `settled serve` as a process. `killPoint`: see kill_point.ts; empty for none. */
export function serve(environment: Record<string, string>, killPoint: string): Promise<Served> {
  return begin(environment, killPoint).serving;
}

/** @param checkout the folder of the program, this one or another */
export function begin(environment: Record<string, string>, killPoint: string, checkout = ROOT): Begun {
  const main =
    checkout === ROOT && BUNDLED !== undefined ? join(BUNDLED, 'settled.mjs') : join(checkout, 'src/cli/main.ts');
  const child = spawn(process.execPath, [main, 'serve'], {
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...(killPoint === '' ? {} : { NODE_OPTIONS: `--import ${KILL_POINT}`, KILL_POINT: killPoint }),
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_TOKEN: TOKEN,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once('close', (_code, signal) => resolve(signal));
  });
  const serving = started(child, ended).then(({ hooks, operator }) => ({
    hooksPort: hooks.port,
    ended,
    kill: () => void child.kill('SIGKILL'),
    api: caller(operator.port),
  }));
  return { child, ended, serving };
}

function caller(port: number): Served['api'] {
  return async (path, body) => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return { status: answer.status, body: await answer.json() };
    } catch {
      return null;
    }
  };
}

type Started = { hooks: { port: number }; operator: { port: number } };

/** Resolves with the log line that names its addresses. */
function started({ stdout, stderr }: ChildProcess, ended: Promise<unknown>): Promise<Started> {
  let output = '';
  stderr?.resume();
  return new Promise((resolve, reject) => {
    const read = (chunk: string) => {
      output += chunk;
      const line = output.split('\n').find((text) => text.includes('"settled is serving"'));
      if (!line?.endsWith('}')) return;
      resolve(JSON.parse(line));
      stdout?.off('data', read).resume();
    };
    stdout?.setEncoding('utf8').on('data', read);
    void ended.then(() => reject(new Error(`settled did not serve: ${output}`)));
  });
}

export type Installed = { child: ChildProcess; hooksPort: number; operatorPort: number; lines: () => number };

/** Starts settled as `npm start` does, on free ports, with a database in this folder. */
export async function startAsInstalled(folder: string): Promise<Installed> {
  const child = spawn(process.execPath, START, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      SETTLED_STORE: `sqlite:${join(folder, 'settled.db')}`,
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_TOKEN: TOKEN,
    },
  });
  let count = 0;
  const started = Promise.withResolvers<{ hooks: { port: number }; operator: { port: number } }>();
  child.once('exit', (code) => started.reject(new Error(`settled ended with ${code}`)));
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    count++;
    if (line.includes('"settled is serving"')) started.resolve(JSON.parse(line));
  });
  const { hooks, operator } = await started.promise;
  return { child, hooksPort: hooks.port, operatorPort: operator.port, lines: () => count };
}

export type Link = { path: string; secret: string; reference: string };

/** Reserves a link for the order of this number. */
export async function reserve({ operatorPort }: Installed, n: number): Promise<Link> {
  const reference = `order-${n}`;
  const answer = await fetch(`http://127.0.0.1:${operatorPort}/v1/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ reference, amount: '100.00' }),
  });
  const { link } = (await answer.json()) as { link: { webhookUrl: string; webhookSecret: string } };
  return { path: new URL(link.webhookUrl).pathname, secret: link.webhookSecret, reference };
}
