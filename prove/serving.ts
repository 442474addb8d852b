import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const KILL_POINT = new URL('kill_point.ts', import.meta.url).href;
/** The launcher's own; it halves the processor time of a start. */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url));
const TOKEN = 'operator-token-of-the-proof';
/** Nobody waits longer for an answer. */
const ANSWER_MS = 20_000;

export type Served = {
  readonly hooksPort: number;
  /** Resolves with the signal that ended it. */
  readonly ended: Promise<NodeJS.Signals | null>;
  kill(): void;
  /** Calls the private API; null where no whole answer came. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  api(path: string, body?: object): Promise<{ status: number; body: any } | null>;
};

/** A process that may serve one day. */
export type Begun = {
  readonly child: ChildProcess;
  /** Resolves with the signal that ended it. */
  readonly ended: Promise<NodeJS.Signals | null>;
  /** Resolves when it serves; rejects where it ends before. */
  readonly serving: Promise<Served>;
};

/** `settled serve` as a process of its own. `killPoint`: see kill_point.ts; empty: it lives until it is killed. */
export function serve(environment: Record<string, string>, killPoint: string): Promise<Served> {
  return begin(environment, killPoint).serving;
}

export function begin(environment: Record<string, string>, killPoint: string): Begun {
  const child = spawn(process.execPath, [MAIN, 'serve'], {
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

/** Resolves with the line that says where it serves. */
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
