import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import type { ListenAddress } from '../config/parsers.ts';
import { SETTINGS } from '../config/settings.ts';
import { Fault, terminalFault, transientFault } from '../fault.ts';
import { releaseVersion } from '../release.ts';
import { operatorTokenPath, storeFile } from '../store/address.ts';
import { whyUnreadable } from '../terminal/failure.ts';
import { NOTHING_HERE } from '../vocabulary.ts';
import { Refusal } from './exit.ts';

/** Not by `import`: see `http` in http/connections.ts. */
const { request } = process.getBuiltinModule('node:http');

const ANSWER_TIMEOUT_MS = 30_000;
/** More than settled answers, and a limit for what may answer in its place. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const LINE_LENGTH_MAX = 4 * 1024 * 1024;

export type ServerApi = ReturnType<typeof connection>;
export type Query = Readonly<Record<string, string | number | undefined>>;

/**
 * Makes neither address nor token. Faults of all requests: `server_unreachable`, `not_authorized`; throws `Refusal` for every
 * other answer but 2xx.
 */
function connection(server: Server) {
  return {
    url: server.url,
    get: <T>(path: string, query: Query = {}) => ask<T>(server, { path: path + queryText(query) }),
    /** `timeoutMs`: for an answer that may take longer than usual. */
    post: <T>(path: string, body?: object, timeoutMs?: number) =>
      ask<T>(server, { method: 'POST', path, body, timeoutMs }),
    /**
     * Yields the lines of a continuing answer as they come, until the server ends it or `stop` is aborted. Also fails with
     * `server_unreachable` if the connection breaks or is silent for too long.
     */
    follow: (path: string, query: Query, stop: AbortSignal) =>
      follow(server, { path: path + queryText(query), stop }, (line) => line),
    /** The same of lines that are JSON objects. */
    followObjects: <T extends object>(path: string, query: Query, stop: AbortSignal) =>
      follow(server, { path: path + queryText(query), stop }, (line) => objectOf(line) as T | null),
  };
}

/** A server on another machine. `url`: without a trailing slash. */
export type Elsewhere = { readonly url: string; readonly token: string };

type Server = {
  /** Where to connect to, and what comes before the path of a request. */
  address: ListenAddress & { isSecure: boolean; prefix: string };
  /** Whether it must be of this machine: a `.env` names it, and may be a stranger's. */
  mustBeHere: boolean;
  url: string;
  token: string | Fault;
  /** What to do if it does not know the token. */
  tokenAdvice: string;
  /** What to do if it cannot be reached. */
  advice: string;
};

type Sent = {
  method?: 'POST';
  path: string;
  body?: object | undefined;
  /** Limits silence, not the whole answer. */
  timeoutMs?: number | undefined;
  stop?: AbortSignal;
};

/** The running server's private API, as the operator, by the server's own configuration: that has its address and token. */
export function connect({ operatorListen, operatorToken, store, envFile }: Config): ServerApi {
  const { name } = SETTINGS.operatorListen;
  return connection({
    address: { ...reachable(operatorListen), isSecure: false, prefix: '' },
    mustBeHere: [name, `${name}_FILE`].some((one) => envFile?.names.includes(one)),
    url: urlOf(operatorListen),
    token: operatorToken ?? readToken(storeFile(store)),
    tokenAdvice:
      store.engine === 'postgres'
        ? 'Set SETTLED_OPERATOR_TOKEN to that of its replicas.'
        : 'Set SETTLED_OPERATOR_TOKEN to its own, or SETTLED_STORE to its database: the token file is kept beside it. ' +
          'Or stop it, if it is the settled of a demo or of another folder.',
    advice: 'Start it with `settled serve`; if it runs, give this command its SETTLED_OPERATOR_LISTEN.',
  });
}

/** The private API of a server on another machine. */
export function connectElsewhere({ url, token }: Elsewhere): ServerApi {
  const { protocol, hostname, port, pathname } = new URL(url);
  const isSecure = protocol === 'https:';
  return connection({
    address: {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || (isSecure ? 443 : 80)),
      isSecure,
      prefix: pathname.replace(/\/+$/, ''),
    },
    mustBeHere: false,
    url,
    token,
    tokenAdvice:
      'Give --token-file, or SETTLED_AT_TOKEN_FILE, a token of that server: `settled tokens add NAME --role viewer` makes ' +
      'one on its machine.',
    advice:
      'Check --at or SETTLED_AT: it must lead to the private listener, SETTLED_OPERATOR_LISTEN, which is best reached through ' +
      'a tunnel or a proxy with TLS. For a certificate of your own authority, set NODE_EXTRA_CA_CERTS to its file.',
  });
}

/** The address under which this machine reaches a listener of its own. */
export function urlOf(listen: ListenAddress): string {
  const { host, port } = reachable(listen);
  return `http://${inUrl(host)}:${port}`;
}

function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** A server may listen on every address, but a client connects to one. */
function reachable({ host, port }: ListenAddress): ListenAddress {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

function readToken(storePath: string): string | Fault {
  const path = operatorTokenPath(storePath);
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const why =
      `There is no operator token: SETTLED_OPERATOR_TOKEN is not set, and ${path} ${whyUnreadable(error)}. Run this command ` +
      "with the server's configuration, in its folder and as its user.";
    return terminalFault('not_authorized', why);
  }
}

function queryText(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given) as Record<string, string>)}`;
}

async function ask<T>(server: Server, sent: Sent): Promise<T> {
  const response = await open(server, sent);
  const answer = await readAnswer(server, response);
  if (answer === null) throw notSettled(server, response);
  return answer as T;
}

/** @param read returns null for a line that settled does not write */
async function* follow<T>(server: Server, sent: Sent, read: (line: string) => T | null): AsyncGenerator<T> {
  try {
    const response = await open(server, sent);
    // A character may be cut between two chunks.
    response.setEncoding('utf8');
    let rest = '';
    for await (const chunk of response) {
      const whole = (rest + chunk).split('\n');
      rest = whole.pop() ?? '';
      if (rest.length > LINE_LENGTH_MAX) throw notSettled(server, response);
      for (const line of whole) {
        const value = read(line);
        if (value === null) throw notSettled(server, response);
        yield value;
      }
    }
  } catch (error) {
    if (sent.stop?.aborted) return;
    throw error instanceof Fault || error instanceof Refusal ? error : unreachable(server, BROKEN_OFF);
  }
}

/** Sends a request as the operator; resolves when an answer of success begins. */
async function open(server: Server, sent: Sent): Promise<IncomingMessage> {
  const { url, token, tokenAdvice } = server;
  if (token instanceof Fault) {
    // Without a server no token would help, so that is said first.
    await exchange(server, '', { path: '/livez' });
    throw token;
  }
  const response = await exchange(server, token, sent);
  const { statusCode = 0, headers } = response;
  // Every answer of settled has it. Other programs answer in JSON, too.
  if (headers['x-request-id'] === undefined) throw notSettled(server, response);
  if (statusCode >= 200 && statusCode < 300) return response;
  const answer = await readAnswer(server, response);
  if (typeof answer?.detail !== 'string') throw notSettled(server, response);
  if (answer.detail === NOTHING_HERE) throw unreachable(server, 'what answers there may be its public listener');
  if (statusCode !== 401) throw new Refusal(String(answer.title), answer.detail);
  throw terminalFault('not_authorized', `The server at ${url} does not know this token. ${tokenAdvice}`);
}

/** Resolves when an answer begins, whatever it is. */
async function exchange(server: Server, token: string, sent: Sent): Promise<IncomingMessage> {
  const { method = 'GET', path, body, timeoutMs = ANSWER_TIMEOUT_MS, stop } = sent;
  const payload = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'user-agent': `settled-cli/${releaseVersion()}`,
    'content-length': Buffer.byteLength(payload),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const { isSecure, prefix, host: named, port } = server.address;
  const host = server.mustBeHere ? await addressHere(server) : named;
  return new Promise((resolve, reject) => {
    const options = { host, port, method, path: prefix + path, headers, agent: false, timeout: timeoutMs };
    const send = isSecure ? process.getBuiltinModule('node:https').request : request;
    const sending = send(stop === undefined ? options : { ...options, signal: stop });
    sending.on('timeout', () => sending.destroy(new Error(`no answer in ${timeoutMs / 1000} s`)));
    sending.on('error', (error: NodeJS.ErrnoException) => reject(unreachable(server, error.code ?? error.message)));
    sending.on('response', resolve);
    sending.end(payload);
  });
}

/** The address of this machine that the server's host means. Faults: `server_unreachable` if it is of another one. */
async function addressHere(server: Server): Promise<string> {
  const { host } = server.address;
  const { lookup } = process.getBuiltinModule('node:dns/promises');
  const { address } = await lookup(host).catch(({ code }: NodeJS.ErrnoException) => {
    throw unreachable(server, String(code));
  });
  const ours = Object.values(process.getBuiltinModule('node:os').networkInterfaces()).flat();
  if (isLoopback(inUrl(address)) || ours.some((one) => one?.address === address)) return address;
  const why = 'which is another machine, and the .env of this folder alone names it. Ask another machine with --at';
  throw terminalFault('server_unreachable', `No token was sent to ${server.url}, ${why}.`);
}

/** The whole answer; null if it is no JSON object, or too long for one of settled's. */
async function readAnswer(server: Server, response: IncomingMessage): Promise<Record<string, unknown> | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      chunks.push(chunk as Buffer);
      bytes += chunk.length;
      // Leaving the loop closes the connection.
      if (bytes > ANSWER_BYTES_MAX) return null;
    }
  } catch {
    throw unreachable(server, BROKEN_OFF);
  }
  return objectOf(Buffer.concat(chunks).toString('utf8'));
}

/** Null if the text is no JSON object. */
function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const BROKEN_OFF = 'the answer broke off';

function notSettled(server: Server, { statusCode }: IncomingMessage): Fault {
  return unreachable(server, `what answers there is not settled (status ${statusCode})`);
}

function unreachable({ url, advice }: Server, why: string): Fault {
  return transientFault('server_unreachable', `settled cannot be reached at ${url} (${why}). ${advice}`);
}
