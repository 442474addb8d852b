import { Failure } from '../../src/terminal/failure.ts';
import { type Block, printable } from '../../src/terminal/output.ts';
import { type Columns, record, table } from '../../src/terminal/table.ts';
import { defineCommand } from './client.ts';
import { EXIT } from './exit.ts';

export type Attempt = {
  attempt: number;
  at: string;
  faults: string[];
  responseStatus: number | null;
  responseBody: string | null;
  error: string | null;
};

export type DeliveryRow = {
  id: string;
  event: string;
  kind: string;
  paymentStatus: string | null;
  link: string | null;
  webhookUrl: string | null;
  origin: string;
  status: string;
  attempts: number;
  sent: number;
  faults: string[];
  dueAt: string | null;
  held: { fault: string; left: number | null } | null;
  lastAttempt: Attempt | null;
};

type EventRow = { id: string; kind: string; paymentStatus: string | null; link: string; createdAt: string };

const RESPONSE_LENGTH_MAX = 120;

export const deliveries = defineCommand({
  usage: 'deliveries [LINK|DELIVERY]',
  about: 'list the deliveries of a link, or of all; or show one with the log of its attempts',
  run: async ({ first, control: connect }) => {
    const control = connect();
    if (first.startsWith('dlv_')) {
      const delivery: DeliveryRow & { log: Attempt[] } = await control.get(`/deliveries/${encodeURIComponent(first)}`);
      return { data: delivery, lines: [...recordOf(delivery), '', ...logTable(delivery.log)] };
    }
    const path = first === '' ? '/deliveries' : `/deliveries?link=${encodeURIComponent(first)}`;
    const found: { deliveries: DeliveryRow[] } = await control.get(path);
    return { data: found, lines: deliveryLines(found.deliveries) };
  },
});

const EVENTS: Columns<EventRow> = { event: 'id', kind: titleOf, link: 'link', 'sandbox time': 'createdAt' };

export const events = defineCommand({
  usage: 'events [LINK]',
  about: 'list the events of a link, or of all; --json shows their bodies',
  run: async ({ first, control: connect }) => {
    const path = first === '' ? '/events' : `/events?link=${encodeURIComponent(first)}`;
    const found: { events: EventRow[] } = await connect().get(path);
    return { data: found, lines: table(found.events, EVENTS, { nothing: 'There are no events.' }) };
  },
});

export const resend = defineCommand({
  usage: 'resend ID',
  about: 'send an event again, by its id or by the id of a delivery of it',
  run: async ({ first, control: connect }) => {
    if (!/^(evt|dlv)_/.test(first)) {
      const message = `"${first}" is no event and no delivery. \`events\` and \`deliveries\` list them.`;
      throw new Failure('event_not_found', message, EXIT.notFound);
    }
    const control = connect();
    const room = first.startsWith('evt_') ? 'events' : 'deliveries';
    const { id }: DeliveryRow = await control.post(`/${room}/${encodeURIComponent(first)}/resend`);
    await control.post('/idle');
    const delivery: DeliveryRow = await control.get(`/deliveries/${id}`);
    return { data: delivery, lines: deliveryLines([delivery]) };
  },
});

const DELIVERIES: Columns<DeliveryRow> = {
  delivery: 'id',
  kind: titleOf,
  status: 'status',
  attempts: 'attempts',
  sent: 'sent',
  faults: ({ faults }) => faults.join(', '),
  'last answer': ({ lastAttempt }) => lastAttempt?.responseStatus ?? lastAttempt?.error ?? null,
  next: nextOf,
};

/** A table of deliveries, and a line for each whose last answer is not 2xx. */
export function deliveryLines(rows: readonly DeliveryRow[]): Block[] {
  const refused = rows.flatMap((row) => {
    const { responseStatus, responseBody } = row.lastAttempt ?? {};
    if (typeof responseStatus !== 'number' || (responseStatus >= 200 && responseStatus < 300)) return [];
    return [printable(`${titleOf(row)} was answered ${answerText(responseStatus, responseBody ?? '')}`)];
  });
  const lines = table(rows, DELIVERIES, { nothing: 'There are no deliveries.' });
  return refused.length === 0 ? lines : [...lines, '', ...refused];
}

/** The event's kind without its prefix, and its payment status. */
export function titleOf({ kind, paymentStatus }: Pick<DeliveryRow, 'kind' | 'paymentStatus'>): string {
  const title = kind.replace('payment_link.', '');
  return paymentStatus === null ? title : `${title} ${paymentStatus}`;
}

export function answerText(status: number, body: string): string {
  const text = `${status} ${body}`.trimEnd();
  return text.length <= RESPONSE_LENGTH_MAX ? text : `${text.slice(0, RESPONSE_LENGTH_MAX - 1)}…`;
}

function nextOf({ dueAt, held, status }: DeliveryRow): string | null {
  if (status !== 'waiting' || held === null) return dueAt;
  if (held.fault === 'delay') return `${dueAt}, postponed by a delay`;
  if (dueAt !== null) return dueAt;
  return `held back by a reorder until ${held.left} more of its link ${held.left === 1 ? 'is' : 'are'} sent`;
}

function recordOf(delivery: DeliveryRow): Block[] {
  return record({
    delivery: delivery.id,
    event: delivery.event,
    kind: titleOf(delivery),
    link: delivery.link,
    to: delivery.webhookUrl,
    origin: delivery.origin,
    status: delivery.status,
    next: nextOf(delivery),
  });
}

function logTable(log: readonly Attempt[]): Block[] {
  const rows = log.map((entry, at) => {
    const copies = log.filter(({ attempt }) => attempt === entry.attempt).length;
    const copy = log.slice(0, at + 1).filter(({ attempt }) => attempt === entry.attempt).length;
    return { ...entry, number: copies === 1 ? entry.attempt : `${entry.attempt}, copy ${copy} of ${copies}` };
  });
  const columns: Columns<(typeof rows)[number]> = {
    'sandbox time': 'at',
    attempt: 'number',
    faults: ({ faults }) => faults.join(', '),
    response: ({ responseStatus, responseBody, error }) =>
      responseStatus === null ? error : answerText(responseStatus, responseBody ?? ''),
  };
  return table(rows, columns, { nothing: 'No attempt was made yet.' });
}
