import { createHash } from 'node:crypto';
import { parseBody } from '../json.ts';
import type { Log } from '../observe/log.ts';
import { deliveryMac, type HeaderNames, readEnvelope } from '../paylink/events.ts';
import type { Credentials, LinkCredentials } from '../secrets/credentials.ts';
import type { Store } from '../store/contract.ts';
import type { Recorded } from '../store/verbs/intake.ts';
import type { KeptReason } from '../vocabulary.ts';
import type { Clock } from '../work/clock.ts';
import { ANSWERS, type HookAnswer } from './answers.ts';
import type { Diagnosis } from './diagnosis.ts';
import { diagnoseRefused } from './rejections.ts';
import { type Authentic, isFresh, type Verified, verify, writtenAs } from './verify.ts';

/**
 * How a delivery ended, for the metrics. `rejected`: not authentic; `refused`: settled is stopping; `shed`: no room for
 * the body; `aborted`: the sender disconnected; `failed`: the store did not record it; `probe`: from `doctor`.
 */
export const DELIVERY_OUTCOMES = [
  'recorded',
  'duplicate',
  'conflict',
  'unreadable',
  'stale',
  'rejected',
  'unknown_link',
  'too_large',
  'encoded',
  'other_method',
  'aborted',
  'refused',
  'shed',
  'failed',
  'probe',
] as const;
type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number];

export type DeliveryOptions = {
  store: Pick<Store, 'recordDelivery' | 'recordHint'>;
  credentials: Credentials;
  clock: Clock;
  log: Log;
  toleranceSeconds: number;
  headerNames: HeaderNames;
  /** Called after settled recorded a delivery, to wake the settler. */
  onRecorded: () => void;
};

export type Received = {
  rawHeaders: readonly string[];
  body: Buffer;
  /** Null if the delivery names no known link. */
  link: LinkCredentials | null;
  /** When the headers arrived. Freshness is measured then, so that a slow body does not make a delivery stale. */
  headersAtMs: number;
};

export type EndedDelivery = {
  answer: HookAnswer;
  outcome: DeliveryOutcome;
  /** Work to do once the answer is sent. */
  afterwards?: () => void;
  /** The link that the delivery was signed for, or that it names: for the log and those who follow it. */
  link?: { readonly linkKey: number; readonly reference: string };
  recorded?: Recorded;
  /** How its signature was written: for those who follow. */
  signedAs?: () => string;
  type?: string | null;
  /** Why settled refused it before reading its signature. */
  unread?: KeptReason;
  /** Why the delivery is not authentic. */
  reason?: KeptReason;
  diagnose?: () => Diagnosis | null;
  /** The fault that kept settled from recording it. */
  fault?: unknown;
};

/** For a delivery of an unknown link settled computes a dummy HMAC with this, so that both cases take the same time. */
const DUMMY_SECRET = 'no link has this signing secret';

/**
 * Verifies a delivery whose body was read, and records it. A 2xx means that it is on the disk. Throws if the store
 * cannot record it; the caller must then not acknowledge it.
 */
export async function takeDelivery(options: DeliveryOptions, received: Received): Promise<EndedDelivery> {
  const { headerNames, toleranceSeconds } = options;
  const { rawHeaders, body, link: named, headersAtMs } = received;
  if (named === null) {
    deliveryMac(DUMMY_SECRET, String(headersAtMs), body);
    return { answer: ANSWERS.unauthorized, outcome: 'unknown_link' };
  }
  const { verified, link } = await verifyNow(options, { rawHeaders, headerNames, body, credentials: named });
  if (!verified.ok) {
    const { reason } = verified;
    const rejected = { answer: ANSWERS.unauthorized, outcome: 'rejected', reason } as const;
    if (link.isProbe === true) return rejected;
    const refused = { rawHeaders, headerNames, body, nowMs: headersAtMs, toleranceSeconds, credentials: link, reason };
    return { ...rejected, link, diagnose: () => diagnoseRefused(refused) };
  }
  const { authentic } = verified;
  if (link.isProbe === true) return { answer: ANSWERS.recorded, outcome: 'probe' };
  return isFresh({ timestampMs: authentic.timestampMs, nowMs: headersAtMs, toleranceSeconds })
    ? record(options, authentic, body, link)
    : recordHint(options, authentic, body, link);
}

/**
 * Verifies with the cached credentials. If the service may have named another secret since they were cached, verifies
 * again with those of the store.
 */
async function verifyNow(
  { credentials }: DeliveryOptions,
  delivery: Parameters<typeof verify>[0] & { credentials: LinkCredentials },
): Promise<{ verified: Verified; link: LinkCredentials }> {
  const { credentials: known } = delivery;
  const verified = verify(delivery);
  if (verified.ok || verified.reason !== 'signature_wrong' || known.isProvisional !== true)
    return { verified, link: known };
  const link = await credentials.find({ token: known.token });
  if (link?.serviceSecret === undefined) return { verified, link: known };
  return { verified: verify({ ...delivery, credentials: link }), link };
}

async function record(
  { store, clock, log, onRecorded }: DeliveryOptions,
  { timestamp, mac, signature }: Authentic,
  body: Buffer,
  link: LinkCredentials,
): Promise<EndedDelivery> {
  const { readable, type, eventId, bodySha256, isPaymentId } = identify(body, link);
  const { linkKey, reference } = link;
  const receivedAtMs = clock.nowMs();
  const delivery = { linkKey, eventId, bodySha256, body, timestamp, mac, type, readable, isPaymentId, receivedAtMs };
  const recorded = await store.recordDelivery(delivery);
  const { outcome, eventKey } = recorded;
  if (outcome === 'conflict' && !isPaymentId) {
    log.warn({ order: reference, event: eventKey }, 'an event id came twice with different contents');
  }
  return {
    answer: outcome === 'duplicate' ? ANSWERS.duplicate : readable ? ANSWERS.recorded : ANSWERS.unreadable,
    outcome: outcome === 'duplicate' || readable ? outcome : 'unreadable',
    afterwards: onRecorded,
    link,
    recorded,
    signedAs: () => writtenAs(signature, timestamp),
    type,
  };
}

/** Keeps a stale delivery as a hint to ask the service. A stale delivery settles nothing. */
async function recordHint(
  { store, clock }: DeliveryOptions,
  { timestamp }: Authentic,
  body: Buffer,
  link: LinkCredentials,
): Promise<EndedDelivery> {
  const { type, eventId, bodySha256 } = identify(body, link);
  const { linkKey } = link;
  await store.recordHint({ linkKey, eventId, bodySha256, body, timestamp, receivedAtMs: clock.nowMs() });
  return { answer: ANSWERS.stale, outcome: 'stale', link, type };
}

type Identity = { readable: boolean; type: string | null; eventId: string; bodySha256: Buffer; isPaymentId: boolean };

/** The event id, or a digest of the body if the event has none. The signature covers both. */
function identify(body: Buffer, { linkId = null }: LinkCredentials): Identity {
  const parsed = parseBody(body);
  const { type, eventId: own, isPaymentId } = readEnvelope(parsed, { linkId });
  const bodySha256 = createHash('sha256').update(body).digest();
  const eventId = own ?? `sha256:${bodySha256.toString('hex')}`;
  return { readable: parsed !== undefined, type, eventId, bodySha256, isPaymentId };
}
