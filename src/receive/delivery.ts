import { createHash } from 'node:crypto';
import { parseBody } from '../json.ts';
import type { Log } from '../observe/log.ts';
import { deliveryMac, type HeaderNames, readEnvelope } from '../paylink/events.ts';
import type { Credentials, LinkCredentials } from '../store/credentials.ts';
import type { KeptReason } from '../store/rejections.ts';
import type { Intake, Recorded } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import { ANSWERS, type Answer } from './answer.ts';
import { type Authentic, type Verified, verify } from './authentic.ts';
import { isFresh } from './freshness.ts';
import { diagnoseRefused } from './refusal.ts';
import type { RejectionLog } from './rejections.ts';

/** How a delivery ended, for the metrics. */
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
  store: Pick<Intake, 'recordDelivery' | 'recordHint'>;
  credentials: Credentials;
  rejections: Pick<RejectionLog, 'add'>;
  clock: Clock;
  log: Log;
  toleranceSeconds: number;
  headerNames: HeaderNames;
  /** Called after each delivery that was recorded, so that settlement can begin. */
  onRecorded: () => void;
};

export type Received = {
  rawHeaders: readonly string[];
  body: Buffer;
  /** Null: the delivery names no link of ours. */
  credentials: LinkCredentials | null;
  /** When the headers arrived: a slow body must not make a delivery stale. */
  headersAtMs: number;
};

/** `afterwards` is what remains to be done once the answer is sent. */
export type Ended = {
  answer: Answer;
  outcome: DeliveryOutcome;
  afterwards?: () => void;
  /** The link that it was signed for, or said to be: what the log and its followers call it. */
  link?: { readonly reference: string };
  /** Where it was recorded. */
  recorded?: Recorded;
  type?: string | null;
  /** Why it was refused. */
  reason?: KeptReason;
  /** What kept it from being recorded. */
  fault?: unknown;
};

/** Its code is compared with nothing: it only takes the time that a real one takes. */
const DUMMY_SECRET = 'no link has this signing secret';

/**
 * Verifies a delivery whose body is read, and records it. Whatever is answered with 2xx is on the disk. Throws where
 * the store cannot record it; then nothing may be acknowledged.
 */
export async function takeDelivery(
  options: DeliveryOptions,
  { rawHeaders, body, credentials, headersAtMs }: Received,
  keepsRejections: boolean,
): Promise<Ended> {
  if (credentials === null) {
    deliveryMac(DUMMY_SECRET, String(headersAtMs), body);
    return { answer: ANSWERS.unauthorized, outcome: 'unknown_link' };
  }
  const isProbe = credentials.isProbe === true;
  const { headerNames } = options;
  const { verified, link } = await verifyNow(options, { rawHeaders, headerNames, body, credentials });
  if (!verified.ok) {
    const { reason } = verified;
    const { toleranceSeconds, rejections } = options;
    const sent = { rawHeaders, headerNames, body, nowMs: headersAtMs, toleranceSeconds };
    const refused = { ...sent, credentials: link, reason };
    const afterwards =
      keepsRejections && !isProbe
        ? () => rejections.add(link.linkKey, reason, () => diagnoseRefused(refused))
        : () => {};
    return { answer: ANSWERS.unauthorized, outcome: 'rejected', afterwards, link, reason };
  }
  const { authentic } = verified;
  if (isProbe) return { answer: ANSWERS.recorded, outcome: 'probe' };
  const { toleranceSeconds } = options;
  if (!isFresh({ timestampMs: authentic.timestampMs, nowMs: headersAtMs, toleranceSeconds })) {
    return keepHint(options, authentic, body, link);
  }
  return record(options, authentic, body, link);
}

/**
 * Verifies with the credentials that are known; if these may lack a secret that the service named meanwhile, with those
 * that the store has now.
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
  { timestamp, mac }: Authentic,
  body: Buffer,
  link: LinkCredentials,
): Promise<Ended> {
  const { readable, type, eventId, bodySha256 } = identify(body, link);
  const recorded = await store.recordDelivery({
    linkKey: link.linkKey,
    eventId,
    bodySha256,
    body,
    timestamp,
    mac,
    type,
    readable,
    receivedAtMs: clock.nowMs(),
  });
  const { outcome, eventKey } = recorded;
  if (outcome === 'conflict')
    log.warn({ order: link.reference, event: eventKey }, 'an event id came twice with different contents');
  return {
    answer: outcome === 'duplicate' ? ANSWERS.duplicate : readable ? ANSWERS.recorded : ANSWERS.unreadable,
    outcome: outcome === 'duplicate' || readable ? outcome : 'unreadable',
    afterwards: onRecorded,
    link,
    recorded,
    type,
  };
}

async function keepHint(
  { store, clock }: DeliveryOptions,
  { timestamp }: Authentic,
  body: Buffer,
  link: LinkCredentials,
): Promise<Ended> {
  const { type, eventId, bodySha256 } = identify(body, link);
  const { linkKey } = link;
  await store.recordHint({ linkKey, eventId, bodySha256, body, timestamp, receivedAtMs: clock.nowMs() });
  return { answer: ANSWERS.stale, outcome: 'stale', link, type };
}

type Identity = { readable: boolean; type: string | null; eventId: string; bodySha256: Buffer };

/** The event's name for itself, or its digest if it has none: both are covered by the signature. */
function identify(body: Buffer, { linkId = null }: LinkCredentials): Identity {
  const parsed = parseBody(body);
  const { type, eventId } = readEnvelope(parsed, { linkId });
  const bodySha256 = createHash('sha256').update(body).digest();
  return {
    readable: parsed !== undefined,
    type,
    eventId: eventId ?? `sha256:${bodySha256.toString('hex')}`,
    bodySha256,
  };
}
