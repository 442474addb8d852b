import type { IncomingMessage } from 'node:http';
import { LINK_STATUSES, type Link, MERCHANT_NAME, Refusal } from '../model.ts';
import { detailsNow, listItem } from '../resources.ts';
import type { Parts } from '../sandbox.ts';
import type { LinkQuery } from '../store/links.ts';
import { readCreation, readJson } from './creation.ts';
import type { Answer } from './errors.ts';

export type Call = {
  request: IncomingMessage;
  /** The last part of the path, for a link's details. */
  id: string;
  query: URLSearchParams;
};
type Endpoint = (call: Call, parts: Parts) => Answer | Promise<Answer>;

/** The endpoints of section 4, each with its path under the address of the sandbox. */
export const ENDPOINTS: readonly { path: RegExp; methods: Readonly<Record<string, Endpoint>> }[] = [
  { path: /^\/api\/v1\/merchant\/profile$/, methods: { GET: showMerchant } },
  { path: /^\/api\/v1\/payment-links$/, methods: { GET: listLinks, POST: createLink } },
  { path: /^\/api\/v1\/payment-links\/([^/]+)$/, methods: { GET: showLink } },
];

function showMerchant(_call: Call, { chance }: Parts): Answer {
  // An inactive merchant was refused before.
  const merchant = { id: chance.id('merchant', 1), businessName: MERCHANT_NAME, status: 'ACTIVE' };
  return { status: 200, body: { success: true, merchant } };
}

async function createLink({ request }: Call, parts: Parts): Promise<Answer> {
  const body = await readJson(request);
  const link = parts.service.create(withSecret(readCreation(body, parts.clock.nowMs()), parts));
  return { status: Number(parts.silences()['creation-status']), body: creationBody(link, parts) };
}

/** A service may sign with a secret of its own, whatever it was given. */
function withSecret(given: Creation, { silences, chance }: Parts): Creation {
  switch (silences()['creation-secret']) {
    case 'given':
    case 'masked':
      return given;
    case 'own':
      return { ...given, webhookSecret: null };
    case 'short':
      return { ...given, webhookSecret: chance.id('merchant', 1).slice(-8) };
  }
}

type Creation = ReturnType<typeof readCreation>;

/** The only place that ever shows the secret (spec section 2). Where it stands in the answer is a switch. */
function creationBody(link: Link, parts: Parts): object {
  const paymentLink = detailsNow(link, parts);
  const isMasked = parts.silences()['creation-secret'] === 'masked';
  const webhookSecret = isMasked ? `${link.webhookSecret.slice(0, 6)}***` : link.webhookSecret;
  switch (parts.silences()['creation-envelope']) {
    case 'in-link':
      return { success: true, paymentLink: { ...paymentLink, webhookSecret } };
    case 'beside-link':
      return { success: true, paymentLink, webhookSecret };
    case 'bare':
      return { ...paymentLink, webhookSecret };
  }
}

function listLinks({ query }: Call, { options, store, baseUrl, silences }: Parts): Answer {
  if (options.environment === 'sandbox') {
    const message = 'The list of payment links is not there in the sandbox environment; read a link by its id.';
    throw new Refusal(403, 'not_in_sandbox', message);
  }
  const wanted = readListQuery(query);
  const { links, total } = store.links(wanted);
  const rendering = { baseUrl: baseUrl(), silences: silences() };
  const { page, pageSize } = wanted;
  const pagination = { page, pageSize, total, totalPages: Math.ceil(total / pageSize) };
  const paymentLinks = links.map((link) => listItem(link, rendering));
  return { status: 200, body: { success: true, paymentLinks, pagination } };
}

function showLink({ id }: Call, parts: Parts): Answer {
  return { status: 200, body: { success: true, paymentLink: detailsNow(parts.service.link(id), parts) } };
}

/** As the list response shows it (spec section 8). */
const PAGE_SIZE = 20;
/** The spec shows no bound (section 8, gaps). */
const PAGE_SIZE_MAX = 100;

/**
 * Reads the query of the list (spec section 4); of a parameter that is given twice, the first. Nothing in it is an
 * error: an unknown status is ignored, as the spec says. Of page and pageSize it says nothing: what is no whole number
 * from 1 is ignored too, and a pageSize over 100 is taken as 100. An empty externalReference matches no link.
 */
export function readListQuery(query: URLSearchParams): LinkQuery {
  const status = query.get('status');
  return {
    status: LINK_STATUSES.find((known) => known === status) ?? null,
    externalReference: query.get('externalReference'),
    page: wholeFrom1(query.get('page')) ?? 1,
    pageSize: Math.min(PAGE_SIZE_MAX, wholeFrom1(query.get('pageSize')) ?? PAGE_SIZE),
  };
}

/** At most nine digits, so that every offset into the list stays exact. */
function wholeFrom1(text: string | null): number | null {
  return text !== null && /^0*[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}
