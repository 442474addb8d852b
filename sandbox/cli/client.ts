import { SANDBOX_HEADER } from '../guard.ts';
import { DEFAULT_LISTEN } from '../options.ts';
import type { Options } from './command.ts';
import { CommandError, EXIT, exitOfRefusal, UsageError } from './exit.ts';

export const DEFAULT_URL = `http://${DEFAULT_LISTEN.host}:${DEFAULT_LISTEN.port}`;
/** Turning the clock waits for receivers, each of which may take 20 seconds. `fetch` itself gives up after 300 s. */
const ANSWER_MS_MAX = 290_000;

export const URL_OPTION = {
  url: { value: 'URL', about: `the running sandbox; default ${DEFAULT_URL}` },
} as const satisfies Options;

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

/** Calls `/_control` of a running sandbox. */
export type Control = {
  get(path: string): Promise<Json>;
  post(path: string, body?: unknown): Promise<Json>;
  delete(path: string): Promise<Json>;
};

/** Throws `UsageError` if `url` is not an http or https address. */
export function connect(url: string = DEFAULT_URL): Control {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new UsageError(`--url is "${url}". Write an address: --url ${DEFAULT_URL}`);
  }
  const base = `${url.replace(/\/+$/, '')}/_control`;
  return {
    get: (path) => ask(url, new Request(base + path)),
    post: (path, body = {}) => {
      const headers = { 'content-type': 'application/json' };
      return ask(url, new Request(base + path, { method: 'POST', headers, body: JSON.stringify(body) }));
    },
    delete: (path) => ask(url, new Request(base + path, { method: 'DELETE' })),
  };
}

async function ask(url: string, request: Request): Promise<Json> {
  const response = await fetch(request, { signal: AbortSignal.timeout(ANSWER_MS_MAX) }).catch((error) => {
    if (error instanceof Error && error.name === 'TimeoutError') {
      const message = `The sandbox at ${url} has not answered for ${ANSWER_MS_MAX / 1_000} s. It is still at work; try again later.`;
      throw new CommandError(EXIT.unreachable, 'sandbox_busy', message);
    }
    const message = `No sandbox answers at ${url}. Start one with \`settled sandbox\`, or name another with --url.`;
    throw new CommandError(EXIT.unreachable, 'sandbox_unreachable', message);
  });
  const body = await response.json().catch(() => null);
  if (body === null || !response.headers.has(SANDBOX_HEADER)) {
    const message = `What answers at ${url} is no sandbox of settled. Name the sandbox's address with --url.`;
    throw new CommandError(EXIT.unreachable, 'no_sandbox', message);
  }
  if (response.ok) return body;
  const { code = 'internal', message = `${url} answered ${response.status}.` } = (body as Json).error ?? {};
  throw new CommandError(exitOfRefusal(response.status, code), code, message);
}
