import { UsageError } from '../../src/terminal/failure.ts';
import { PRIVATE_SANDBOX, type Switches } from '../options.ts';
import type { Expectation, Scenario, Step } from '../scenarios.ts';
import { type Control, connect } from './client.ts';
import type { Attempt } from './deliveries.ts';

export type Receiver = { webhookUrl: string; webhookSecret: string; reference: string; amount: number };

export type PlayedAttempt = Attempt & { kind: string; delivery: string };

type PlayedDelivery = {
  id: string;
  kind: string;
  paymentStatus: string | null;
  origin: string;
  status: string;
  attempts: number;
  body: string;
};

type ApiAnswer = { at: string; request: string; status: number };

/** What happened while a scenario was played. */
export type Course = {
  attempts: PlayedAttempt[];
  deliveries: PlayedDelivery[];
  api: ApiAnswer[];
  /** As the API shows it in the end. */
  paymentStatus: string;
};

type Stage = {
  control: Control;
  receiver: Receiver;
  /** The link's id, once it is created. */
  link: string;
  api: ApiAnswer[];
  call(path: string, body?: object): Promise<{ status: number; retryAfter: number; body: Json }>;
};

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

/** How often a request to the API is retried. */
const API_TRIES_MAX = 10;

/** Plays a scenario in its own sandbox, whose ids follow from the seed. */
export async function playScenario(
  scenario: Scenario,
  receiver: Receiver,
  { seed, switches, headerPrefix }: { seed: string; switches: Switches; headerPrefix: string },
): Promise<Course> {
  const { startSandbox } = await import('../sandbox.ts');
  const sandbox = await startSandbox({ ...PRIVATE_SANDBOX, seed, headerPrefix, switches });
  const stage: Stage = {
    control: connect(sandbox.url),
    receiver,
    link: '',
    api: [],
    call: async (path, body) => {
      const at = new Date(sandbox.clock.nowMs()).toISOString();
      const response = await fetch(`${sandbox.url}/api/v1${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'x-api-key': sandbox.apiKey, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const request = body === undefined ? 'GET /payment-links/{id}' : 'POST /payment-links';
      stage.api.push({ at, request, status: response.status });
      const retryAfter = Number(response.headers.get('retry-after') ?? 1);
      return { status: response.status, retryAfter, body: await response.json() };
    },
  };
  try {
    for (const step of scenario.steps) await perform(step, stage);
    return await courseOf(stage);
  } finally {
    await sandbox.stop();
  }
}

async function perform(step: Step, stage: Stage): Promise<void> {
  const { control, link } = stage;
  switch (step.do) {
    case 'fault':
      await control.post('/faults', step.plan);
      return;
    case 'create':
      stage.link = await createLink(stage);
      return;
    case 'pay':
      await control.post(`/links/${link}/pay`);
      await control.post('/idle');
      return;
    case 'resend':
      await resendCompleted(stage, step.times);
      return;
    case 'poll':
      for (let time = 0; time < step.times; time++) await stage.call(`/payment-links/${link}`);
      return;
    case 'advance':
      await control.post('/clock', { advance: step.by });
      return;
  }
}

async function createLink(stage: Stage): Promise<string> {
  const { webhookUrl, webhookSecret, reference, amount } = stage.receiver;
  const answer = await callWithRetries(stage, '/payment-links', {
    title: `Order ${reference}`,
    amount,
    externalReference: reference,
    webhookUrl,
    webhookSecret,
  });
  if (answer.status >= 400) {
    throw new UsageError(`The link cannot be created: ${JSON.stringify(answer.body)}`);
  }
  await stage.control.post('/idle');
  return (await stage.control.get('/links')).links[0].id;
}

/** Retries as the API asks, turning the clock instead of waiting. */
async function callWithRetries(stage: Stage, path: string, body?: object) {
  for (let tries = 1; ; tries++) {
    const answer = await stage.call(path, body);
    const isTemporary = answer.status === 429 || answer.status >= 500;
    if (!isTemporary || tries === API_TRIES_MAX) return answer;
    await stage.control.post('/clock', { advance: `${answer.retryAfter}s` });
  }
}

async function resendCompleted({ control, link }: Stage, times: number): Promise<void> {
  const { events }: { events: { id: string; body: string }[] } = await control.get(`/events?link=${link}`);
  const completed = events.find(({ body }) => isCompletion(body));
  for (let time = 0; time < times; time++) await control.post(`/events/${completed?.id}/resend`);
  await control.post('/idle');
}

async function courseOf(stage: Stage): Promise<Course> {
  const { control, link, api } = stage;
  await control.post('/idle');
  const answer = await callWithRetries(stage, `/payment-links/${link}`);
  const listed: { deliveries: { id: string }[] } = await control.get(`/deliveries?link=${link}`);
  const deliveries: PlayedDelivery[] = [];
  for (const { id } of listed.deliveries) deliveries.push(await control.get(`/deliveries/${id}`));
  const { attempts }: { attempts: PlayedAttempt[] } = await control.get(`/attempts?link=${link}`);
  return { attempts, deliveries, api, paymentStatus: answer.body.paymentLink.paymentStatus };
}

/** Whether the event reports a completed payment, in any envelope. */
function isCompletion(body: string): boolean {
  return body.includes('"paymentStatus":"COMPLETED"');
}

export type Finding = { says: string; holds: boolean; why: string | null };

/** Compares what happened with what a correct receiver does. */
export function judge(course: Course, expectations: readonly Expectation[]): Finding[] {
  return expectations.map((expectation) => {
    const why = objection(course, expectation);
    return { says: expectation.says, holds: why === null, why };
  });
}

/** Why the expectation fails; null if it holds. */
function objection(course: Course, expectation: Expectation): string | null {
  switch (expectation.expect) {
    case 'acknowledged':
      return notAcknowledged(course);
    case 'refused':
      return notRefused(course, expectation.fault);
    case 'nothing-sent': {
      const sent = course.attempts.filter(wasSent);
      return sent.length === 0 ? null : `${sent.length} requests were sent`;
    }
    case 'attempts': {
      const delivery = course.deliveries.find(({ body, origin }) => origin === 'automatic' && isCompletion(body));
      const { attempts = 0, status = 'missing' } = delivery ?? {};
      const isSo = status === 'acknowledged' && attempts === expectation.count;
      return isSo ? null : `it is ${status} after ${attempts} of ${expectation.count} attempts`;
    }
    case 'api-answered': {
      const { status, atLeast } = expectation;
      const times = course.api.filter((answer) => answer.status === status).length;
      return times >= atLeast ? null : `${times} answers were ${status}`;
    }
    case 'api-says':
      return course.paymentStatus === expectation.paymentStatus ? null : `it says ${course.paymentStatus}`;
  }
}

function notAcknowledged({ deliveries, attempts }: Course): string | null {
  if (deliveries.length === 0) return 'there is no delivery';
  const refusedCopies = attempts.filter((attempt) => attempt.faults.includes('duplicate') && !isAcknowledged(attempt));
  const open = deliveries.filter(({ status }) => status !== 'acknowledged');
  if (open.length === 0 && refusedCopies.length === 0) return null;
  const reasons = [
    ...open.map(({ kind, status }) => `${kind} is ${status}`),
    ...refusedCopies.map((attempt) => `a copy of ${attempt.kind} was answered ${answerOf(attempt)}`),
  ];
  return reasons.join('; ');
}

function notRefused({ attempts }: Course, fault: string): string | null {
  const harmed = attempts.filter(({ faults }) => faults.includes(fault));
  if (harmed.length === 0) return 'no such attempt was made';
  const believed = harmed.filter(({ responseStatus }) => responseStatus === null || responseStatus < 400);
  if (believed.length === 0) return null;
  return believed.map((attempt) => `attempt ${attempt.attempt} was answered ${answerOf(attempt)}`).join('; ');
}

function isAcknowledged({ responseStatus }: PlayedAttempt): boolean {
  return responseStatus !== null && responseStatus >= 200 && responseStatus < 300;
}

function wasSent({ faults }: PlayedAttempt): boolean {
  return !faults.includes('drop');
}

export function answerOf({ responseStatus, error }: PlayedAttempt): string {
  return responseStatus === null ? (error ?? 'nothing') : String(responseStatus);
}
