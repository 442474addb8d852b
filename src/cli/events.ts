import { bulkCommand } from './bulk.ts';
import { defineCommand } from './command.ts';
import { faultWords, list, type Row, rowOptions, statusWords } from './lists.ts';
import { printableLines, record, table } from './output.ts';

/** The commands about recorded events: what the service said, by a webhook or when it was asked. */

type EventRow = Row & {
  eventId: string;
  type: string | null;
  linkId: string | null;
  outcome: string | null;
  rule: string | null;
  conflict: boolean;
  duplicates: number;
  receivedAt: string;
};
type EventDetail = EventRow & { timestamp: string; bodySha256: string; bodyText: string | null; bodyDropped: boolean };

export const eventsList = defineCommand({
  name: 'events list',
  about: 'list recorded events, the newest first',
  details: [
    'pending: it waits to be settled. leased (in work): it is being settled. done: it was settled; its result is how.',
    'dead: it could not be settled and waits for a person: `settled events show ID` says why.',
    "What the service's API answered is listed too: its type is why it was asked.",
  ],
  examples: ['settled events list --status dead', 'settled events list --order order-8001 --since 3d'],
  options: rowOptions('events'),
  run: (call) => list(call, 'events', eventTable),
});

function eventTable(events: readonly EventRow[]): string[] {
  const rows = events.map((event) => [
    event.id,
    event.receivedAt,
    event.reference,
    event.type,
    statusWords(event, 'in work'),
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
  async run({ first, server }) {
    const answer = await server().get<{ event: EventDetail }>(`/v1/events/${encodeURIComponent(first)}`);
    const { event } = answer;
    const lines = record([
      ['id', event.id],
      ['event id', event.eventId],
      ['order', event.reference],
      ['link', event.linkId],
      ['type', event.type],
      ['received', event.receivedAt],
      ['signed', new Date(Number(event.timestamp)).toISOString()],
      ['status', statusWords(event, 'in work')],
      ['outcome', event.outcome],
      ['rule', event.rule],
      ['attempts', event.attempt],
      ['next attempt', event.dueAt],
      ['ended', event.endedAt],
      ['came again', event.duplicates],
      ['conflict', event.conflict ? 'this event id came before with another body' : 'no'],
      ['fault', faultWords(event)],
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

export const eventsReplay = bulkCommand<EventRow>({
  name: 'events replay',
  about: 'settle recorded events again: those named, or all that are selected',
  details: ['This never pays an order twice: its settlement row guards against that.'],
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
