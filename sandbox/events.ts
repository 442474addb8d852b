import type { EventKind, Link, Payment } from './model.ts';
import type { Switches } from './options.ts';
import { linkDetails, paymentResource, paymentsSummary, shownCurrency, shownReference, written } from './resources.ts';

/** The link and its payments when the event is emitted. */
export type EventContent = { id: string; kind: EventKind; link: Link; payments: readonly Payment[]; nowMs: number };

/**
 * The body of an event, as JSON text. The spec (section 6) names `id`, and for payment events `paymentStatus`,
 * `latestPayment` and counts; it does not say where they are, so that is a switch.
 */
export function eventBody(content: EventContent, options: { url: string; switches: Switches }): string {
  const { kind, link, payments, nowMs } = content;
  const { switches } = options;
  const {
    paymentStatus,
    payments: _payments,
    paymentsSummary: _summary,
    ...paymentLink
  } = linkDetails(link, payments, options);
  const latest = payments.at(-1);
  const isReversed = latest?.status === 'REFUNDED' || latest?.status === 'DISPUTED';
  const isOfPayment = kind === 'payment_link.payment_status_changed' && latest !== undefined;
  const ids = { own: content.id, payment: isOfPayment ? latest.id : content.id, link: link.id, none: undefined };
  const id = ids[switches['event-ids']];
  const ofPayment = {
    paymentStatus: isReversed && switches['refund-event'] === 'own-status' ? latest.status : paymentStatus,
    latestPayment: latest === undefined ? null : paymentResource(latest, payments.length - 1, options),
    counts: paymentsSummary(payments),
  };
  const envelope = { id, [switches['type-name']]: kind, createdAt: new Date(nowMs).toISOString() };
  const payload = kind === 'payment_link.payment_status_changed' ? { paymentLink, ...ofPayment } : { paymentLink };
  const isBare = switches.envelope === 'bare' || switches.envelope === 'ids';
  const hasMoney = switches.envelope === 'bare';
  const parts = {
    envelope,
    payload: isBare ? bare(content, ofPayment.paymentStatus, { hasMoney, switches }) : payload,
  };
  return wrap(switches.wrapping, { ...parts, linkId: link.id }, (before, inner) =>
    switches.envelope === 'data' || switches.envelope === 'payload'
      ? { ...before, [switches.envelope]: inner }
      : { ...before, ...inner },
  );
}

/** Ids and the statuses that the event is about, and perhaps the money of the link. */
function bare(
  { kind, link, payments }: EventContent,
  paymentStatus: string,
  { hasMoney, switches }: { hasMoney: boolean; switches: Switches },
) {
  const externalReference = shownReference(link.externalReference, switches);
  const named = { paymentLinkId: link.id, externalReference };
  if (kind === 'payment_link.created') return named;
  if (kind === 'payment_link.status_changed') return { ...named, status: link.status };
  const latest = payments.at(-1);
  const latestPayment = latest === undefined ? null : { id: latest.id, status: latest.status };
  const currency = shownCurrency(link.currency, switches);
  const money = hasMoney ? { amount: written(link.amount, switches), currency } : {};
  return { ...named, ...money, paymentStatus, latestPayment };
}

type Fields = Readonly<Record<string, unknown>>;

/** What an event is made of, before it is written. */
type Parts = { readonly envelope: Fields; readonly payload: Fields; readonly linkId: string };

/**
 * The body of an event, as text, in one of the wrappings that the specification leaves open (section 6: "payload schema
 * not shown"). `write` puts envelope and payload together as the switch `envelope` has it.
 */
function wrap(
  wrapping: Switches['wrapping'],
  { envelope, payload, linkId }: Parts,
  write: (envelope: Fields, payload: Fields) => Fields,
): string {
  const event = write(envelope, payload);
  switch (wrapping) {
    case 'none':
      return JSON.stringify(event);
    case 'data.object':
      return JSON.stringify({ ...envelope, data: { object: payload } });
    case 'event':
      return JSON.stringify({ event });
    case 'resource':
      return JSON.stringify({ ...envelope, resource: payload });
    case 'list':
      return JSON.stringify([event]);
    case 'data-as-text':
      return JSON.stringify({ ...envelope, data: JSON.stringify(payload) });
    case 'text':
      return JSON.stringify(JSON.stringify(event));
    case 'snake_case':
      return JSON.stringify(renamed(event, snake));
    case 'link-id':
      return JSON.stringify({ ...event, id: linkId });
    case 'two':
      return JSON.stringify([event, event]);
    case 'foreign-words':
      return JSON.stringify(renamed(event, (name) => `campo_${[...name].reverse().join('')}`));
    case 'form':
      return new URLSearchParams({ event: JSON.stringify(event) }).toString();
  }
}

/** The same with other names, at every depth. */
function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [rename(name), renamed(inner, rename)]));
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}
