import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import type { Config } from '../config.ts';
import { Fault } from '../fault.ts';
import type { ListenAddress } from '../settings.ts';
import { operatorTokenPath } from '../store/files.ts';
import { EXIT, EXIT_OF_PROBLEM, type ExitCode } from './exit.ts';

const ANSWER_TIMEOUT_MS = 30_000;

/** The running server's private API, as the operator. */
export type Connection = {
  readonly url: string;
  /** Faults: `server_unreachable`, `not_authorized`; throws `Refusal` for every other answer but 2xx. */
  get<T>(path: string, query?: Query): Promise<T>;
  /** `timeoutMs`: for an answer that may take longer than usual. */
  post<T>(path: string, body?: object, timeoutMs?: number): Promise<T>;
};
export type Query = Readonly<Record<string, string | number | undefined>>;

/** The server understood and refused. */
export class Refusal extends Error {
  readonly code: string;
  readonly exit: ExitCode;

  constructor(code: string, detail: string) {
    super(detail);
    this.code = code;
    this.exit = Object.hasOwn(EXIT_OF_PROBLEM, code)
      ? EXIT_OF_PROBLEM[code as keyof typeof EXIT_OF_PROBLEM]
      : EXIT.refused;
  }
}

type Sent = {
  method: 'GET' | 'POST';
  path: string;
  body?: object | undefined;
  timeoutMs?: number | undefined;
};

/** Connects with the address and token that the server has from the same configuration. Makes neither. */
export function connect(config: Config): Connection {
  const address = reachable(config.operatorListen);
  const url = `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  const send = async <T>(sent: Sent): Promise<T> => {
    const token = config.operatorToken ?? readToken(config.storePath);
    if (token instanceof Error) {
      // First things first: where no server is, no token would help.
      await exchange({ address, url, token: '' }, { method: 'GET', path: '/livez' });
      throw token;
    }
    return (await call({ address, url, token }, sent)) as T;
  };
  return {
    url,
    get: (path, query = {}) => send({ method: 'GET', path: path + queryText(query) }),
    post: (path, body, timeoutMs) => send({ method: 'POST', path, body, timeoutMs }),
  };
}

/** One listens on every address, but connects to one. */
function reachable({ host, port }: ListenAddress): ListenAddress {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

function readToken(storePath: string): string | Fault {
  const path = operatorTokenPath(storePath);
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`;
    return new Fault(
      'terminal',
      'not_authorized',
      `There is no operator token: SETTLED_OPERATOR_TOKEN is not set, and ${path} ${why}. Run this command with the ` +
        "server's configuration, in its folder and as its user.",
    );
  }
}

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = new URLSearchParams(given).toString();
  return text === '' ? '' : `?${text}`;
}

type Server = { address: ListenAddress; url: string; token: string };

async function call(server: Server, sent: Sent): Promise<unknown> {
  const { status, text } = await exchange(server, sent);
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== null) return answer;
  if (answer === null || typeof answer.detail !== 'string') {
    throw unreachable(server.url, `what answers there is not settled (status ${status})`);
  }
  if (status === 401) {
    throw new Fault(
      'terminal',
      'not_authorized',
      `The server at ${server.url} does not know this operator token. Give the server's own: SETTLED_OPERATOR_TOKEN, or ` +
        'the SETTLED_STORE beside which its token file is kept.',
    );
  }
  throw new Refusal(String(answer.title), answer.detail);
}

function exchange(server: Server, sent: Sent): Promise<{ status: number; text: string }> {
  const { address, url, token } = server;
  const { method, path, body, timeoutMs = ANSWER_TIMEOUT_MS } = sent;
  const payload = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-length': Buffer.byteLength(payload),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const failed = (why: string) => reject(unreachable(url, why));
    const sending = request({ ...address, method, path, headers, agent: false, timeout: timeoutMs });
    sending.on('timeout', () => sending.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)));
    sending.on('error', (error: NodeJS.ErrnoException) => failed(error.code ?? error.message));
    sending.on('response', (response) => {
      readText(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, text }),
        () => failed('the answer broke off'),
      );
    });
    sending.end(payload);
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function unreachable(url: string, why: string): Fault {
  return new Fault(
    'transient',
    'server_unreachable',
    `settled cannot be reached at ${url} (${why}). Start it with \`settled serve\`; if it runs, give this command the ` +
      'SETTLED_OPERATOR_LISTEN that it has.',
  );
}
