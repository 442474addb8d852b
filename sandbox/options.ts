import { type Environment, UnknownName } from './model.ts';

export const DEFAULT_LISTEN = { host: '127.0.0.1', port: 8790 } as const;

/** A placeholder for the service's brand, which the spec leaves out of the header names. */
export const DEFAULT_HEADER_PREFIX = 'x-service';

export type SandboxOptions = {
  environment: Environment;
  listen: { host: string; port: number };
  /** Needed to listen beyond loopback: nothing here is protected. */
  allowRemote: boolean;
  /** A file to keep everything in; null for memory. */
  data: string | null;
  /** Null for one derived from the seed. */
  apiKey: string | null;
  /** Null for the seed of the file, or a new one. */
  seed: string | null;
  /** How many seconds of the sandbox pass in a real one. */
  timeScale: number;
  /** The beginning of the names of a delivery's two headers. */
  headerPrefix: string;
  switches: Switches;
  /** Requests a minute for each API key; null for no limit. */
  rateLimit: number | null;
  /** If true, every call is answered 403 (spec section 5). */
  merchantInactive: boolean;
};

/**
 * A switch for each thing that the service's specification leaves open, with its values; the first is the default.
 * sandbox/README.md lists them, and a test keeps the two equal.
 */
export const SWITCHES = {
  signature: {
    about: 'how the signature is written (section 6: "encoding not shown")',
    values: [
      'hex',
      'hex-upper',
      'base64',
      'base64url',
      'base64-unpadded',
      'sha256=hex',
      'sha256=base64',
      'SHA256=hex',
      'sha256:hex',
      'hmac-sha256=hex',
      'v1=hex',
      'v1,base64',
      't=,v1=hex',
      'signature=',
    ],
  },
  signed: {
    about: 'what is signed: timestamp, full stop and body, as section 6 says; or the body alone, against it',
    values: ['timestamp.body', 'body'],
  },
  'timestamp-unit': {
    about: "the unit of a delivery's timestamp: milliseconds, as section 6 says; or seconds, against it",
    values: ['ms', 's'],
  },
  method: { about: 'the HTTP method of a delivery (section 6: "not shown")', values: ['POST', 'PUT'] },
  deliveries: { about: 'whether events are delivered at all', values: ['sent', 'none'] },
  retries: {
    about:
      'whether a retry is signed again with its own timestamp, or carries the timestamp and signature of the first attempt',
    values: ['re-signed', 'signed-once'],
  },
  schedule: {
    about: 'whether 1 min, 5 min, 15 min … count from the previous attempt, or from the first one',
    values: ['delays', 'offsets'],
  },
  'after-last-retry': {
    about: 'what follows the retry after 12 hours: nothing, or a retry every 12 hours',
    values: ['give-up', 'repeat-last'],
  },
  envelope: {
    about:
      'where an event keeps its parts: under data, under payload, or at the root; or bare: only ids, statuses ' +
      'and money; or only ids and statuses',
    values: ['data', 'payload', 'flat', 'bare', 'ids'],
  },
  wrapping: {
    about:
      'what wraps an event after the envelope, or how it is written: an object under data, event or resource; a ' +
      'list of one, or of two; data as JSON text, or the whole body as JSON text; names in snake case, or in no ' +
      "known words; the link's id in place of the event's; a form instead of JSON",
    values: [
      'none',
      'data.object',
      'event',
      'resource',
      'list',
      'data-as-text',
      'text',
      'snake_case',
      'link-id',
      'two',
      'foreign-words',
      'form',
    ],
  },
  'type-name': { about: "the name of the field that holds the event's kind", values: ['type', 'event', 'eventType'] },
  'refund-event': {
    about:
      'what a refund or a dispute emits (section 6 does not say): nothing; payment_link.payment_status_changed ' +
      "with paymentStatus COMPLETED, as section 3 counts; or the same with the payment's own status as " +
      'paymentStatus',
    values: ['none', 'aggregate', 'own-status'],
  },
  'partial-refund': {
    about:
      'how a refund of a part is listed (sections 2 and 3 have no word for it): the payment is REFUNDED and its quote ' +
      'names the part; or a further payment beside it is REFUNDED and names the part',
    values: ['in-place', 'beside'],
  },
  'event-ids': {
    about: "the id of an event: its own; that of the payment, if it is about one; the link's; or none",
    values: ['own', 'payment', 'link', 'none'],
  },
  numbers: {
    about:
      'how amounts are written: as decimals, as arithmetic with doubles leaves them (256.16999999999996), as text, or in ' +
      'cents',
    values: ['decimals', 'doubles', 'text', 'cents'],
  },
  'total-brl': { about: 'totalBRL of a quote: a number, a text, or left out', values: ['number', 'text', 'none'] },
  currency: { about: 'the currency of links: BRL, none named, or USD', values: ['BRL', 'none', 'USD'] },
  reference: {
    about: 'the externalReference in answers and events: as given, left out, or in capitals',
    values: ['as-given', 'none', 'changed'],
  },
  'longest-reference': {
    about: 'an externalReference of more than 64 characters: kept, cut, or refused',
    values: ['as-given', 'changed', 'refused'],
  },
  'oddest-reference': {
    about:
      'an externalReference with other characters than letters, digits, ".", "_" and "-": kept, changed, or refused',
    values: ['as-given', 'changed', 'refused'],
  },
  expiry: {
    about: 'the expiresAt that was given: kept, left out of answers, or an hour earlier',
    values: ['as-given', 'none', 'other'],
  },
  details: {
    about: "a link's details: with paymentStatus and payments (section 2), or, against it, without",
    values: ['whole', 'no-payments'],
  },
  list: {
    about:
      'the list of links: filtered by externalReference, all links in spite of it, or 403 as in environment sandbox',
    values: ['filtered', 'unfiltered', 'refused'],
  },
  'webhook-url': {
    about:
      'how answers spell the webhookUrl that was given: in the same way, with a slash at its end, with its scheme in ' +
      'capitals, not at all, or as another address. Deliveries go to the given one',
    values: ['as-given', 'slash', 'capitals', 'none', 'elsewhere'],
  },
  'payment-ids': {
    about:
      'which payments of the details and of events have an id: all of them; only the first; or none (section 2 ' +
      'names the field, and does not say that it is always there)',
    values: ['all', 'first', 'none'],
  },
  'creation-status': { about: 'the status of a successful creation', values: ['201', '200'] },
  'creation-envelope': {
    about:
      'the body of the answer to a creation: the link with its secret, the secret beside the link, the link alone ' +
      'as the body, or all of it under data',
    values: ['in-link', 'beside-link', 'bare', 'in-data'],
  },
  'creation-secret': {
    about:
      "the webhookSecret in the answer to a creation: the given one; the service's own, which it then signs " +
      "with; the given one, masked; the service's own, of 8 characters; or none",
    values: ['given', 'own', 'masked', 'short', 'none'],
  },
  'error-body': {
    about:
      'the body of an error: an object with code, message and field; a sentence under error; a sentence under ' +
      'message; a list errors of fields and messages; a title and a detail; nothing; or a page of HTML',
    values: ['object', 'error-text', 'message', 'errors', 'detail', 'empty', 'html'],
  },
  'is-active': {
    about: 'isActive: "true while not expired" (section 2), or true while the status is ACTIVE',
    values: ['not-expired', 'status-active'],
  },
  'rate-reset': {
    about: 'X-RateLimit-Reset: seconds from now, epoch seconds or milliseconds; or none of these headers',
    values: ['seconds', 'epoch', 'epoch-ms', 'none'],
  },
  timestamps: {
    about: "whether deliveries are stamped with the sandbox's time, or with real time even after its clock was turned",
    values: ['sandbox', 'true'],
  },
} as const;

type SwitchName = keyof typeof SWITCHES;
export type Switches = { readonly [Name in SwitchName]: (typeof SWITCHES)[Name]['values'][number] };

export const DEFAULT_SWITCHES = Object.fromEntries(
  Object.entries(SWITCHES).map(([name, { values }]) => [name, values[0]]),
) as unknown as Switches;

/** A sandbox of a program's own: on a free port of loopback, in memory, as the service is by default. */
export const PRIVATE_SANDBOX: SandboxOptions = {
  environment: 'production',
  listen: { host: '127.0.0.1', port: 0 },
  allowRemote: false,
  data: null,
  apiKey: null,
  seed: null,
  timeScale: 1,
  headerPrefix: 'x-service',
  switches: DEFAULT_SWITCHES,
  rateLimit: 60,
  merchantInactive: false,
};

/** Reads `name=value` pairs over `before`. Throws `UnknownName` with the known names or values. */
export function readSwitches(pairs: readonly string[], before: Switches = DEFAULT_SWITCHES): Switches {
  const read: Record<string, string> = { ...before };
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    if (!Object.hasOwn(SWITCHES, name)) {
      throw new UnknownName('switch', name, Object.keys(SWITCHES));
    }
    const { values } = SWITCHES[name as SwitchName];
    if (!values.some((known) => known === value)) throw new UnknownName(`value of ${name}`, value, values);
    read[name] = value;
  }
  return read as unknown as Switches;
}
