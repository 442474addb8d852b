import { formatAmount } from '../domain/money.ts';
import type { Order } from '../domain/order.ts';
import type { EventSummary, HistoryRow, Timeline } from '../store/queries.ts';

export type Explanation = {
  /** One or two sentences: where the order stands, and why. */
  answer: string;
  /** Everything known of the order, in order of time. */
  entries: Entry[];
  /** What happens by itself from here on, and what a person should do. */
  next: string[];
};

export type Entry = { at: string; kind: EntryKind; summary: string; details: string[] };
type EntryKind = 'registration' | 'delivery' | 'stale' | 'rejected' | 'decision' | 'notice' | 'attention';

/** Says why an order stands where it stands. */
export function explain(timeline: Timeline, nowMs: number): Explanation {
  return { answer: answer(timeline), entries: entries(timeline), next: next(timeline, nowMs) };
}

function answer({ order, events, rejections, hints }: Timeline): string {
  const claim = `${formatAmount(order.amount)} ${order.amount.currency}`;
  const flags = order.flags.length > 0 ? ` Flags: ${order.flags.join(', ')}.` : '';
  switch (order.state) {
    case 'paid':
      return `Order ${order.reference} is paid: ${claim}, ${paidWords(order)}.${flags}`;
    case 'held':
      return `Order ${order.reference} is held: ${order.holds.map(({ reason }) => reason).join(', ')}. A person must accept or reject it.${flags}`;
    case 'awaiting_payment':
      return `Order ${order.reference} is not paid: ${unpaidWords(events, rejections, hints)}`;
    case 'payment_pending':
      return `Order ${order.reference} is not paid yet: the customer has begun a payment of ${claim} that is not completed.${flags}`;
    default:
      return `Order ${order.reference} is ${order.state}; it was for ${claim}.${order.settlement === null ? '' : ` It was ${paidWords(order)}.`}${flags}`;
  }
}

function paidWords({ settlement }: Order): string {
  if (settlement === null) return 'not paid';
  const learned = { webhook: 'by a webhook', reconciliation: 'by asking the service', person: 'by a person' };
  return `paid at ${iso(settlement.paidAtMs)}, learned ${learned[settlement.learnedBy]}`;
}

function unpaidWords(
  events: Timeline['events'],
  rejections: Timeline['rejections'],
  hints: Timeline['hints'],
): string {
  const refused = rejections.reduce((sum, { count }) => sum + count, 0);
  const stale = hints.reduce((sum, { count }) => sum + count, 0);
  const waiting = events.filter(({ status }) => status === 'pending' || status === 'leased').length;
  const dead = events.filter(({ status }) => status === 'dead').length;
  const clauses = [
    events.length === 0 ? 'no authentic delivery has come' : 'no delivery so far says that it is',
    waiting > 0 ? `${waiting} wait to be settled` : '',
    dead > 0 ? `${dead} could not be settled` : '',
    stale > 0 ? `${stale} came with a stale timestamp` : '',
    refused > 0
      ? `${refused} were refused as not authentic (${rejections.map(({ reason }) => reason).join(', ')})`
      : '',
  ];
  return `${clauses.filter((clause) => clause !== '').join('; ')}.`;
}

function entries({ history, events, hints, rejections, notices, attention }: Timeline): Entry[] {
  const all: (Entry & { atMs: number })[] = [
    ...history.map((row) => ({ atMs: row.atMs, ...historyEntry(row) })),
    ...events.map((event) => ({ atMs: event.receivedAtMs, ...eventEntry(event) })),
    ...hints.map(({ eventId, timestamp, lastAtMs, count }) => ({
      atMs: lastAtMs,
      ...entry(lastAtMs, 'stale', `${times(count)} authentic but stale, last signed ${signedAt(timestamp)}`, [
        `event id ${eventId}`,
      ]),
    })),
    ...rejections.map(({ reason, count, firstAtMs, lastAtMs }) => ({
      atMs: lastAtMs,
      ...entry(
        lastAtMs,
        'rejected',
        `${times(count)} refused: ${reason}`,
        count > 1 ? [`first at ${iso(firstAtMs)}`] : [],
      ),
    })),
    ...notices.map(({ type, version, status, createdAtMs, id }) => ({
      atMs: createdAtMs,
      ...entry(createdAtMs, 'notice', `${type} written for the shop, ${status}`, [
        `notice ${id}, order version ${version}`,
      ]),
    })),
    ...attention.map(({ kind, detail, openedAtMs }) => ({
      atMs: openedAtMs,
      ...entry(openedAtMs, 'attention', kind, [detail]),
    })),
  ];
  return all.sort((a, b) => a.atMs - b.atMs).map(({ atMs: _atMs, ...shown }) => shown);
}

function historyEntry({ atMs, what, outcome, from, to, cause, effects }: HistoryRow): Entry {
  if (outcome === null) return entry(atMs, 'registration', what, []);
  const moved = from === to ? `stays ${to}` : `${from} → ${to}`;
  const by = { event: `event ${cause.id}`, reading: `reading ${cause.id}`, person: `a person: ${cause.id}` };
  return entry(atMs, 'decision', `${moved}, rule ${what}, by ${by[cause.kind]}`, effects);
}

function eventEntry(event: EventSummary): Entry {
  const { key, type, status, outcome, rule, fault, conflict, duplicates, eventId } = event;
  const result = outcome === null ? status : `${status}: ${outcome}${rule === null ? '' : ` (${rule})`}`;
  const details = [
    `event id ${eventId}`,
    ...(duplicates > 0 ? [`delivered again ${duplicates} times`] : []),
    ...(conflict ? ['the same event id came before with other content'] : []),
    ...(fault === null ? [] : [`${fault.code}: ${fault.message}`]),
  ];
  return entry(event.receivedAtMs, 'delivery', `event ${key}, ${type ?? 'no type'}, ${result}`, details);
}

function next({ order, events, check }: Timeline, nowMs: number): string[] {
  const lines: string[] = [];
  for (const { key, status, dueAtMs } of events) {
    if (status === 'dead') lines.push(`Event ${key} waits for a person: settled events replay ${key}.`);
    if (status !== 'pending') continue;
    const seconds = Math.max(0, Math.ceil((dueAtMs - nowMs) / 1000));
    lines.push(`Event ${key} is settled in ${seconds} s.`);
  }
  if (order.state === 'held') {
    lines.push(
      `A person decides: settled orders resolve ${order.reference} --accept|--reject --reason TEXT.`,
    );
  }
  if (order.flags.includes('refund_due')) lines.push("Refund the captured money in the service's panel.");
  if (check !== null) {
    lines.push(`The service is to be asked about this link (${check.reason}); this version cannot ask yet.`);
  }
  if (lines.length === 0) {
    const waits = order.state === 'awaiting_payment' || order.state === 'payment_pending';
    lines.push(waits ? "Nothing, until the service's next webhook." : 'Nothing.');
  }
  return lines;
}

function entry(atMs: number, kind: EntryKind, summary: string, details: string[]): Entry {
  return { at: iso(atMs), kind, summary, details };
}

function times(count: number): string {
  return count === 1 ? 'a delivery' : `${count} deliveries`;
}

function signedAt(timestamp: string): string {
  return iso(Number(timestamp));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
