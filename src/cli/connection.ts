import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Config } from '../config.ts';
import { Fault } from '../fault.ts';
import type { ListenAddress } from '../settings.ts';
import { operatorTokenPath, storeFile } from '../store/address.ts';
import { EXIT, EXIT_OF_PROBLEM, type ExitCode } from './exit.ts';

/** Not imported: an import reads every name of the module, one of which loads all of WebSocket, 30 ms of each command. */
const { request } = process.getBuiltinModule('node:http');

const ANSWER_TIMEOUT_MS = 30_000;

/** The running server's private API, as the operator. */
export type Connection = {
  readonly url: string;
  /** Faults: `server_unreachable`, `not_authorized`; throws `Refusal` for every other answer but 2xx. */
  get<T>(path: string, query?: Query): Promise<T>;
  /** `timeoutMs`: for an answer that may take longer than usual. */
  post<T>(path: string, body?: object, timeoutMs?: number): Promise<T>;
  /**
   * The lines of an answer that goes on, as they come, until the server ends it or `stop` is aborted. Fails as the others
   * do, and with `server_unreachable` where the connection breaks, or is silent for too long.
   */
  follow(path: string, query: Query, stop: AbortSignal): AsyncIterable<string>;
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
  /** Of silence. */
  timeoutMs?: number | undefined;
  stop?: AbortSignal;
};

/** Connects with the address and token that the server has from the same configuration. Makes neither. */
export function connect(config: Config): Connection {
  const address = reachable(config.operatorListen);
  const url = urlOf(address);
  const tokenPlaces =
    config.store.engine === 'postgres'
      ? 'SETTLED_OPERATOR_TOKEN, the same for all replicas'
      : 'SETTLED_OPERATOR_TOKEN, or the SETTLED_STORE beside which its token file is kept';
  const open = async (): Promise<Server> => {
    const token = config.operatorToken ?? readToken(storeFile(config.store));
    if (!(token instanceof Error)) return { address, url, token, tokenPlaces };
    // First things first: where no server is, no token would help.
    await exchange({ address, url, token: '', tokenPlaces }, { method: 'GET', path: '/livez' });
    throw token;
  };
  const send = async <T>(sent: Sent): Promise<T> => (await call(await open(), sent)) as T;
  return {
    url,
    get: (path, query = {}) => send({ method: 'GET', path: path + queryText(query) }),
    post: (path, body, timeoutMs) => send({ method: 'POST', path, body, timeoutMs }),
    follow: async function* (path, query, stop) {
      yield* lines(await open(), { method: 'GET', path: path + queryText(query), stop });
    },
  };
}

/** The address under which this machine reaches a listener of its own. */
export function urlOf(listen: ListenAddress): string {
  const { host, port } = reachable(listen);
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
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

/** With the places where a person may give the token. */
type Server = { address: ListenAddress; url: string; token: string; tokenPlaces: string };

async function call(server: Server, sent: Sent): Promise<unknown> {
  const response = await exchange(server, sent);
  const { status, text } = await readWhole(server, response);
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== null) return answer;
  return refuse(server, status, answer);
}

async function* lines(server: Server, sent: Sent): AsyncGenerator<string> {
  try {
    const response = await exchange(server, sent);
    if (response.statusCode !== 200) {
      const { status, text } = await readWhole(server, response);
      refuse(server, status, parse(text));
    }
    // The parts of a character may come one after the other.
    response.setEncoding('utf8');
    let rest = '';
    for await (const chunk of response) {
      const whole = (rest + chunk).split('\n');
      rest = whole.pop() ?? '';
      yield* whole;
    }
  } catch (error) {
    if (sent.stop?.aborted) return;
    throw error instanceof Fault || error instanceof Refusal ? error : brokenOff(server);
  }
}

function refuse(server: Server, status: number, answer: Record<string, unknown> | null): never {
  if (answer === null || typeof answer.detail !== 'string') {
    throw unreachable(server.url, `what answers there is not settled (status ${status})`);
  }
  if (status === 401) {
    throw new Fault(
      'terminal',
      'not_authorized',
      `The server at ${server.url} does not know this operator token. Give the server's own: ${server.tokenPlaces}.`,
    );
  }
  throw new Refusal(String(answer.title), answer.detail);
}

/** Sends a request; resolves when the answer begins. */
function exchange(server: Server, sent: Sent): Promise<IncomingMessage> {
  const { address, url, token } = server;
  const { method, path, body, timeoutMs = ANSWER_TIMEOUT_MS, stop } = sent;
  const payload = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-length': Buffer.byteLength(payload),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const options = { ...address, method, path, headers, agent: false, timeout: timeoutMs };
    const sending = request(stop === undefined ? options : { ...options, signal: stop });
    sending.on('timeout', () => sending.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)));
    sending.on('error', (error: NodeJS.ErrnoException) => {
      reject(unreachable(url, error.code ?? error.message));
    });
    sending.on('response', resolve);
    sending.end(payload);
  });
}

async function readWhole(server: Server, response: IncomingMessage): Promise<{ status: number; text: string }> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch {
    throw brokenOff(server);
  }
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') };
}

function brokenOff({ url }: Server): Fault {
  return unreachable(url, 'the answer broke off');
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
