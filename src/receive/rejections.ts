import type { HeaderNames } from '../paylink/events.ts';
import type { LinkCredentials } from '../secrets/credentials.ts';
import type { Store } from '../store/contract.ts';
import type { Rejection } from '../store/verbs/intake.ts';
import type { KeptReason } from '../vocabulary.ts';
import type { Cancel, Clock } from '../work/clock.ts';
import { type Diagnosis, diagnose } from './diagnosis.ts';

/** settled writes a link's rejections for one reason at most this often, and counts them in between. */
const WRITE_EVERY_MS = 1000;
/** The most pairs of link and reason that are counted at once. Further rejections appear only in the metrics. */
const COUNTED_MAX = 10_000;
/** When deliveries of this many links are refused for one reason, settled raises a matter for a person. */
const MATTER_FROM_LINKS = 3;
/** How often settled ends matters that are over. */
const END_EVERY_MS = 60_000;

export type RejectionLog = ReturnType<typeof rejectionLog>;

/** What named the link of a refused delivery: the address's token, or the body, which anyone who knows the id can write. */
export type NamedBy = 'token' | 'body';

type Counted = Pick<Rejection, 'linkKey' | 'reason' | 'count' | 'lastAtMs'> & {
  diagnosis: Diagnosis | null;
  namedBy: NamedBy;
};

/** Keeps the reasons of rejections: after the answer, and so seldom that a flood does not reach the disk. */
export function rejectionLog(options: {
  store: Pick<Store, 'recordRejection' | 'endRefusals'>;
  clock: Clock;
  /** `count`: how many rejections could not be stored. */
  onFailed: (error: unknown, count: number) => void;
}) {
  const { store, clock, onFailed } = options;
  const counted = new Map<string, Counted>();
  const mayDiagnose = diagnosisLimit(clock);

  async function write(key: string): Promise<void> {
    const rejection = counted.get(key);
    if (rejection === undefined || rejection.count === 0) {
      counted.delete(key);
      return;
    }
    counted.set(key, { ...rejection, count: 0, diagnosis: null, namedBy: 'body' });
    clock.after(WRITE_EVERY_MS, () => void write(key));
    try {
      await store.recordRejection(asWritten(rejection));
    } catch (error) {
      countAgain(key, rejection);
      onFailed(error, rejection.count);
    }
  }

  function asWritten({ diagnosis, namedBy, ...rejection }: Counted): Rejection {
    // Either the setting is wrong for every link, or the names are invented: anyone who knows an address can send any.
    const atFirst = diagnosis?.code === 'other_header_names' && diagnosis.prefix !== null;
    const written = { ...rejection, diagnosis: diagnosis === null ? null : JSON.stringify(diagnosis) };
    if (namedBy === 'body') return { ...written, asks: false };
    return { ...written, matter: { fromLinks: MATTER_FROM_LINKS, ...(atFirst ? { atFirst } : {}) } };
  }

  /** Adds the counts of a failed write to the next one, which also queues the link's check. */
  function countAgain(key: string, rejection: Counted): void {
    const since = counted.get(key);
    if (since === undefined) clock.after(WRITE_EVERY_MS, () => void write(key));
    const diagnosis = since?.diagnosis ?? rejection.diagnosis;
    const namedBy = since?.namedBy === 'token' ? 'token' : rejection.namedBy;
    counted.set(key, { ...rejection, ...since, diagnosis, namedBy, count: rejection.count + (since?.count ?? 0) });
  }

  /** Null if the search fails: the rejection is then counted without a diagnosis. */
  function diagnosed(find: () => Diagnosis | null): Diagnosis | null {
    try {
      return find();
    } catch (error) {
      onFailed(error, 1);
      return null;
    }
  }

  return {
    /** Counts a rejection. Calls `find` at once, but limits how often: a flood must not cost much. */
    add: (
      linkKey: number,
      reason: KeptReason,
      { find, namedBy = 'token' }: { find?: (() => Diagnosis | null) | undefined; namedBy?: NamedBy } = {},
    ): void => {
      const key = `${linkKey} ${reason}`;
      const before = counted.get(key);
      if (before === undefined && counted.size >= COUNTED_MAX) return;
      const diagnosis = find !== undefined && mayDiagnose(key) ? diagnosed(find) : null;
      counted.set(key, {
        ...{ linkKey, reason, count: (before?.count ?? 0) + 1, lastAtMs: clock.nowMs() },
        diagnosis: diagnosis ?? before?.diagnosis ?? null,
        namedBy: before?.namedBy === 'token' ? 'token' : namedBy,
      });
      if (before === undefined) void write(key);
    },
    /** Ends matters that are over, periodically. The heartbeat reports a store that fails. */
    watch: (): Cancel => clock.every(END_EVERY_MS, () => void store.endRefusals(clock.nowMs()).catch(() => {})),
    /** Writes all that is counted, and waits for the writes. */
    flush: async (): Promise<void> => {
      await Promise.all([...counted.keys()].map(write));
    },
  };
}

/** Within this time settled diagnoses one delivery of a link and reason, and `DIAGNOSED_MAX` in all. */
const DIAGNOSED_WITHIN_MS = 10_000;
const DIAGNOSED_MAX = 40;

/**
 * Makes a function that says whether settled may diagnose one more delivery of a link and reason. It must be at once,
 * because settled keeps no bytes of a rejected delivery. It costs as much as many deliveries, so settled does it seldom.
 */
function diagnosisLimit(clock: Pick<Clock, 'monotonicMs'>): (key: string) => boolean {
  const diagnosedAtMs = new Map<string, number>();
  return (key) => {
    const nowMs = clock.monotonicMs();
    for (const [one, atMs] of diagnosedAtMs) if (nowMs - atMs >= DIAGNOSED_WITHIN_MS) diagnosedAtMs.delete(one);
    if (diagnosedAtMs.has(key) || diagnosedAtMs.size >= DIAGNOSED_MAX) return false;
    diagnosedAtMs.set(key, nowMs);
    return true;
  };
}

/** The reasons that a search through the causes may explain. */
const SEARCHED: ReadonlySet<KeptReason> = new Set(['signature_malformed', 'timestamp_malformed', 'signature_wrong']);

type RefusedDelivery = {
  rawHeaders: readonly string[];
  headerNames: HeaderNames;
  body: Buffer;
  credentials: LinkCredentials;
  reason: KeptReason;
  nowMs: number;
  toleranceSeconds: number;
};

/** Diagnoses a rejected delivery; null if its reason says everything. */
export function diagnoseRefused(refused: RefusedDelivery): Diagnosis | null {
  const { rawHeaders, headerNames, reason } = refused;
  if (reason === 'signature_missing' || reason === 'timestamp_missing')
    return otherHeaderNames(rawHeaders, headerNames);
  if (!SEARCHED.has(reason)) return null;
  const [signature, timestamp] = [headerNames.signature, headerNames.timestamp].map(
    (name) => rawHeaders[rawHeaders.findIndex((one, at) => at % 2 === 0 && one.toLowerCase() === name) + 1],
  );
  if (signature === undefined || timestamp === undefined) return null;
  const { secret, serviceSecret } = refused.credentials;
  const secrets = [secret, ...(serviceSecret === undefined ? [] : [serviceSecret()])];
  return diagnose({ ...refused, signature, timestamp, secrets });
}

const NAMES_MAX = 8;
/** A person pastes these names into a shell, so other characters, which header names may have, are not shown. */
const NAME = /^[a-z0-9_-]{1,64}$/;
const LOOKS_LIKE = /signature|timestamp|hmac|digest|(?:^|[-_])(?:sig|sign|signed|time|date-?time|ts|mac)(?:$|[-_])/;

/** The names, never the values, of headers that look like a signature or a timestamp; null if there are none. */
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

/** Diagnoses a request that was refused before its body was read. */
export function diagnoseUnread(
  request: { method?: string | undefined; headers: Readonly<Record<string, string | string[] | undefined>> },
  reason: KeptReason,
): Diagnosis | null {
  if (reason === 'wrong_address') return null;
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
