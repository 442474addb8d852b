import type { IncomingMessage } from 'node:http';
import type { Context } from '../context.ts';
import { LINK_STATUSES, type Link, MERCHANT_NAME, Refusal } from '../model.ts';
import { isRefusedReference, listItem } from '../resources.ts';
import type { LinkQuery } from '../store/links.ts';
import { type Creation, readCreation, readJson } from './creation.ts';
import type { Answer } from './errors.ts';

/** As the list response shows it (spec section 8). */
const PAGE_SIZE = 20;
/** The spec shows no bound (section 8, gaps). */
const PAGE_SIZE_MAX = 100;

export type Call = {
  request: IncomingMessage;
  /** The last part of the path, for a link's details. */
  id: string;
  query: URLSearchParams;
};
type Endpoint = (call: Call, context: Context) => Answer | Promise<Answer>;

/** The endpoints of section 4, with their paths. */
export const ENDPOINTS: readonly { path: RegExp; methods: Readonly<Record<string, Endpoint>> }[] = [
  { path: /^\/api\/v1\/merchant\/profile$/, methods: { GET: showMerchant } },
  { path: /^\/api\/v1\/payment-links$/, methods: { GET: listLinks, POST: createLink } },
  { path: /^\/api\/v1\/payment-links\/([^/]+)$/, methods: { GET: showLink } },
];

function showMerchant(_call: Call, { store }: Context): Answer {
  // The routes refused an inactive merchant before.
  const merchant = { id: store.ids.id('merchant', 1), businessName: MERCHANT_NAME, status: 'ACTIVE' };
  return { status: 200, body: { success: true, merchant } };
}

async function createLink({ request }: Call, context: Context): Promise<Answer> {
  const body = await readJson(request);
  const given = readCreation(body, context.clock.nowMs());
  if (isRefusedReference(given.externalReference ?? '', context.switches())) {
    throw new Refusal(400, 'validation_error', 'externalReference is not accepted.', 'externalReference');
  }
  const link = context.service.create(withSecret(given, context));
  return { status: Number(context.switches()['creation-status']), body: creationBody(link, context) };
}

/** A service may ignore the secret that it was given, and sign with one of its own. */
function withSecret(given: Creation, { switches, store }: Context): Creation {
  switch (switches()['creation-secret']) {
    case 'given':
    case 'masked':
    case 'none':
      return given;
    case 'own':
      return { ...given, webhookSecret: null };
    case 'short':
      return { ...given, webhookSecret: store.ids.id('merchant', 1).slice(-8) };
  }
}

/** The only answer that shows the secret (spec section 2). A switch says at which place. */
function creationBody(link: Link, context: Context): object {
  const paymentLink = context.service.details(link);
  const shown = { masked: `${link.webhookSecret.slice(0, 6)}***`, none: undefined };
  const shows = context.switches()['creation-secret'];
  const webhookSecret = shows === 'masked' || shows === 'none' ? shown[shows] : link.webhookSecret;
  switch (context.switches()['creation-envelope']) {
    case 'in-link':
      return { success: true, paymentLink: { ...paymentLink, webhookSecret } };
    case 'in-data':
      return { success: true, data: { paymentLink: { ...paymentLink, webhookSecret } } };
    case 'beside-link':
      return { success: true, paymentLink, webhookSecret };
    case 'bare':
      return { ...paymentLink, webhookSecret };
  }
}

function listLinks({ query }: Call, { options, store, url, switches }: Context): Answer {
  if (options.environment === 'sandbox' || switches().list === 'refused') {
    const message = 'The list of payment links is not there in the sandbox environment; read a link by its id.';
    throw new Refusal(403, 'not_in_sandbox', message);
  }
  const asked = readListQuery(query);
  const wanted = switches().list === 'unfiltered' ? { ...asked, externalReference: null } : asked;
  const { links, total } = store.links(wanted);
  const rendering = { url, switches: switches() };
  const { page, pageSize } = wanted;
  const pagination = { page, pageSize, total, totalPages: Math.ceil(total / pageSize) };
  const paymentLinks = links.map((link) => listItem(link, rendering));
  return { status: 200, body: { success: true, paymentLinks, pagination } };
}

function showLink({ id }: Call, context: Context): Answer {
  const { paymentStatus, payments, ...rest } = context.service.details(context.service.link(id));
  const whole = context.switches().details === 'whole' ? { paymentStatus, payments } : {};
  return { status: 200, body: { success: true, paymentLink: { ...rest, ...whole } } };
}

/**
 * Reads the query of the list (spec section 4). Nothing in it is an error: an unknown status is ignored, as the spec
 * says. The spec says nothing of a wrong page or pageSize: values that are not whole numbers from 1 are ignored too,
 * and a pageSize over 100 counts as 100. If a parameter is repeated, the first one counts. An empty externalReference
 * matches no link.
 */
function readListQuery(query: URLSearchParams): LinkQuery {
  const status = query.get('status');
  return {
    status: LINK_STATUSES.find((known) => known === status) ?? null,
    externalReference: query.get('externalReference'),
    page: wholeFrom1(query.get('page')) ?? 1,
    pageSize: Math.min(PAGE_SIZE_MAX, wholeFrom1(query.get('pageSize')) ?? PAGE_SIZE),
  };
}

/** At most nine digits keep every offset into the list exact. */
function wholeFrom1(text: string | null): number | null {
  return text !== null && /^0*[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}
