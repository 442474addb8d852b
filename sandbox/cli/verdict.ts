import type { Expectation } from '../scenarios.ts';
import { type Course, isCompletion, type PlayedAttempt } from './player.ts';

export type Finding = { says: string; holds: boolean; why: string | null };

/** Holds what happened against what an honest receiver does. */
export function judge(course: Course, expectations: readonly Expectation[]): Finding[] {
  return expectations.map((expectation) => {
    const why = objection(course, expectation);
    return { says: expectation.says, holds: why === null, why };
  });
}

/** What speaks against it; null where nothing does. */
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
      const told = course.deliveries.find(({ body, origin }) => origin === 'automatic' && isCompletion(body));
      const { attempts = 0, status = 'missing' } = told ?? {};
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
  const told = [
    ...open.map(({ kind, status }) => `${kind} is ${status}`),
    ...refusedCopies.map((attempt) => `a copy of ${attempt.kind} was answered ${answerOf(attempt)}`),
  ];
  return told.join('; ');
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
