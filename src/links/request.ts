import { formatAmount, type Money } from '../domain/money.ts';
import { parseJsonText } from '../json.ts';
import type { NewLink } from '../paylink/service.ts';

/** A shop's request for a link. Fields that it left out are null. */
export type OpenRequest = {
  reference: string;
  title: string;
  amount: Money;
  description: string | null;
  expiresAtMs: number | null;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
};

/** The part of a request that a repeated one must share, as JSON. Equal requests give equal texts. */
export function writeRequest(request: OpenRequest): string {
  const { title, amount, description, expiresAtMs, metadata, callbackUrl } = request;
  return JSON.stringify({
    title,
    amount: formatAmount(amount),
    currency: amount.currency,
    description,
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    metadata: sorted(metadata),
    callbackUrl,
  });
}

type Stored = Pick<NewLink, 'title' | 'amount' | 'description' | 'metadata' | 'callbackUrl'>;

/** Reads what `writeRequest` wrote. */
export function readRequest(text: string): Stored {
  const { title, amount, description, metadata, callbackUrl } = parseJsonText(text) as Stored;
  return { title, amount, description, metadata, callbackUrl };
}

/** The names of the fields in which a request differs from one that `writeRequest` wrote. */
export function differingFields(written: string, request: OpenRequest): string[] {
  const before = parseJsonText(written) as Record<string, unknown>;
  const now = parseJsonText(writeRequest(request)) as Record<string, unknown>;
  return Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(before[name]));
}

/** The same value with the keys of every object in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
