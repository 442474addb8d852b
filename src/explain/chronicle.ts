import type { RowStatus } from '../domain/retry.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { EventSummary, RejectionSummary } from '../store/verbs/lists.ts';
import type { NoticeSummary } from '../store/verbs/notice_lists.ts';
import type { DriftRow } from '../store/verbs/service_lists.ts';
import type { HistoryRow, Timeline } from '../store/verbs/timeline.ts';
import { UNREAD_REASONS } from '../vocabulary.ts';
import { inWords } from '../work/clock.ts';
import { explainAttention, matterWords } from './attention_sentences.ts';
import { firstLine, inDeliveries, inTimes, iso, sentence, words } from './glossary.ts';
import { readDiagnosis } from './refused_deliveries.ts';

/** One thing that happened to an order. `details` hold ids, faults and reasons for a reader who needs them. */
export type Entry = { at: string; kind: EntryKind; summary: string; details: string[]; about: About };

/** The row that an entry shows, or by which it was decided; null if there is none that can be looked at. */
type About = { what: 'event' | 'notice' | 'matter'; id: string; status: RowStatus | null } | null;

/** Causes come before what they cause: entries of the same millisecond are sorted by this order. */
export const ENTRY_KINDS = [
  'registration',
  'delivery',
  'reading',
  'stale',
  'rejected',
  'decision',
  'drift',
  'notice',
  'attention',
] as const;
type EntryKind = (typeof ENTRY_KINDS)[number];

type Dated = Entry & { atMs: number };

/** Everything that settled knows of an order, in order of time. */
export function chronicle(timeline: Timeline, { canTell, canAsk }: { canTell: boolean; canAsk: boolean }): Entry[] {
  const { history, events, hints, rejections, drift, notices, attention } = timeline;
  const all: Dated[] = [
    ...history.map(historyEntry),
    ...events.map((event) => (event.reading === null ? eventEntry(event) : readingEntry(event))),
    ...hints.map(hintEntry),
    ...rejections.map(rejectionEntry),
    ...drift.map(driftEntry),
    ...notices.map((notice) => noticeEntry(notice, canTell)),
    ...attention.map((matter) => attentionEntry(matter, canAsk)),
  ];
  const place = ({ kind }: Entry) => ENTRY_KINDS.indexOf(kind);
  return all.sort((a, b) => a.atMs - b.atMs || place(a) - place(b)).map(({ atMs: _atMs, ...shown }) => shown);
}

function historyEntry({ atMs, what, outcome, from, to, cause, by: who, effects }: HistoryRow): Dated {
  if (outcome === null) {
    return cause.id === null
      ? entry(atMs, 'registration', what, [])
      : entry(atMs, 'attention', what, [`reason given: ${cause.id}`]);
  }
  const moved = from === to ? `stays ${to}` : `${from} → ${to}`;
  const by = {
    event: `by event ${cause.id}`,
    reading: cause.id === null ? 'the service does not know the link' : `by reading ${cause.id} of the service`,
    person: `by ${who ?? 'a person'}${cause.id === null ? '' : `, reason given: ${cause.id}`}`,
  };
  const summary = `${moved}: ${words.rule(what)} (rule ${what})`;
  const { kind, id } = cause;
  const about: About = kind === 'event' && id !== null ? { what: 'event', id, status: null } : null;
  return entry(atMs, 'decision', summary, [by[kind], ...effects], about);
}

function eventEntry(event: EventSummary): Dated {
  const { key, type, status, rule, fault, conflict, duplicates, eventId } = event;
  const details = [
    `event ${key}, the service's id ${eventId}`,
    ...(duplicates > 0 ? [`delivered again ${inTimes(duplicates)}; settled did nothing twice`] : []),
    ...(conflict ? ['the same event id came before with other content'] : []),
    ...(fault === null ? [] : [`${fault.code}: ${firstLine(fault.message)}`]),
  ];
  const state = {
    pending: fault === null ? 'waits to be settled' : 'failed; settled will try again',
    leased: 'is being settled',
    done:
      rule !== null
        ? `done: ${words.rule(rule)} (rule ${rule})`
        : isNotUnderstood(event)
          ? 'done, not understood'
          : 'done, says nothing about a payment',
    dead: 'could not be settled (dead)',
  };
  const summary = `authentic, ${type ?? 'without a type'}: ${state[status]}`;
  return entry(event.receivedAtMs, 'delivery', summary, details, { what: 'event', id: String(key), status });
}

/** Whether settled could not read what the event says. An event that is not JSON is dead instead. */
export function isNotUnderstood({ reading, fault }: EventSummary): boolean {
  return reading === null && fault?.code === 'event_not_understood';
}

/** An answer of the service's API: a row of the inbox, as an event is. Its type is the reason why settled asked. */
function readingEntry({ key, reading, type, status, rule, fault, receivedAtMs }: EventSummary): Dated {
  const answered = {
    pending:
      fault === null ? 'the answer waits to be settled' : 'the answer could not be settled; settled will try again',
    leased: 'the answer is being settled',
    done: rule === null ? 'it said nothing about a payment' : `it answered: ${words.rule(rule)} (rule ${rule})`,
    dead: 'the answer could not be settled (dead)',
  };
  const summary = `settled asked the service, ${words.asked(type ?? '')}; ${answered[status]}`;
  const details = [
    `reading ${reading}, kept as event ${key}`,
    ...(fault === null ? [] : [`${fault.code}: ${firstLine(fault.message)}`]),
  ];
  return entry(receivedAtMs, 'reading', summary, details, { what: 'event', id: String(key), status });
}

function driftEntry({ atMs, reading, learnedBy, ours, theirs, rule, rightSide }: DriftRow): Dated {
  const right = rightSide === 'service' ? 'The service was right' : 'A person must find out which is right';
  const summary = `settled and the service differed. settled had: ${ours}. The service had: ${theirs}. ${right}`;
  return entry(atMs, 'drift', summary, [`by reading ${reading}, ${words.asked(learnedBy)}`, `rule ${rule}`]);
}

function hintEntry({ eventId, timestamp, lastAtMs, count }: Timeline['hints'][number]): Dated {
  const offMs = lastAtMs - Number(timestamp);
  const off = `${inWords(Math.abs(offMs))} ${offMs < 0 ? 'after' : 'before'} it came`;
  const summary = `authentic, but signed ${off}: stale, so settled did not settle it`;
  const details = [
    `signed at ${iso(Number(timestamp))}, the service's id ${eventId}`,
    ...(count > 1 ? [`came ${inTimes(count)}; this was the last`] : []),
  ];
  return entry(lastAtMs, 'stale', summary, details);
}

function rejectionEntry({ reason, count, diagnosis: text, firstAtMs, lastAtMs }: RejectionSummary): Dated {
  const how = UNREAD_REASONS.has(reason) ? 'rejected unread' : 'rejected as not authentic';
  const summary = `${inDeliveries(count)} ${how}: ${words.rejection(reason)}`;
  const diagnosis = readDiagnosis(text);
  const found = diagnosis === null ? [] : [`${diagnosis.code}: ${explainDiagnosis(diagnosis).answer}`];
  const details = [reason, ...found, ...(count > 1 ? [`the first at ${iso(firstAtMs)}, this was the last`] : [])];
  return entry(lastAtMs, 'rejected', summary, details);
}

function noticeEntry(notice: NoticeSummary, canTell: boolean): Dated {
  const { id, type, version, createdAtMs, fault, answer } = notice;
  const summary = `${type}, to tell the shop ${words.notice(type)}: ${wayOf(notice, canTell)}`;
  const said = answer === null ? '' : firstLine(answer.body).slice(0, ANSWER_SHOWN);
  const details = [
    `notice ${id}, order version ${version}`,
    ...(fault === null ? [] : [`${fault.code}: ${firstLine(fault.message)}`]),
    ...(said === '' ? [] : [`the shop answered ${answer?.status}: ${said}`]),
  ];
  return entry(createdAtMs, 'notice', summary, details, { what: 'notice', id, status: notice.status });
}

/** Characters of the shop's answer. */
const ANSWER_SHOWN = 200;

/** How far a notice has come on its way to the shop. */
function wayOf({ id, status, attempt, dueAtMs, endedAtMs, fault }: NoticeSummary, canTell: boolean): string {
  if (status === 'done') return `the shop accepted it at ${iso(endedAtMs ?? 0)} (attempt ${attempt})`;
  if (status === 'dead') {
    return `settled gave up: ${sentence(fault?.message ?? '')} Send it again: settled notices resend ${id}`;
  }
  if (status === 'leased') return `is being sent (attempt ${attempt})`;
  if (!canTell) return 'waits in the feed for the shop to read it (SETTLED_SHOP_URL is not set)';
  if (dueAtMs === null) return 'waits until the shop has accepted an earlier notice of this order';
  if (attempt === 0) return 'is sent next';
  return `attempt ${attempt} failed; the next one is at ${iso(dueAtMs)}`;
}

function attentionEntry(matter: Timeline['attention'][number], canAsk: boolean): Dated {
  const { key, kind, openedAtMs } = matter;
  const shown = explainAttention(matter, { key, canAsk });
  const about: About = { what: 'matter', id: String(key), status: null };
  return entry(openedAtMs, 'attention', `needs attention: ${matterWords(kind)} (${kind})`, [shown], about);
}

function entry(atMs: number, kind: EntryKind, summary: string, details: string[], about: About = null): Dated {
  return { atMs, at: iso(atMs), kind, summary, details, about };
}
