/** What to do about values that settled does not read, each the beginning of a sentence. */
const ASK = 'Ask the operator of the service';
const REPORT = 'Report it to the makers of settled, with the recording';
const REFUSED = `settled refuses every delivery. ${REPORT}`;
const UNREAD = `settled does not understand such events, and asks the API instead. ${REPORT}`;
const SECRET = `${ASK} to sign with the secret given, or with one of at least 16 characters`;
const OTHER = `settled withholds links of another one. ${ASK} to keep it`;
const SHORT = 'The service refuses or changes such ones. Let the shop use at most 64 characters';
const PLAIN = 'The service refuses or changes such ones. Let the shop use letters, digits, "-" and "_"';
const ELSEWHERE = `settled takes such a link for another's. ${ASK} why it shows this address`;
const MONEY = `It is not what was asked, so settled withholds each link. ${ASK} what it means`;
const CURRENCY = `settled withholds links of another one than SETTLED_CURRENCY, and may hold payments without one. ${ASK}`;
const DETAILS = `settled cannot ask whether a link is paid. ${ASK} where its payments are`;
const LIST = `settled cannot find a link if the answer to its creation was lost. ${REPORT}`;
const NO_JSON = "settled takes such an answer for a proxy's, and asks again. Find what answers there";
const PREFIX = 'Set SETTLED_HEADER_PREFIX to this, and restart settled';
const WHY = '`settled rejections` and `settled doctor` say why it is refused';
const FORMS =
  'hex-upper base64 base64url base64-unpadded sha256=hex sha256=base64 SHA256=hex sha256:hex hmac-sha256=hex v1=hex v1,base64 t=,v1=hex';

/** How any signature that settled has read is written: more forms than a table has room for. */
const IS_FORM = /(?:^|[=:,])(?:hex|hex-upper|base64|base64url|base64-unpadded)$/;

/**
 * Its words, the value that settled expects, the others that it reads as well, and what to do about any other. `reads`: which
 * values it reads beside those that are listed.
 */
type Gap = readonly [about: string, expected: string | null, handled: string, advice: string, reads?: RegExp];

/**
 * What the service's specification leaves open, as a first contact sees it. Each has the name and the values of the
 * sandbox's switch for it, so that the sandbox can play what was found; a test holds them equal. The configuration says the
 * expected value if it is null here.
 */
export const GAPS = {
  'creation-status': ['status of a creation', '201', '200 202', REPORT],
  'creation-envelope': ['body of a creation', 'in-link', 'beside-link bare in-data', REPORT],
  'creation-secret': ['webhookSecret', 'given', 'own masked none', SECRET],
  reference: ['externalReference', 'as-given', 'none', OTHER],
  'longest-reference': ['a reference of 128 characters', 'as-given', 'none', SHORT],
  'oddest-reference': ['a reference with odd characters', 'as-given', 'none', PLAIN],
  'webhook-url': ['webhookUrl', 'as-given', 'slash capitals none other', ELSEWHERE],
  numbers: ['amount', 'decimals', 'doubles text', MONEY],
  currency: ['currency', null, '', CURRENCY],
  expiry: ['expiresAt', 'as-given', 'none other', REPORT],
  details: ["a link's details", 'whole', '', DETAILS],
  'payment-ids': ['ids of payments', 'all', 'first none', REPORT],
  'total-brl': ['totalBRL', 'number', 'text none', REPORT],
  list: ['list by reference', 'filtered', 'unfiltered refused', LIST],
  'error-body': ['body of an error', 'object', 'error-text message errors detail other', NO_JSON],
  'rate-reset': ['X-RateLimit-Reset', 'seconds', 'epoch epoch-ms none other', REPORT],
  deliveries: ['deliveries', 'sent', 'early', WHY],
  method: ['method of a delivery', 'POST', '', `settled takes POST alone. ${ASK}`],
  'header-prefix': ['prefix of its headers', null, '', PREFIX],
  'timestamp-unit': ['unit of its timestamp', 'ms', '', REFUSED],
  signature: ['form of its signature', 'hex', FORMS, REFUSED, IS_FORM],
  signed: ['what is signed', 'timestamp.body', '', WHY],
  wrapping: ['wrapper of an event', 'none', 'data.object event resource list data-as-text text snake_case', UNREAD],
  envelope: ['place of its parts', 'data', 'payload flat bare ids', UNREAD],
  'type-name': ['name of its type', 'type', 'event eventType kind', UNREAD],
  'event-ids': ['id of an event', 'own', 'payment link none', REPORT],
} as const satisfies Record<string, Gap>;

export type GapName = keyof typeof GAPS;
const GAP_NAMES = Object.keys(GAPS) as GapName[];

/** What was found, by gap; one that nothing was seen of is missing. */
export type Shapes = { [Name in GapName]?: string | undefined };

export type GapRow = {
  gap: GapName;
  about: string;
  value: string | null;
  verdict: 'as expected' | 'handled' | 'not handled' | 'not seen';
  advice: string | null;
};

/** A row for each gap. `own`: what the configuration says. */
export function rowsOf(found: Shapes, own: { currency: string; headerPrefix: string }): GapRow[] {
  const configured: Shapes = { currency: own.currency, 'header-prefix': own.headerPrefix };
  return GAP_NAMES.map((gap) => {
    const [about, expected, handled, advice, reads]: Gap = GAPS[gap];
    const value = found[gap] ?? null;
    const isRead = handled.split(' ').some((one) => one === value) || reads?.test(value ?? '') === true;
    const read = isRead ? 'handled' : 'not handled';
    const verdict = value === null ? 'not seen' : value === (expected ?? configured[gap]) ? 'as expected' : read;
    return { gap, about, value, verdict, advice: verdict === 'not handled' ? `${advice}.` : null };
  });
}
