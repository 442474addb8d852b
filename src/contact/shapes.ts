import { parseAmount } from '../domain/money.ts';
import { parseBodyExactly, parseText } from '../json.ts';
import { secretFlaw } from '../links/service_secret.ts';
import { creationPlaces, readDetails, readPage } from '../paylink/answers.ts';
import { readInstant } from '../paylink/payment_details.ts';
import { goesElsewhere, type NewLink, type Reply } from '../paylink/service.ts';
import { asObject, field, type JsonObject, scalarText, statedText, usableId } from '../paylink/values.ts';
import type { Shapes } from './gaps.ts';

/** Names the shapes of what the service sent, in the words of gaps.ts. */

/** What was asked for, with the currency of its amount. */
export type Asked = NewLink & { currency: string };

/** The first name that holds. */
function firstOf(names: Readonly<Record<string, boolean>>, otherwise: string): string {
  return Object.keys(names).find((name) => names[name]) ?? otherwise;
}

export function ofCreation({ status, body }: Reply, asked: Asked): Shapes {
  const { root, inner, paymentLink, secrets } = creationPlaces(parseBodyExactly(body));
  const link = asObject(paymentLink) ?? {};
  const given = secrets.find((one) => one === asked.webhookSecret);
  // The service's own counts before the one given, and one that cannot be used last.
  const own = secrets.find((one) => one !== given && secretFlaw(one) === null);
  const secret = own ?? given ?? secrets[0] ?? null;
  const places = {
    'in-data': link === inner || link === field(inner, 'paymentLink'),
    bare: link === root,
    'beside-link': statedText(field(link, 'webhookSecret')) !== secret,
  };
  const flaw = secretFlaw(secret ?? '');
  const kinds = {
    none: secret === null,
    given: secret === given,
    own: secret === own,
    masked: flaw === 'masked',
    short: flaw === 'short',
  };
  return {
    'creation-status': String(status),
    'creation-envelope': firstOf(places, 'in-link'),
    'creation-secret': firstOf(kinds, 'other'),
    ...ofLink(link, asked),
  };
}

function ofLink(link: JsonObject, asked: Asked): Shapes {
  const said = (name: string) => statedText(field(link, name));
  const [reference, url, expiry] = [said('externalReference'), said('webhookUrl'), said('expiresAt')];
  const currency = said('currency');
  const given = asked.webhookUrl;
  const addresses = {
    none: url === null,
    'as-given': url === given,
    slash: url === `${given}/`,
    capitals: url?.replace(/^\w+/, (scheme) => scheme.toLowerCase()) === given,
    elsewhere: goesElsewhere({ webhookUrl: url }, given),
  };
  return {
    reference: firstOf({ none: reference === null, 'as-given': reference === asked.externalReference }, 'changed'),
    'webhook-url': firstOf(addresses, 'other'),
    numbers: said('amount') === null ? 'none' : amountOf(field(link, 'amount'), asked),
    currency: firstOf({ none: currency === null, [currency ?? '']: /^[A-Z]{3}$/.test(currency ?? '') }, 'other'),
    expiry: firstOf(
      { none: expiry === null, 'as-given': readInstant(expiry) === Date.parse(asked.expiresAt) },
      'other',
    ),
  };
}

function amountOf(value: unknown, { amount, currency }: Asked): string {
  const text = scalarText(value) ?? '';
  const minor = [text, amount].map((one) => parseAmount(one, currency)).map((read) => read.ok && read.amountMinor);
  if (minor[0] !== minor[1]) return text === String(minor[1]) ? 'cents' : 'other';
  return firstOf({ text: typeof value === 'string', doubles: text.length > amount.length + 1 }, 'decimals');
}

export function ofDetails({ body }: Reply, asked: Asked): Shapes {
  const parsed = parseBodyExactly(body);
  const link = asObject(field(asObject(parsed) ?? {}, 'paymentLink'));
  const read = readDetails(parsed);
  const details = read.ok ? 'whole' : /says nothing of payments/.test(read.flaw) ? 'no-payments' : 'other';
  const payments = (read.ok ? read.value.payments : []).map((one) => asObject(one) ?? {});
  const [last] = payments.slice(-1);
  const seen = { details, ...(link === null ? {} : ofLink(link, asked)) };
  if (last === undefined) return seen;
  const named = payments.filter((one) => usableId(field(one, 'id')) !== null).length;
  const total = field(asObject(field(last, 'quote')) ?? {}, 'totalBRL') ?? null;
  const totals = { none: total === null, text: typeof total === 'string', number: scalarText(total) !== null };
  const ids = firstOf({ all: named === payments.length, none: named === 0 }, 'first');
  return { ...seen, 'payment-ids': ids, 'total-brl': firstOf(totals, 'other') };
}

/** The list of a reference that no link has. */
export function ofList({ status, body }: Reply): Shapes {
  const parsed = parseBodyExactly(body);
  const page = readPage(parsed);
  const links = status === 200 && page.ok ? page.value.links.length : null;
  const lists = {
    refused: status === 403 && asObject(parsed) !== null,
    filtered: links === 0,
    unfiltered: links !== null,
  };
  return { list: firstOf(lists, 'other') };
}

export function ofError({ body }: Reply): Shapes {
  const json = asObject(parseBodyExactly(body));
  const root = json ?? {};
  const errors = {
    empty: body.length === 0,
    html: body[0] === '<'.charCodeAt(0),
    text: json === null,
    object: asObject(field(root, 'error')) !== null,
    'error-text': Object.hasOwn(root, 'error'),
    message: Object.hasOwn(root, 'message'),
    errors: Object.hasOwn(root, 'errors'),
    detail: Object.hasOwn(root, 'detail'),
  };
  return { 'error-body': firstOf(errors, 'other') };
}

/** Tells the forms apart as paylink/verdict.ts does. */
export function ofRate({ headers }: Reply): Shapes {
  const reset = headers.get('x-ratelimit-reset');
  const number = /^[0-9]{1,15}$/.test(reset ?? '') ? Number(reset) : Number.NaN;
  const forms = { none: reset === null, seconds: number < 1e9, epoch: number < 1e11, 'epoch-ms': number >= 1e11 };
  return { 'rate-reset': firstOf(forms, 'other') };
}

const IS_LINK = /^(?:payment_?)?link$/i;
const IS_LINK_ID = /^(?:payment_?)?link_?id$/i;

/** What the body of an event shows. */
export function ofEvent(text: string, linkId: string): Shapes {
  const whole = parsed(text);
  const opened = typeof whole === 'string' ? parsed(whole) : whole;
  const listed = asObject(Array.isArray(opened) ? opened[0] : opened);
  if (listed === null) return { wrapping: /^\w+=/.test(text) ? 'form' : 'other' };
  const inner = asObject(field(listed, 'event'));
  const event = inner ?? listed;
  const given = field(event, 'data');
  const data = asObject(typeof given === 'string' ? parsed(given) : given);
  const resource = asObject(field(event, 'resource'));
  const object = asObject(field(data ?? {}, 'object'));
  const payload = resource ?? object ?? data ?? asObject(field(event, 'payload')) ?? event;
  const type = ['type', 'event', 'eventType', 'event_type', 'kind'].find(
    (name) => scalarText(field(event, name)) !== null,
  );
  const names = [...Object.keys(event), ...Object.keys(payload)];
  const hasName = (pattern: RegExp) => names.some((name) => pattern.test(name));
  const wrappings = {
    'foreign-words': type === undefined && !hasName(IS_LINK) && !hasName(IS_LINK_ID),
    text: typeof whole === 'string',
    two: Array.isArray(opened) && opened.length > 1,
    list: Array.isArray(opened),
    event: inner !== null,
    snake_case: hasName(/^[a-z]+_[a-z_]+$/),
    'data.object': object !== null,
    resource: resource !== null,
    'data-as-text': typeof given === 'string' && data !== null,
  };
  const wrapping = firstOf(wrappings, 'none');
  if (wrapping === 'foreign-words') return { wrapping };
  const places = {
    payload: payload !== event && Object.hasOwn(event, 'payload'),
    data: payload !== event,
    flat: hasName(IS_LINK),
    bare: hasName(IS_LINK_ID) && Object.hasOwn(event, 'amount'),
    ids: hasName(IS_LINK_ID),
  };
  const id = scalarText(field(event, 'id'));
  const payment = asObject(field(payload, 'latestPayment') ?? field(payload, 'latest_payment')) ?? {};
  return {
    wrapping,
    envelope: firstOf(places, 'other'),
    'type-name': type === 'event_type' ? 'eventType' : (type ?? 'other'),
    'event-ids': firstOf(
      { none: id === null, link: id === linkId, payment: id === scalarText(field(payment, 'id')) },
      'own',
    ),
  };
}

function parsed(text: string): unknown {
  return parseText(text, { exact: true });
}

/** A rejection as the API shows it. */
export type Rejected = { reason: string; diagnosis: { code: string; details: JsonObject } | null };

const UNITS: Readonly<Record<number, string>> = { 10: 's', 16: 'us', 19: 'ns' };

/** What a refused delivery shows. `headerPrefix`: that of the configuration. */
export function ofRejection({ reason, diagnosis }: Rejected, headerPrefix: string): Shapes {
  const { code, details } = diagnosis ?? { code: reason, details: {} };
  const fault = asObject(details.fault) ?? {};
  const named = { deliveries: 'sent', method: 'POST', 'header-prefix': headerPrefix };
  if (code === 'other_method') return { deliveries: 'sent', method: String(details.method) };
  if (code === 'other_header_names') return { ...named, 'header-prefix': statedText(details.prefix) ?? 'other' };
  if (code === 'malformed_timestamp') return { ...named, 'timestamp-unit': UNITS[Number(fault.length)] ?? 'other' };
  const timed = { ...named, 'timestamp-unit': 'ms' };
  if (code === 'malformed_signature') return { ...timed, signature: statedText(fault.prefix) ?? String(fault.fault) };
  const [cause = code] = (asObject(details.mistake)?.readings ?? []) as string[];
  if (/^altered_|^wrong_|^signed_/.test(code)) return { ...timed, signed: cause === 'body_alone' ? 'body' : cause };
  return { deliveries: code };
}
