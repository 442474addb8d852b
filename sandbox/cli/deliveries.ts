import { defineCommand } from './command.ts';
import { connect, URL_OPTION } from './control.ts';
import { table } from './table.ts';

export type DeliveryRow = {
  id: string;
  event: string;
  kind: string;
  link: string | null;
  origin: string;
  status: string;
  attempts: number;
  dueAt: string | null;
  lastAttempt: { responseStatus: number | null; error: string | null } | null;
};

export const deliveries = defineCommand({
  name: 'deliveries',
  positional: '[LINK]',
  about: 'list the deliveries of a link, or of all',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const path = first === '' ? '/deliveries' : `/deliveries?link=${encodeURIComponent(first)}`;
    const found: { deliveries: DeliveryRow[] } = await connect(options.url).get(path);
    return { data: found, lines: deliveryTable(found.deliveries) };
  },
});

export const resend = defineCommand({
  name: 'resend',
  positional: 'ID',
  about: 'send an event again, by its id or by the id of a delivery of it',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const control = connect(options.url);
    const room = first.startsWith('evt_') ? 'events' : 'deliveries';
    const { id }: DeliveryRow = await control.post(`/${room}/${encodeURIComponent(first)}/resend`);
    await control.post('/idle');
    const delivery: DeliveryRow = await control.get(`/deliveries/${id}`);
    return { data: delivery, lines: deliveryTable([delivery]) };
  },
});

export function deliveryTable(rows: readonly DeliveryRow[]): string[] {
  return table(
    ['delivery', 'event', 'kind', 'status', 'attempts', 'last answer', 'next'],
    rows.map(({ id, event, kind, status, attempts, lastAttempt, dueAt }) => [
      id,
      event,
      kind.replace('payment_link.', ''),
      status,
      attempts,
      lastAttempt?.responseStatus ?? lastAttempt?.error ?? null,
      dueAt,
    ]),
    'Nothing was delivered.',
  );
}
