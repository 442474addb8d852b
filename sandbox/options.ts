import type { Environment } from './model.ts';

export const DEFAULT_LISTEN = { host: '127.0.0.1', port: 8790 } as const;

/** As the specification writes the service's brand. */
export const DEFAULT_HEADER_PREFIX = 'x-service';

export type SandboxOptions = {
  environment: Environment;
  listen: { host: string; port: number };
  /** Listening beyond loopback must be asked for: nothing here is protected. */
  allowRemote: boolean;
  /** A file to keep everything in; null for memory. */
  data: string | null;
  /** Null for one that follows from the seed. */
  apiKey: string | null;
  /** Null for a seed of its own. */
  seed: string | null;
  /** How many seconds of the sandbox pass in a real one. */
  timeScale: number;
  /** What the names of a delivery's two headers begin with. */
  headerPrefix: string;
  silences: Silences;
  /** Requests a minute for each API key; null for no limit. */
  rateLimit: number | null;
  /** Whether the merchant is inactive: every call is 403 then (spec section 5). */
  merchantInactive: boolean;
};

/**
 * What the service's specification leaves open, each as a switch with its known positions. The first is the default.
 * sandbox/README.md lists them; a test holds the two together.
 */
export const SILENCES = {
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
    ],
  },
  retries: {
    about: 'whether a retry is signed again with its own timestamp, or carries what the first attempt carried',
    values: ['re-signed', 'signed-once'],
  },
  schedule: {
    about: 'whether 1 min, 5 min, 15 min … are counted from the attempt before, or from the first attempt',
    values: ['delays', 'offsets'],
  },
  'after-last-retry': {
    about: 'what follows the retry after 12 hours: nothing more, or one every 12 hours',
    values: ['give-up', 'repeat-last'],
  },
  envelope: {
    about:
      'where an event keeps its parts: under data, under payload, or at the root; or it is bare: ids, statuses and ' +
      'money; or ids and statuses alone',
    values: ['data', 'payload', 'flat', 'bare', 'ids'],
  },
  wrapping: {
    about:
      'what an event is wrapped in, or how it is written, after the envelope: an object under data, event or resource; a ' +
      'list of one, or of two; data as JSON text, or the whole body; names in snake case, or in no known words; the id of ' +
      'the link for its own; a form in place of JSON',
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
      'whether a refund or a dispute is told by payment_link.payment_status_changed (section 6 does not say so): ' +
      "never; beside paymentStatus COMPLETED, as section 3 counts; or with the payment's own status as paymentStatus",
    values: ['none', 'aggregate', 'own-status'],
  },
  'payment-ids': {
    about:
      'which payments of the details and of events carry an id: all of them; the first alone; or none (section 2 names ' +
      'the field, and does not say that it is always there)',
    values: ['all', 'first', 'none'],
  },
  'creation-status': { about: 'the status of a successful creation', values: ['201', '200'] },
  'creation-envelope': {
    about:
      'the body of a creation: the link with its secret, the secret beside the link, or the link alone as the body',
    values: ['in-link', 'beside-link', 'bare'],
  },
  'creation-secret': {
    about:
      'the webhookSecret of a creation: the one that was given; one of the service, named and signed with all the same; ' +
      'the given one masked; or one of the service of 8 characters',
    values: ['given', 'own', 'masked', 'short'],
  },
  'error-body': {
    about:
      'the body of an error: an object with code, message and field; a sentence under error; one under message; a list ' +
      'errors of fields and messages; or a title and a detail',
    values: ['object', 'error-text', 'message', 'errors', 'detail'],
  },
  'is-active': {
    about: 'isActive: "true while not expired" (section 2), or true while the status is ACTIVE',
    values: ['not-expired', 'status-active'],
  },
  'rate-reset': { about: 'X-RateLimit-Reset: seconds from now, or epoch seconds', values: ['seconds', 'epoch'] },
  timestamps: {
    about: 'whether deliveries are stamped by the clock of the sandbox, or by the true one even where it was turned',
    values: ['sandbox', 'true'],
  },
} as const;

type SilenceName = keyof typeof SILENCES;
export type Silences = { readonly [Name in SilenceName]: (typeof SILENCES)[Name]['values'][number] };

export const DEFAULT_SILENCES = Object.fromEntries(
  Object.entries(SILENCES).map(([name, { values }]) => [name, values[0]]),
) as unknown as Silences;

/** Reads `name=value` pairs over the defaults; throws with the known names or values where one is not known. */
export function readSilences(pairs: readonly string[], before: Silences = DEFAULT_SILENCES): Silences {
  const read: Record<string, string> = { ...before };
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    if (!Object.hasOwn(SILENCES, name)) {
      throw new UnknownName('switch', name, Object.keys(SILENCES));
    }
    const { values } = SILENCES[name as SilenceName];
    if (!values.some((known) => known === value)) throw new UnknownName(`value of ${name}`, value, values);
    read[name] = value;
  }
  return read as unknown as Silences;
}

/** A name that nobody knows, told together with the known ones. */
export class UnknownName extends Error {
  /** @param given of a text it is told as it is, of anything else its type: a foreign value may not become text */
  constructor(what: string, given: unknown, known: readonly string[]) {
    super(`"${typeof given === 'string' ? given : typeof given}" is no ${what}; known: ${known.join(', ')}`);
    this.name = 'UnknownName';
  }
}
