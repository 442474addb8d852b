import type { HeaderNames } from '../paylink/events.ts';
import type { LinkCredentials } from '../store/credentials.ts';
import type { KeptReason } from '../store/rejections.ts';
import type { Clock } from '../work/clock.ts';
import { type Diagnosis, diagnose } from './diagnosis.ts';

/**
 * Finds out at once what is wrong with a delivery that is refused: its bytes are not kept, so nobody can later. It costs some
 * milliseconds whatever was sent, so few are looked at, and after they were answered.
 */

/** Each link's deliveries of one reason are diagnosed at most this often. */
const SAME_EVERY_MS = 10_000;
/** All that compute codes, together: so many at once, and one more in each of these times. */
const BURST = 10;
const ONE_MORE_MS = 500;
/** Those whose diagnosis computes codes: the others only look at what was sent. */
const COSTLY: ReadonlySet<KeptReason> = new Set(['signature_malformed', 'timestamp_malformed', 'signature_wrong']);
/** Links and reasons whose last diagnosis is remembered. */
const REMEMBERED_MAX = 10_000;

/** Whether one more may be diagnosed, of this link and reason. */
export function diagnosisLimit(clock: Pick<Clock, 'monotonicMs'>): (key: string, reason: KeptReason) => boolean {
  const lastMs = new Map<string, number>();
  let left = BURST;
  let refilledMs = clock.monotonicMs();
  return (key, reason) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - (lastMs.get(key) ?? Number.NEGATIVE_INFINITY) < SAME_EVERY_MS) return false;
    const more = Math.floor((nowMs - refilledMs) / ONE_MORE_MS);
    left = Math.min(BURST, left + more);
    refilledMs = left === BURST ? nowMs : refilledMs + more * ONE_MORE_MS;
    const isCostly = COSTLY.has(reason);
    if (isCostly && left === 0) return false;
    if (isCostly) left--;
    if (lastMs.size >= REMEMBERED_MAX) lastMs.clear();
    lastMs.set(key, nowMs);
    return true;
  };
}

export type Refused = {
  rawHeaders: readonly string[];
  headerNames: HeaderNames;
  body: Buffer;
  credentials: LinkCredentials;
  reason: KeptReason;
  nowMs: number;
  toleranceSeconds: number;
};

/** What a refused delivery turns out to be; null if its reason says all that there is. */
export function diagnoseRefused(refused: Refused): Diagnosis | null {
  const { rawHeaders, headerNames, reason } = refused;
  switch (reason) {
    case 'signature_missing':
    case 'timestamp_missing':
      return otherHeaderNames(rawHeaders, headerNames);
    case 'signature_malformed':
    case 'timestamp_malformed':
    case 'signature_wrong': {
      const [signature, timestamp] = [headerNames.signature, headerNames.timestamp].map(
        (name) => rawHeaders[rawHeaders.findIndex((one, at) => at % 2 === 0 && one.toLowerCase() === name) + 1],
      );
      if (signature === undefined || timestamp === undefined) return null;
      const { body, credentials, nowMs, toleranceSeconds } = refused;
      const { secret, serviceSecret } = credentials;
      const secrets = [secret, ...(serviceSecret === undefined ? [] : [serviceSecret()])];
      return diagnose({ body, signature, timestamp, secrets, nowMs, toleranceSeconds, effort: 'little' });
    }
    default:
      return null;
  }
}

const NAMES_MAX = 8;
/** Header names may hold more, and a person pastes what is shown here into a shell. */
const NAME = /^[a-z0-9_-]{1,64}$/;
const LOOKS_LIKE = /signature|timestamp|hmac|digest|(?:^|[-_])(?:sig|sign|signed|time|date-?time|ts|mac)(?:$|[-_])/;

/** The names of headers that look like a signature or a timestamp, and never what they hold; null if there are none. */
function otherHeaderNames(rawHeaders: readonly string[], wanted: HeaderNames): Diagnosis | null {
  const all = rawHeaders.filter((_text, at) => at % 2 === 0).map((name) => name.toLowerCase());
  const looking = [...new Set(all)].filter((name) => NAME.test(name) && LOOKS_LIKE.test(name));
  const names = looking.filter((name) => name !== wanted.signature && name !== wanted.timestamp);
  if (names.length === 0) return null;
  const prefixes = names
    .map((name) => /^(.+)-signature$/.exec(name)?.[1])
    .filter((prefix) => prefix !== undefined && names.includes(`${prefix}-timestamp`));
  return {
    code: 'other_header_names',
    names: names.slice(0, NAMES_MAX),
    wanted: [wanted.signature, wanted.timestamp],
    prefix: prefixes.length === 1 ? (prefixes[0] ?? null) : null,
  };
}

/** Of a request that was refused before its body was read. */
export function diagnoseUnread(
  request: { method?: string | undefined; headers: Readonly<Record<string, string | string[] | undefined>> },
  reason: KeptReason,
): Diagnosis | null {
  const { method = '', headers } = request;
  if (reason === 'method_not_allowed') {
    const { origin } = headers;
    const isOrigin = typeof origin === 'string' && origin.length <= 100 && URL.parse(origin)?.origin === origin;
    return { code: 'other_method', method: method.slice(0, 16), origin: isOrigin ? origin : null };
  }
  if (reason === 'content_encoding') {
    const encoding = String(headers['content-encoding']).toLowerCase();
    return { code: 'content_encoding', encoding: /^[a-z0-9, -]{1,32}$/.test(encoding) ? encoding : 'another' };
  }
  const bytes = Number(headers['content-length']);
  return { code: 'body_size', bytes: Number.isSafeInteger(bytes) ? bytes : null };
}
