import { type Command, commandOf, type Definition, type Option, type Options } from '../../src/terminal/command.ts';
import { Failure, UsageError } from '../../src/terminal/failure.ts';
import { SANDBOX_HEADER } from '../guard.ts';
import { DEFAULT_HEADER_PREFIX, DEFAULT_LISTEN } from '../options.ts';
import { EXIT, exitOfRefusal } from './exit.ts';

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

/** Throws `UsageError` if `url` is not an http or https address, or has a password, which is not shown. */
export function connect(url: string = DEFAULT_URL): Control {
  if (!/^https?:\/\/[^@/]+\//.test(URL.parse(url)?.href ?? '')) {
    throw new UsageError(`--url must be an address without a password: --url ${DEFAULT_URL}`);
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
      throw new Failure('sandbox_busy', message, EXIT.unreachable);
    }
    const message = `No sandbox answers at ${url}. Start one with \`settled sandbox\`, or name another with --url.`;
    throw new Failure('sandbox_unreachable', message, EXIT.unreachable);
  });
  const body = await response.json().catch(() => null);
  if (body === null || !response.headers.has(SANDBOX_HEADER)) {
    const message = `What answers at ${url} is no sandbox of settled. Name the sandbox's address with --url.`;
    throw new Failure('no_sandbox', message, EXIT.unreachable);
  }
  if (response.ok) return body;
  const { code = 'internal', message = `${url} answered ${response.status}.` } = (body as Json).error ?? {};
  throw new Failure(code, message, exitOfRefusal(response.status, code));
}

/** What a command of `settled sandbox` has besides its arguments and its screen. `control`: of the running sandbox. */
export type Around = { readonly control: () => Control };

export type SandboxCommand = Command<Around>;

/** Defines a command of `settled sandbox`. */
export function defineCommand<const O extends Options = Record<never, Option>>(
  definition: Definition<O, Around>,
): SandboxCommand {
  return commandOf(definition);
}

/** For the commands that send deliveries. */
export const HEADER_PREFIX_OPTION = {
  value: 'TEXT',
  about: "the prefix of a delivery's two headers; default x-service",
} as const;

/** Throws `UsageError` if no header name can begin with the text. */
export function readHeaderPrefix(given: string | undefined): string {
  if (given === undefined) return DEFAULT_HEADER_PREFIX;
  if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(given)) return given;
  throw new UsageError(`--header-prefix is "${given}". Write the beginning of a header name, such as x-acme.`);
}
