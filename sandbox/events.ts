import type { EventKind, Link, Payment } from './model.ts';
import { linkDetails, paymentResource, paymentsSummary } from './resources.ts';
import type { Silences } from './silences.ts';
import { wrap } from './wrapping.ts';

/** What an event is made of: the link as it stands when the event is emitted. */
export type EventContent = { id: string; kind: EventKind; link: Link; payments: readonly Payment[]; nowMs: number };

/**
 * The body of an event, as JSON text. The spec (section 6) names `id`, and for payment events `paymentStatus`,
 * `latestPayment` and counts; where they stand is a silence, so it is a switch.
 */
export function eventBody(content: EventContent, options: { baseUrl: string; silences: Silences }): string {
  const { id, kind, link, payments, nowMs } = content;
  const { silences } = options;
  const {
    paymentStatus,
    payments: _payments,
    paymentsSummary: _summary,
    ...paymentLink
  } = linkDetails(link, payments, options);
  const latest = payments.at(-1);
  const isReversed = latest?.status === 'REFUNDED' || latest?.status === 'DISPUTED';
  const ofPayment = {
    paymentStatus: isReversed && silences['refund-event'] === 'own-status' ? latest.status : paymentStatus,
    latestPayment: latest === undefined ? null : paymentResource(latest, payments.length - 1, options),
    counts: paymentsSummary(payments),
  };
  const envelope = { id, [silences['type-name']]: kind, createdAt: new Date(nowMs).toISOString() };
  const payload = kind === 'payment_link.payment_status_changed' ? { paymentLink, ...ofPayment } : { paymentLink };
  const isBare = silences.envelope === 'bare' || silences.envelope === 'ids';
  const money = silences.envelope === 'bare' ? (['amount', 'currency'] as const) : [];
  const parts = { envelope, payload: isBare ? bare(content, ofPayment.paymentStatus, money) : payload };
  return wrap(silences.wrapping, { ...parts, linkId: link.id }, (before, inner) =>
    silences.envelope === 'data' || silences.envelope === 'payload'
      ? { ...before, [silences.envelope]: inner }
      : { ...before, ...inner },
  );
}

/** No more than ids, the statuses that the event is about, and what else of the link is named. */
function bare({ kind, link, payments }: EventContent, paymentStatus: string, also: readonly ('amount' | 'currency')[]) {
  const named = { paymentLinkId: link.id, externalReference: link.externalReference };
  if (kind === 'payment_link.created') return named;
  if (kind === 'payment_link.status_changed') return { ...named, status: link.status };
  const latest = payments.at(-1);
  const latestPayment = latest === undefined ? null : { id: latest.id, status: latest.status };
  const money = Object.fromEntries(also.map((name) => [name, link[name]]));
  return { ...named, ...money, paymentStatus, latestPayment };
}
