import { createHash } from 'node:crypto';
import { parseBodyExactly } from '../src/json.ts';
import { readEvent } from '../src/paylink/events.ts';
import type { ClaimRef, SettleJob } from '../src/store/verbs/inbox.ts';
import type { Delivery } from '../src/store/verbs/intake.ts';
import type { Registration } from '../src/store/verbs/links.ts';
import { paymentEvent } from '../test/support/deliveries.ts';
import { chanceOf } from './harness/chance.ts';

/**
 * The orders, links and events of the proof. Number n is always the same one, and has key n in the database. So three
 * numbers describe the whole content of a database.
 */
export type Progress = {
  /** Orders with their links: 1 to this. */
  links: number;
  /** Events recorded. */
  events: number;
  /** Events settled, in the order in which they were recorded. */
  settled: number;
};

export const NOTHING: Progress = { links: 0, events: 0, settled: 0 };

export function isSame(one: Progress, other: Progress): boolean {
  return one.links === other.links && one.events === other.events && one.settled === other.settled;
}

export function inWords({ links, events, settled }: Progress): string {
  return `${links} links, ${events} events, ${settled} settled`;
}

const START_MS = 1_700_000_000_000;

/** Four links get five events: the first link is pending before it is paid. */
const EVENTS = [
  { link: 1, kind: 'pending' },
  { link: 2, kind: 'completed' },
  { link: 1, kind: 'completed' },
  { link: 3, kind: 'completed' },
  { link: 4, kind: 'completed' },
] as const;

export type ProvedEvent = { number: number; link: number; kind: 'pending' | 'completed'; body: Buffer };

export function eventNumber(number: number): ProvedEvent {
  const { link: among, kind } = EVENTS[(number - 1) % EVENTS.length] as (typeof EVENTS)[number];
  const link = Math.floor((number - 1) / EVENTS.length) * 4 + among;
  return { number, link, kind, body: bodyOf(number, link, kind.toUpperCase()) };
}

/** How many links the first `events` events are about. */
export function linksOfEvents(events: number): number {
  return Math.ceil(events / EVENTS.length) * 4;
}

/** Most bodies have some hundred bytes; some fill several pages. */
function bodyOf(number: number, link: number, status: string): Buffer {
  const chance = chanceOf(number, 7);
  const length = chance.oneIn(25) ? chance.between(4_000, 12_000) : chance.between(300, 900);
  const named = { id: `evt_${number}`, linkId: linkIdOf(link), paymentId: `pay_${link}`, status };
  const event = JSON.parse(paymentEvent({ ...named, amount: (amountOf(link) / 100).toFixed(2) }));
  let padding = '';
  while (padding.length < length) padding += chance.below(2 ** 32).toString(36);
  return Buffer.from(JSON.stringify({ ...event, padding }));
}

export function referenceOf(link: number): string {
  return `order-${link}`;
}

export function amountOf(link: number): number {
  return 10_000 + link;
}

export function deliveryOf({ number, link, body }: ProvedEvent): Delivery {
  const receivedAtMs = START_MS + number;
  return {
    linkKey: link,
    eventId: `evt_${number}`,
    bodySha256: sha256(body),
    body,
    timestamp: String(receivedAtMs),
    mac: sha256(`mac ${number}`),
    type: 'payment_link.payment_status_changed',
    readable: true,
    isPaymentId: false,
    receivedAtMs,
  };
}

/** @param keyId the key under which the database keeps its secrets */
export function registrationOf(link: number, keyId: string): Registration {
  return {
    by: null,
    reference: referenceOf(link),
    amount: { amountMinor: amountOf(link), currency: 'BRL' },
    // Some links get their id from their first event.
    linkId: link % 3 === 0 ? null : linkIdOf(link),
    token: sha256(`token ${link}`).toString('base64url'),
    secret: null,
    freshSecret: { sealed: sha256(`sealed ${link}`), keyId, fingerprint: sha256(`secret ${link}`) },
    mayCorrect: true,
    atMs: START_MS + link,
  };
}

export function settleJobOf({ eventKey, attempt }: ClaimRef): SettleJob {
  const reading = readEvent(parseBodyExactly(eventNumber(eventKey).body));
  return { eventKey, attempt, ...reading, policy: { asks: 'never' }, nowMs: START_MS + 1_000_000 + eventKey };
}

function linkIdOf(link: number): string {
  return `plink_${link}`;
}

function sha256(bytes: Buffer | string): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Later than everything recorded, so that all of it is due. */
export const CLAIM_AT_MS = START_MS + 100_000_000;
