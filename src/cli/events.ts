import { ROW_STATUSES, type RowStatus } from '../domain/row.ts';
import { bulkCommand } from './bulk.ts';
import { defineCommand } from './command.ts';
import { printableLines, record, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';
import { SINCE, sinceTime } from './since.ts';

/** An event as the API lists it. */
type EventRow = {
  id: string;
  eventId: string;
  type: string | null;
  reference: string;
  linkId: string | null;
  status: RowStatus;
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
  bodyBase64: string | null;
  bodyText: string | null;
  bodyDropped: boolean;
};

export const eventsList = defineCommand({
  name: 'events list',
  positionals: '',
  about: 'list recorded events, the newest first',
  details: [
    'pending: it waits to be settled. leased (in work): it is being settled. done: it was settled; its result is how.',
    'dead: it could not be settled and waits for a person: `settled events show ID` says why.',
    "What the service's API answered is listed too: its type is why it was asked.",
  ],
  examples: ['settled events list --status dead', 'settled events list --order order-8001 --since 3d'],
  options: {
    status: { value: 'STATUS', choices: ROW_STATUSES, about: 'only events with this status' },
    order: { value: 'REFERENCE', about: 'only events of this order' },
    since: SINCE,
    ...PAGE_OPTIONS,
  },
  async run({ options, server }) {
    const { status, order, since } = options;
    const query = { status, reference: order, since: sinceTime(since) };
    const list = { path: '/v1/events', field: 'events', query };
    const { rows: events, more } = await listRows<EventRow>(server(), list, options);
    return { data: { events, more }, lines: [...eventTable(events), ...moreLine(more)] };
  },
});

function eventTable(events: readonly EventRow[]): string[] {
  const rows = events.map((event) => [
    event.id,
    event.receivedAt,
    event.reference,
    event.type,
    event.status === 'leased' ? 'in work' : event.status,
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
      ['status', event.status === 'leased' ? 'in work' : event.status],
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
    return { data: answer, lines: [...lines, '', ...bodyLines(event)] };
  },
});

function bodyLines({ id, bodyText, bodyDropped }: EventDetail): string[] {
  if (bodyDropped) return ['Its body was dropped when it was old: SETTLED_KEEP_BODIES says when.'];
  if (bodyText !== null) return printableLines(bodyText);
  return [`The body is not UTF-8 text. Its bytes are in: settled events show ${id} --json`];
}

function signedAt(timestamp: string): string {
  return new Date(Number(timestamp)).toISOString();
}

export const eventsReplay = bulkCommand<EventRow>({
  name: 'events replay',
  about: 'settle recorded events again: those named, or all that are selected',
  details: ['An order is never paid twice by it: its settlement row guards against that.'],
  examples: ['settled events replay --failed --dry-run', 'settled events replay --failed --since 2h --yes'],
  one: 'event',
  action: 'replay',
  done: 'replayed',
  result: () => 'pending: it is settled again now',
  failed: {
    about: 'all that are dead: they could not be settled',
    statuses: ['dead'],
    is: ({ status }) => status === 'dead',
  },
  at: ({ receivedAt }) => receivedAt,
  table: eventTable,
});
