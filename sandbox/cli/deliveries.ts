import { connect, URL_OPTION } from './client.ts';
import { defineCommand } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { printable, record, shorten, table } from './table.ts';

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
  name: 'deliveries',
  positional: '[LINK|DELIVERY]',
  about: 'list the deliveries of a link, or of all; or show one with the log of its attempts',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const control = connect(options.url);
    if (first.startsWith('dlv_')) {
      const delivery: DeliveryRow & { log: Attempt[] } = await control.get(`/deliveries/${encodeURIComponent(first)}`);
      return { data: delivery, lines: [...recordOf(delivery), '', ...logTable(delivery.log)] };
    }
    const path = first === '' ? '/deliveries' : `/deliveries?link=${encodeURIComponent(first)}`;
    const found: { deliveries: DeliveryRow[] } = await control.get(path);
    return { data: found, lines: deliveryLines(found.deliveries) };
  },
});

export const events = defineCommand({
  name: 'events',
  positional: '[LINK]',
  about: 'list the events of a link, or of all; --json shows their bodies',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const path = first === '' ? '/events' : `/events?link=${encodeURIComponent(first)}`;
    const found: { events: EventRow[] } = await connect(options.url).get(path);
    const rows = found.events.map((event) => [event.id, titleOf(event), event.link, event.createdAt]);
    const headings = ['event', 'kind', 'link', 'sandbox time'];
    return { data: found, lines: table(headings, rows, 'There are no events.') };
  },
});

export const resend = defineCommand({
  name: 'resend',
  positional: 'ID',
  about: 'send an event again, by its id or by the id of a delivery of it',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    if (!/^(evt|dlv)_/.test(first)) {
      const message = `"${first}" is no event and no delivery. \`events\` and \`deliveries\` list them.`;
      throw new CommandError(EXIT.notFound, 'event_not_found', message);
    }
    const control = connect(options.url);
    const room = first.startsWith('evt_') ? 'events' : 'deliveries';
    const { id }: DeliveryRow = await control.post(`/${room}/${encodeURIComponent(first)}/resend`);
    await control.post('/idle');
    const delivery: DeliveryRow = await control.get(`/deliveries/${id}`);
    return { data: delivery, lines: deliveryLines([delivery]) };
  },
});

/** A table of deliveries, and a line for each whose last answer is not 2xx. */
export function deliveryLines(rows: readonly DeliveryRow[]): string[] {
  const headings = ['delivery', 'kind', 'status', 'attempts', 'sent', 'faults', 'last answer', 'next'];
  const cells = rows.map((row) => [
    row.id,
    titleOf(row),
    row.status,
    row.attempts,
    row.sent,
    row.faults.join(', '),
    row.lastAttempt?.responseStatus ?? row.lastAttempt?.error ?? null,
    nextOf(row),
  ]);
  const refused = rows.flatMap((row) => {
    const { responseStatus, responseBody } = row.lastAttempt ?? {};
    if (typeof responseStatus !== 'number' || (responseStatus >= 200 && responseStatus < 300)) return [];
    return [printable(`${titleOf(row)} was answered ${answerText(responseStatus, responseBody ?? '')}`)];
  });
  const lines = table(headings, cells, 'There are no deliveries.');
  return refused.length === 0 ? lines : [...lines, '', ...refused];
}

/** The event's kind without its prefix, and its payment status. */
export function titleOf({ kind, paymentStatus }: Pick<DeliveryRow, 'kind' | 'paymentStatus'>): string {
  const title = kind.replace('payment_link.', '');
  return paymentStatus === null ? title : `${title} ${paymentStatus}`;
}

export function answerText(status: number, body: string): string {
  return shorten(`${status} ${body}`.trimEnd(), RESPONSE_LENGTH_MAX);
}

function nextOf({ dueAt, held, status }: DeliveryRow): string | null {
  if (status !== 'waiting' || held === null) return dueAt;
  if (held.fault === 'delay') return `${dueAt}, postponed by a delay`;
  if (dueAt !== null) return dueAt;
  return `held back by a reorder until ${held.left} more of its link ${held.left === 1 ? 'is' : 'are'} sent`;
}

function recordOf(delivery: DeliveryRow): string[] {
  return record([
    ['delivery', delivery.id],
    ['event', delivery.event],
    ['kind', titleOf(delivery)],
    ['link', delivery.link],
    ['to', delivery.webhookUrl],
    ['origin', delivery.origin],
    ['status', delivery.status],
    ['next', nextOf(delivery)],
  ]);
}

function logTable(log: readonly Attempt[]): string[] {
  const rows = log.map((entry, at) => {
    const copies = log.filter(({ attempt }) => attempt === entry.attempt).length;
    const copy = log.slice(0, at + 1).filter(({ attempt }) => attempt === entry.attempt).length;
    const { responseStatus, responseBody, error } = entry;
    return [
      entry.at,
      copies === 1 ? entry.attempt : `${entry.attempt}, copy ${copy} of ${copies}`,
      entry.faults.join(', '),
      responseStatus === null ? error : answerText(responseStatus, responseBody ?? ''),
    ];
  });
  return table(['sandbox time', 'attempt', 'faults', 'response'], rows, 'No attempt was made yet.');
}
