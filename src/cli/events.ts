import { defineCommand } from './command.ts';
import { printableLines, record, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';

/** An event as the API lists it. */
export type EventRow = {
  id: string;
  eventId: string;
  type: string | null;
  reference: string;
  linkId: string | null;
  status: 'pending' | 'leased' | 'done' | 'dead';
  outcome: string | null;
  rule: string | null;
  attempt: number;
  conflict: boolean;
  duplicates: number;
  receivedAt: string;
  dueAt: string | null;
  endedAt: string | null;
  fault: { code: string; message: string } | null;
};
type EventDetail = EventRow & {
  timestamp: string;
  bodySha256: string;
  bodyBase64: string;
  bodyText: string | null;
};

const EVENT_STATUSES = ['pending', 'leased', 'done', 'dead'] as const;

export const eventsList = defineCommand({
  name: 'events list',
  positionals: '',
  about: 'list recorded events, the newest first',
  options: {
    status: { value: 'STATUS', choices: EVENT_STATUSES, about: 'only events with this status' },
    reference: { value: 'REFERENCE', about: 'only events of this order' },
    ...PAGE_OPTIONS,
  },
  async run({ options, server }) {
    const query = { status: options.status, reference: options.reference };
    const list = { path: '/v1/events', field: 'events', query };
    const { rows: events, more } = await listRows<EventRow>(server(), list, options);
    return { data: { events, more }, lines: [...eventTable(events), ...moreLine(more)] };
  },
});

export function eventTable(events: readonly EventRow[]): string[] {
  const rows = events.map((event) => [
    event.id,
    event.receivedAt,
    event.reference,
    event.type,
    event.status,
    event.fault?.code ?? event.rule ?? event.outcome,
    event.eventId,
  ]);
  const headings = ['id', 'received', 'order', 'type', 'status', 'result', 'event id'];
  return table(headings, rows, 'No such events.');
}

export const eventsShow = defineCommand({
  name: 'events show',
  positionals: 'ID',
  about: 'show one event with its body, as it came',
  options: {},
  async run({ first: id, server }) {
    const answer = await server().get<{ event: EventDetail }>(`/v1/events/${encodeURIComponent(id)}`);
    const { event } = answer;
    const lines = record([
      ['id', event.id],
      ['event id', event.eventId],
      ['order', event.reference],
      ['link', event.linkId],
      ['type', event.type],
      ['received', event.receivedAt],
      ['signed', signedAt(event.timestamp)],
      ['status', event.status],
      ['outcome', event.outcome],
      ['rule', event.rule],
      ['attempts', event.attempt],
      ['next attempt', event.dueAt],
      ['ended', event.endedAt],
      ['came again', event.duplicates],
      ['conflict', event.conflict ? 'this event id came before with another body' : 'no'],
      ['fault', event.fault === null ? null : `${event.fault.code}: ${event.fault.message}`],
      ['body SHA-256', event.bodySha256],
    ]);
    const body =
      event.bodyText === null
        ? [`The body is not UTF-8 text. Its bytes are in: settled events show ${event.id} --json`]
        : printableLines(event.bodyText);
    return { data: answer, lines: [...lines, '', ...body] };
  },
});

function signedAt(timestamp: string): string {
  return new Date(Number(timestamp)).toISOString();
}
