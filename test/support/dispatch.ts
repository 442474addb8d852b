import { startReceiver } from './hook.ts';
import { startTestSandbox, type TestSandbox } from './sandbox.ts';

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
