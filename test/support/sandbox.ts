import { onTestFinished } from 'vitest';
import { PRIVATE_SANDBOX, readSwitches, type SandboxOptions } from '../../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { ask } from './http.ts';
import { startReceiver } from './receiver.ts';

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
    ...PRIVATE_SANDBOX,
    seed: 'test',
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

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

type StartOptions = Parameters<typeof startTestSandbox>[0];

/** A sandbox, and a receiver for its webhooks. */
export async function startPair(options: StartOptions = {}) {
  const receiver = await startReceiver();
  const sandbox = await startTestSandbox({ rateLimit: null, ...options });
  return { receiver, sandbox };
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

/** Creates a link over the API. */
export async function createLink(sandbox: TestSandbox, fields: Record<string, unknown>): Promise<Json> {
  const answer = await sandbox.call('/payment-links', { body: { title: 'A chair', amount: 100, ...fields } });
  if (answer.status !== 201) throw new Error(`not created: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body.paymentLink;
}

/** Creates a link whose webhooks go to a receiver, and waits until what is due of it was sent. */
export async function createDelivered(
  { sandbox, receiver }: Awaited<ReturnType<typeof startPair>>,
  fields: Record<string, unknown> = {},
): Promise<Json> {
  const link = await createLink(sandbox, { webhookUrl: receiver.url, ...fields });
  await sandbox.idle();
  return link;
}

/** Changes a link with the control API: `pay`, `complete`, `expire` … */
export async function act(sandbox: TestSandbox, link: { id: string }, what: string, body: object = {}) {
  const answer = await sandbox.control(`/links/${link.id}/${what}`, { body });
  if (answer.status >= 300) throw new Error(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Plans a fault. */
export async function plan(sandbox: TestSandbox, fault: object): Promise<void> {
  const answer = await sandbox.control('/faults', { body: fault });
  if (answer.status !== 201) throw new Error(`not planned: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** The deliveries of a link, oldest first, each with its attempts. */
export async function deliveriesOf(sandbox: TestSandbox, link: { id: string }): Promise<Json[]> {
  const { body } = await sandbox.control(`/deliveries?link=${link.id}`);
  return Promise.all(
    body.deliveries.map(async ({ id }: { id: string }) => (await sandbox.control(`/deliveries/${id}`)).body),
  );
}

/** The delivery of a link's first event, `payment_link.created`. */
export async function firstDelivery(sandbox: TestSandbox, link: { id: string }): Promise<Json> {
  const [first] = await deliveriesOf(sandbox, link);
  return first;
}

/** Sends what is due, turns the clock, and sends what fell due. */
export async function turn(sandbox: TestSandbox, byMs: number): Promise<void> {
  await sandbox.idle();
  await sandbox.clock.advance(byMs);
  await sandbox.idle();
}

/** Milliseconds between an attempt and the first one, for each of a delivery's attempts. */
export function offsetsMs({ log }: { log: { at: string }[] }): number[] {
  const times = log.map(({ at }) => Date.parse(at));
  return times.map((at) => at - (times[0] as number));
}
