import { onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import { readSwitches } from '../../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { ask } from './ask.ts';

export type TestSandbox = Sandbox & {
  /** Calls the service's API with the key; `path` is what follows `/api/v1`. */
  call(path: string, options?: CallOptions): Promise<Answer>;
  /** Calls `/_control`. */
  control(path: string, options?: CallOptions): Promise<Answer>;
};

type CallOptions = { method?: string; body?: unknown; headers?: Record<string, string> };
// biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
type Answer = { status: number; headers: Headers; body: any };

/** The sandbox in this process: real HTTP on a free port, in memory, with payments enabled. */
export async function startTestSandbox({
  atEnd = onTestFinished,
  ...options
}: Partial<Omit<SandboxOptions, 'switches'>> & {
  switches?: readonly string[];
  /** Registers the function that stops it; default: at the end of the test. */
  atEnd?: (stop: () => Promise<void>) => void;
} = {}): Promise<TestSandbox> {
  const sandbox = await startSandbox({
    environment: 'production',
    listen: { host: '127.0.0.1', port: 0 },
    allowRemote: false,
    data: null,
    apiKey: null,
    seed: 'test',
    timeScale: 1,
    headerPrefix: 'x-service',
    rateLimit: 60,
    merchantInactive: false,
    ...options,
    switches: readSwitches(options.switches ?? []),
  });
  atEnd(() => sandbox.stop());
  const call = async (path: string, { method, body, headers }: CallOptions = {}): Promise<Answer> => {
    const response = await ask(`${sandbox.url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    ...sandbox,
    call: (path, given = {}) =>
      call(`/api/v1${path}`, { ...given, headers: { 'x-api-key': sandbox.apiKey, ...given.headers } }),
    control: (path, given) => call(`/_control${path}`, given),
  };
}
