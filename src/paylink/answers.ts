import { z } from 'zod';
import { readInstant } from './payment_details.ts';
import type { LinkMade, LinkSeen, ListPage, Profile } from './service.ts';
import { asObject, field, readMoney, scalarText, statedText, usableId } from './values.ts';

/**
 * Reads the answers of the service's API (spec §2, §4), parsed by `parseBodyExactly`. Fields not named here may hold
 * anything. An unreadable named field counts as absent, unless settled needs it: the answer then has a flaw.
 * docs/events.md lists the accepted places.
 */
export type Read<T> = { ok: true; value: T } | { ok: false; flaw: string };

/** A link's details. reading.ts reads its payments. */
export type Details = { link: LinkSeen; payments: readonly unknown[]; isExpired: boolean };

const ADDRESS_LENGTH_MAX = 2_048;
const NAME_LENGTH_MAX = 255;
const STATUS_LENGTH_MAX = 64;
/** Each attempt to pay makes one, and a link has a handful. */
const PAYMENTS_MAX = 1_000;

const idShape = z
  .custom((value) => usableId(value) !== null, 'is no usable id')
  .transform((value) => usableId(value) as string);
const statusShape = z.string('is no text').transform(readStatus);
const success = z.literal(true, 'is not true').optional();

const linkShape = z.looseObject(
  {
    id: idShape,
    status: statusShape.catch('UNKNOWN'),
    payments: z.array(z.unknown(), 'is no list').max(PAYMENTS_MAX, `has more than ${PAYMENTS_MAX} items`).nullish(),
  },
  'is no object',
);
/** Details without a status, or without anything about payments, say nothing. settled must not read them as unpaid. */
const detailsShape = linkShape
  .extend({ status: statusShape })
  .refine(({ paymentStatus, payments }) => paymentStatus != null || payments != null, {
    error: 'says nothing of payments',
  });
const pageShape = z.object({
  success,
  paymentLinks: z.array(linkShape, 'is no list'),
  pagination: z.looseObject({}).optional().catch(undefined),
});
const merchantShape = z.looseObject({ id: idShape }, 'is no object');

/** `GET /merchant/profile` */
export function readProfile(body: unknown): Read<Profile> {
  return read(z.object({ success, merchant: merchantShape }), body, ({ merchant }) => ({
    id: merchant.id,
    businessName: readText(merchant.businessName, NAME_LENGTH_MAX),
    status: readText(merchant.status, STATUS_LENGTH_MAX),
  }));
}

/**
 * `POST /payment-links`. The spec does not show the envelope: the link is under `paymentLink` or is the body itself;
 * either may be wrapped in `data`. `webhookSecret` is in the link or next to it; the secret that settled gave is left
 * out.
 */
export function readCreation(body: unknown, given: string): Read<LinkMade> {
  const { root, paymentLink, secrets } = creationPlaces(body);
  const shape = z.object({ success, paymentLink: linkShape });
  return read(shape, { success: field(root, 'success'), paymentLink }, (answer) => ({
    ...seen(answer.paymentLink),
    webhookSecrets: [...new Set(secrets.filter((secret) => secret !== given))],
  }));
}

/** Where the answer to a creation has its link, and every `webhookSecret` in it. */
export function creationPlaces(body: unknown) {
  const root = asObject(body) ?? {};
  const inner = asObject(field(root, 'data')) ?? {};
  const named = [field(root, 'paymentLink'), field(inner, 'paymentLink')];
  const bare = [root, inner].filter((place) => Object.hasOwn(place, 'id'));
  const paymentLink = [...named, ...bare].find((place) => place !== undefined);
  const secrets = [asObject(paymentLink) ?? {}, root, inner].map((place) => statedText(field(place, 'webhookSecret')));
  return { root, inner, paymentLink, secrets: secrets.filter((secret) => secret !== null) };
}

/** `GET /payment-links` */
export function readPage(body: unknown): Read<ListPage> {
  return read(pageShape, body, ({ paymentLinks, pagination }) => ({
    links: paymentLinks.map(seen),
    totalPages: readCount(pagination?.totalPages),
  }));
}

/** `GET /payment-links/{id}` */
export function readDetails(body: unknown): Read<Details> {
  return read(z.object({ success, paymentLink: detailsShape }), body, ({ paymentLink }) => ({
    link: seen(paymentLink),
    payments: paymentLink.payments ?? [],
    isExpired: paymentLink.isExpired === true,
  }));
}

function read<S extends z.ZodType, T>(shape: S, body: unknown, use: (answer: z.output<S>) => T): Read<T> {
  const root = asObject(body);
  if (root === null) return { ok: false, flaw: 'it is no JSON object' };
  const result = shape.safeParse(root);
  if (result.success) return { ok: true, value: use(result.data) };
  const [issue] = result.error.issues;
  return { ok: false, flaw: `its ${issue?.path.join('.')} ${issue?.message}` };
}

function seen(link: z.output<typeof linkShape>): LinkSeen {
  return {
    id: link.id,
    reference: scalarText(link.externalReference),
    money: readMoney(link) ?? { amount: null, currency: null },
    status: link.status,
    url: readAddress(link.url),
    shortUrl: readAddress(link.shortUrl),
    webhookUrl: readAddress(link.webhookUrl),
    createdAtMs: readInstant(link.createdAt),
    expiresAtMs: readInstant(link.expiresAt),
    paymentStatus: link.paymentStatus == null ? null : readStatus(statedText(link.paymentStatus) ?? ''),
    payments: link.payments?.length ?? 0,
  };
}

/** Keeps statuses that settled does not know. */
function readStatus(text: string): string {
  return text.trim().toUpperCase().toWellFormed().replaceAll('\0', '').slice(0, STATUS_LENGTH_MAX);
}

/** An address that a browser may be sent to: never `javascript:`. */
function readAddress(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > ADDRESS_LENGTH_MAX) return null;
  const url = URL.parse(value);
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') ? value : null;
}

function readText(value: unknown, lengthMax: number): string | null {
  return typeof value === 'string' ? value.slice(0, lengthMax) : null;
}

function readCount(value: unknown): number | null {
  const count = Number(scalarText(value) ?? Number.NaN);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}
