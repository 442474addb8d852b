import { aggregateStatus, type Link, PAYMENT_STATUSES, type Payment } from './model.ts';
import type { Switches } from './options.ts';

/** `url`: where the sandbox is reached. */
type RenderOptions = { url: string; switches: Switches };

/** A link of the list, as section 2 of the spec writes it: every field of it and no other. */
export function listItem(link: Link, { url, switches }: RenderOptions) {
  return {
    id: link.id,
    externalReference: shownReference(link.externalReference, switches),
    title: link.title,
    description: link.description,
    amount: written(link.amount, switches),
    currency: shownCurrency(link.currency, switches),
    status: link.status,
    isMultiUse: false,
    isActive: switches['is-active'] === 'not-expired' ? link.status !== 'EXPIRED' : link.status === 'ACTIVE',
    isExpired: link.status === 'EXPIRED',
    expiresAt: shownExpiry(link.expiresAtMs, switches),
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
      currency: shownCurrency(payment.currency, switches),
      paymentMethod: payment.method,
      installments: payment.installments,
      totalBRL: shownTotal(payment.totalBRL, switches),
    },
  };
}

export function shownReference(reference: string | null, switches: Switches): string | null | undefined {
  if (reference === null || switches.reference === 'none') return reference === null ? null : undefined;
  if (switches.reference === 'changed') return reference.toUpperCase();
  const odd = switches['oddest-reference'] === 'changed' ? reference.replace(ODD, '_') : reference;
  return switches['longest-reference'] === 'changed' ? odd.slice(0, REFERENCE_LENGTH_MAX) : odd;
}

const ODD = /[^\w.-]/g;
const REFERENCE_LENGTH_MAX = 64;

/** Whether a switch has this externalReference refused. */
export function isRefusedReference(reference: string, switches: Switches): boolean {
  const isLong = reference.length > REFERENCE_LENGTH_MAX;
  return (
    (isLong && switches['longest-reference'] === 'refused') ||
    (reference.search(ODD) >= 0 && switches['oddest-reference'] === 'refused')
  );
}

export function shownCurrency(currency: string, switches: Switches): string | undefined {
  if (switches.currency === 'none') return undefined;
  return switches.currency === 'BRL' ? currency : switches.currency;
}

function shownExpiry(ms: number | null, { expiry }: Switches): string | null | undefined {
  if (expiry === 'none') return undefined;
  return timeText(ms === null || expiry === 'as-given' ? ms : ms - 3_600_000);
}

function shownTotal(total: number, switches: Switches): number | string | undefined {
  if (switches['total-brl'] === 'none') return undefined;
  return switches['total-brl'] === 'text' ? total.toFixed(2) : written(total, switches);
}

/** An amount as JSON has it. With `doubles` it is the double before the nearest one. */
export function written(amount: number, { numbers }: Switches): number | string {
  if (numbers === 'decimals') return amount;
  if (numbers === 'text') return amount.toFixed(2);
  if (numbers === 'cents') return Math.round(amount * 100);
  const bits = new BigInt64Array(Float64Array.of(amount).buffer);
  return new Float64Array(BigInt64Array.of((bits[0] ?? 0n) - 1n).buffer)[0] ?? amount;
}

function spelled(url: string | null, switches: Switches): string | null {
  if (url === null || switches['webhook-url'] === 'as-given') return url;
  if (switches['webhook-url'] === 'none') return null;
  if (switches['webhook-url'] === 'elsewhere') return 'https://hooks.example.com/elsewhere';
  if (switches['webhook-url'] === 'slash') return `${url}/`;
  return url.replace(/^https?:/i, (scheme) => scheme.toUpperCase());
}

/** ISO 8601 in UTC. */
export function timeText<Ms extends number | null>(ms: Ms): Ms extends number ? string : null;
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
