import type { AlertState } from '../store/verbs/alerts.ts';
import { ALERT_CHANNEL_WORDS } from '../vocabulary.ts';
import { inNumber, iso, sentence } from './glossary.ts';

/** Whether alerts reach people, in the same words on every surface. */

/** One failed attempt may be a passing trouble: the next follows within seconds. */
const FAILS_FROM_ATTEMPT = 2;

/** Whether a channel takes no message, or not for everybody. */
export function failsToTell({ attempt, fault, failingSinceMs }: AlertState): boolean {
  return fault !== null && (failingSinceMs === null || attempt >= FAILS_FROM_ATTEMPT);
}

/** That it does, without what it said, for anybody who may see whether settled is ready. */
export function alertTrouble({ name, failingSinceMs }: AlertState): string {
  const fails = failingSinceMs === null ? 'refuses a receiver' : `has taken no alert since ${iso(failingSinceMs)}`;
  return `People are not told what needs them: ${ALERT_CHANNEL_WORDS[name]} ${fails}. See settled doctor.`;
}

/** What a channel took last and answered last, and what it has still to take. */
export function explainChannel({ takenAtMs, answer, fault, failingSinceMs, hasMessage, waiting }: AlertState): string {
  const took =
    takenAtMs === null
      ? 'tests apart, it has taken no message so far'
      : `it took its last message at ${iso(takenAtMs)}`;
  const said = answer === null || answer === '' ? '' : `, and answered last: ${answer}`;
  const test = takenAtMs === null ? '. To try it: settled alert --test' : '';
  const why =
    failingSinceMs === null
      ? `${sentence(fault?.message ?? '')} For the others `
      : `no attempt has succeeded since ${iso(failingSinceMs)}: ${sentence(fault?.message ?? '')} settled tries again; `;
  const fails = fault === null ? '' : why;
  const next = waiting > 0 ? `${inNumber(waiting, 'entry', 'entries')} for the next one` : '';
  const left = [hasMessage ? 'a message' : '', next].filter(Boolean).join(' and ');
  const waits = left === '' ? '' : `. Waiting: ${left}`;
  return `${fails}${took}${said}${waits}${test}`;
}
