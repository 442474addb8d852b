import { aggregateStatus, type Link, PAYMENT_STATUSES, type Payment } from './model.ts';
import type { Switches } from './options.ts';

/** `url`: where the sandbox is reached. */
type RenderOptions = { url: string; switches: Switches };

/** A link of the list, as section 2 of the spec writes it: every field of it and no other. */
export function listItem(link: Link, { url, switches }: RenderOptions) {
  return {
    id: link.id,
    externalReference: link.externalReference,
    title: link.title,
    description: link.description,
    amount: written(link.amount, switches),
    currency: link.currency,
    status: link.status,
    isMultiUse: false,
    isActive: switches['is-active'] === 'not-expired' ? link.status !== 'EXPIRED' : link.status === 'ACTIVE',
    isExpired: link.status === 'EXPIRED',
    expiresAt: timeText(link.expiresAtMs),
    url: `${url}/pay/${link.id}`,
    shortUrl: `${url}/s/${link.short}`,
    metadata: link.metadata,
    callbackUrl: link.callbackUrl,
    createdAt: timeText(link.createdAtMs),
  };
}

/** A link with the fields that only its details have. */
export function linkDetails(link: Link, payments: readonly Payment[], options: RenderOptions) {
  return {
    ...listItem(link, options),
    paymentStatus: aggregateStatus(payments),
    webhookUrl: spelled(link.webhookUrl, options.switches),
    paymentsSummary: paymentsSummary(payments),
    payments: payments.map((payment, index) => paymentResource(payment, index, options)),
  };
}

export function paymentsSummary(payments: readonly Payment[]) {
  const count = (status: string) => payments.filter((payment) => payment.status === status).length;
  return {
    total: payments.length,
    byStatus: Object.fromEntries(PAYMENT_STATUSES.map((status) => [status, count(status)])),
  };
}

/** @param index which of the link's payments it is, from 0 */
export function paymentResource(payment: Payment, index: number, { switches }: Pick<RenderOptions, 'switches'>) {
  const ids = switches['payment-ids'];
  const isNamed = ids === 'all' || (ids === 'first' && index === 0);
  return {
    ...(isNamed ? { id: payment.id } : {}),
    status: payment.status,
    createdAt: timeText(payment.createdAtMs),
    completedAt: timeText(payment.completedAtMs),
    availableAt: timeText(payment.availableAtMs),
    customer: payment.customer,
    quote: {
      amount: written(payment.amount, switches),
      currency: payment.currency,
      paymentMethod: payment.method,
      installments: payment.installments,
      totalBRL: written(payment.totalBRL, switches),
    },
  };
}

/** An amount as a number of JSON. With `doubles` it is the double before the nearest one. */
export function written(amount: number, { numbers }: Switches): number {
  if (numbers === 'decimals') return amount;
  const bits = new BigInt64Array(Float64Array.of(amount).buffer);
  return new Float64Array(BigInt64Array.of((bits[0] ?? 0n) - 1n).buffer)[0] ?? amount;
}

function spelled(url: string | null, switches: Switches): string | null {
  if (url === null || switches['webhook-url'] === 'as-given') return url;
  if (switches['webhook-url'] === 'slash') return `${url}/`;
  return url.replace(/^https?:/i, (scheme) => scheme.toUpperCase());
}

/** ISO 8601 in UTC. */
export function timeText<Ms extends number | null>(ms: Ms): Ms extends number ? string : null;
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
