import { DEFAULT_LISTEN } from '../options.ts';
import type { Options } from './command.ts';
import { CommandError, EXIT, UsageError } from './exit.ts';

const DEFAULT_URL = `http://${DEFAULT_LISTEN.host}:${DEFAULT_LISTEN.port}`;
/** Turning the clock waits for receivers, each of which may take 20 seconds. */
const ANSWER_MS_MAX = 600_000;

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

/** Throws `UsageError` where the address is none. */
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
  const response = await fetch(request, { signal: AbortSignal.timeout(ANSWER_MS_MAX) }).catch(() => {
    const message = `No sandbox answers at ${url}. Start one with \`settled sandbox\`, or name another with --url.`;
    throw new CommandError(EXIT.unreachable, message);
  });
  const body = await response.json().catch(() => null);
  if (body === null) throw new CommandError(EXIT.unreachable, `What answers at ${url} is no sandbox.`);
  if (response.ok) return body;
  const message = (body as Json).error?.message ?? `${url} answered ${response.status}.`;
  throw new CommandError(response.status === 404 ? EXIT.notFound : EXIT.refused, message);
}
