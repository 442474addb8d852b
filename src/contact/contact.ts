import type { ServerApi } from '../cli/connection.ts';
import { formatAmount, type Money, parseAmount } from '../domain/money.ts';
import { secretFlaw } from '../links/service_secret.ts';
import { readDetails, readProfile } from '../paylink/answers.ts';
import { creation, get, list, request } from '../paylink/client.ts';
import { type LinkMade, type NewLink, type Profile, type Reply, type ServiceFault, send } from '../paylink/service.ts';
import { judge, type ServiceCall, type Verdict } from '../paylink/verdict.ts';
import type { Clock } from '../work/clock.ts';
import type { GapName, Shapes } from './gaps.ts';
import type { Seen } from './recording.ts';
import {
  type Asked,
  ofCreation,
  ofDetails,
  ofError,
  ofEvent,
  ofList,
  ofRate,
  ofRejection,
  type Rejected,
} from './shapes.ts';

/**
 * The steps of a first contact with the service. What its API answers is looked at here, as it came. What it delivers goes to
 * the running server, which verifies and records it as any other delivery, and is read from there.
 */
export type Contact = {
  url: string;
  key: string;
  /** As the configuration has them. */
  currency: string;
  headerPrefix: string;
  server: ServerApi;
  clock: Clock;
  found: Shapes;
  seen: Seen[];
};

/** More than this is asked for a link (spec §8). */
const AMOUNT_ABOVE = '25';
/** The link that is left over can be paid no longer than this. */
const LIFETIME_MS = 86_400_000;
const DEADLINE_MS = 10_000;
const LOOK_EVERY_MS = 250;
/** Some things show a moment late: a link just made, how a delivery was signed, one accepted after refused ones. */
const LATE_LOOKS_MAX = 8;
/** The service, or a person, only looks with these whether the address is there. */
const PROBES: ReadonlySet<unknown> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Faults that pass, and show no shape of the service. */
const IS_PASSING = /^service_(?:failed|rate_limited|timeout|unreachable)$/;
const HEADERS = ['content-type', 'retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

/** The least amount that a link may have. */
export function leastAmount(currency: string): Money {
  const above = parseAmount(AMOUNT_ABOVE, currency);
  if (!above.ok) throw new Error(`no amount is above ${AMOUNT_ABOVE} ${currency}`);
  return { amountMinor: above.amountMinor + 1, currency };
}

/** Asks who the merchant is. Faults of this and of the other steps: `ServiceFault`, and those of the server. */
export async function greet(contact: Contact): Promise<Profile> {
  return must(await hear(contact, { ...get('/merchant/profile'), read: readProfile }));
}

export type FirstLink = { id: string; url: string | null; asked: Asked; tail: Tail };

/**
 * Makes the order and the link of this reference. If the service refuses, the order is cancelled.
 * @param gap of which the link is read back for its reference alone; null for the link that everything is looked at
 */
export async function openLink(contact: Contact, reference: string, gap: GapName | null): Promise<FirstLink | null> {
  const { server, currency, clock, found } = contact;
  const order = { reference, amount: formatAmount(leastAmount(currency)), currency };
  const { link } = await server.post<{ link: GivenLink }>('/v1/links', order);
  const tail = gap === null ? await followOrder(server, reference) : null;
  const asked = { ...newLink(link, order, clock.nowMs() + LIFETIME_MS), currency };
  const made = await create(contact, asked).catch(async (fault: ServiceFault) => {
    fault.message += ` ${await endOrder(server, reference, fault)}`;
    if (gap === null || fault.code !== 'service_refused') throw fault;
    found[gap] = 'refused';
    return null;
  });
  if (made === null) return null;
  const { reply, value } = made;
  const created = ofCreation(reply, asked);
  const webhookSecret = value.webhookSecrets.find((one) => secretFlaw(one) === null);
  await server.post('/v1/links', { ...order, id: value.id, webhookSecret }).catch((fault: Error) => {
    fault.message += ` Link ${value.id} of order ${reference} stays at the service, and expires within a day. `;
    fault.message += `To cancel the order later: settled orders cancel '${reference}'`;
    throw fault;
  });
  if (tail !== null) {
    Object.assign(found, created, ofRate(reply));
    return { id: value.id, url: value.url, asked, tail };
  }
  if (gap !== null) found[gap] = (await readBack(contact, value.id, asked)).reference ?? created.reference ?? 'none';
  return null;
}

async function readBack(contact: Contact, id: string, asked: Asked): Promise<Shapes> {
  for (let looksLeft = LATE_LOOKS_MAX; ; looksLeft--) {
    const { reply } = await hear(contact, detailsOf(id));
    if (reply.status !== 404 || looksLeft === 0) return ofDetails(reply, asked);
    await pause(contact);
  }
}

function pause({ clock }: Contact): Promise<void> {
  return new Promise((resolve) => void clock.after(LOOK_EVERY_MS, resolve));
}

/** Cancels an order of which the service surely has no link. Says what became of it, and what to do. */
async function endOrder(server: ServerApi, reference: string, { mayHaveArrived }: ServiceFault): Promise<string> {
  const later = `To cancel it later: settled orders cancel '${reference}'`;
  const stays = `Order ${reference} stays in settled`;
  if (mayHaveArrived) return `${stays}; the service may have made its link, which expires within a day. ${later}`;
  return server.post(`/v1/orders/${encodeURIComponent(reference)}/cancel`).then(
    () => `No link was made, and order ${reference} is cancelled.`,
    (error: Error) => `No link was made. ${stays}: ${error.message} ${later}`,
  );
}

type GivenLink = { webhookUrl: string; webhookSecret: string };
type Order = { reference: string; amount: string };

/** With every field that settled may send, but for a callbackUrl: nobody is to come back. */
function newLink({ webhookUrl, webhookSecret }: GivenLink, { reference, amount }: Order, expiresAtMs: number): NewLink {
  return {
    title: 'Test of settled: please do not pay',
    description: 'The first contact of settled with this service. The link expires within a day.',
    amount,
    externalReference: reference,
    expiresAt: new Date(expiresAtMs).toISOString(),
    metadata: { purpose: 'first contact of settled' },
    webhookUrl,
    webhookSecret,
    callbackUrl: null,
  };
}

async function create(contact: Contact, { currency: _, ...link }: Asked): Promise<{ reply: Reply; value: LinkMade }> {
  const heard = await hear(contact, creation(link));
  return { ...heard, value: must(heard) };
}

function detailsOf(id: string): ServiceCall<unknown> {
  const path = `/payment-links/${encodeURIComponent(id)}`;
  return { ...get('/payment-links/{id}'), path, of: 'link', read: readDetails };
}

/** Asks what leaves no trace: for the link, for those of a reference that none has, and for one that is not there. */
export async function askMore(contact: Contact, { asked, id }: FirstLink): Promise<void> {
  Object.assign(contact.found, await readBack(contact, id, asked));
  const nobodys = encodeURIComponent(`${asked.externalReference}-none`);
  const listed = await hear(contact, list(`externalReference=${nobodys}`));
  const missing = await hear(contact, detailsOf(`${id}-none`));
  Object.assign(contact.found, ofList(listed.reply), ofError(missing.reply));
}

type EventRow = { id: string; type: string | null; reading: number | null; bodyText: string | null };
type Come = { hasCome: boolean; isPayment: boolean; isNamed: boolean };

/** Waits for deliveries to a link; if `forPayment`, for one about a payment. Then reads the link once more. */
export async function awaitDeliveries(
  contact: Contact,
  opened: FirstLink,
  { waitMs, forPayment }: { waitMs: number; forPayment: boolean },
): Promise<void> {
  const { clock, found } = contact;
  const untilMs = clock.monotonicMs() + waitMs;
  let looksLeft = LATE_LOOKS_MAX;
  for (;;) {
    const come = await lookAtDeliveries(contact, opened);
    const isEnough = come.hasCome && (come.isPayment || !forPayment);
    if (isEnough && (come.isNamed || looksLeft-- === 0)) break;
    if (clock.monotonicMs() >= untilMs) break;
    await pause(contact);
  }
  opened.tail.stop.abort();
  if (!forPayment) return;
  Object.assign(found, await readBack(contact, opened.id, opened.asked));
}

/**
 * `isPayment`: whether one is about a payment; `isNamed`: whether the tail has said how its signature was written. Nothing more
 * is waited for if all were refused.
 */
async function lookAtDeliveries(contact: Contact, { id, asked, tail }: FirstLink): Promise<Come> {
  const { server, found, seen, headerPrefix } = contact;
  const reference = asked.externalReference;
  const { events } = await server.get<{ events: EventRow[] }>('/v1/events', { reference, limit: 50 });
  const { rejections } = await server.get<{ rejections: Rejected[] }>('/v1/rejections', { reference });
  // One that came before the service's own secret was known comes again.
  const isEarly = ({ reason }: Rejected) => reason === 'signature_wrong' && found['creation-secret'] === 'own';
  const refused = rejections.filter((one) => !isEarly(one) && !PROBES.has(one.diagnosis?.details.method));
  const deliveries = events.filter(({ reading }) => reading === null).reverse();
  // Refused ones say something only if none was accepted.
  if (deliveries.length === 0) {
    for (const one of refused) Object.assign(found, ofRejection(one, headerPrefix));
    if (rejections.some(isEarly)) found.deliveries = 'early';
    // One that settled does not take says nothing of what is signed.
    if (found['creation-secret'] === 'short') found.signed = undefined;
    if (tail.isStale) found.deliveries = 'stale';
  }
  for (const { id: event } of deliveries) {
    if (seen.some(({ what }) => what === `event ${event}`)) continue;
    const { event: row } = await server.get<{ event: EventRow }>(`/v1/events/${event}`);
    seen.push({ what: `event ${event}`, body: row.bodyText ?? '' });
    // The tail says how its signature is written.
    Object.assign(found, ACCEPTED, { 'header-prefix': headerPrefix, signature: undefined });
    const shape = ofEvent(row.bodyText ?? '', id);
    // An event about a payment says the most.
    Object.assign(found, isOfPayment(row) ? shape : { ...shape, ...found });
  }
  const named = deliveries.flatMap(({ id: event }) => tail.signedAs.get(event) ?? []);
  // One in base64url alone may lack a digit that tells it from base64.
  const signedAs = named.find((form) => form.endsWith('base64url')) ?? named.at(-1);
  if (signedAs !== undefined) found.signature = signedAs;
  return {
    hasCome: refused.length + deliveries.length > 0 || tail.isStale,
    isPayment: deliveries.length === 0 || deliveries.some(isOfPayment),
    isNamed: tail.signedAs.has(deliveries.at(-1)?.id ?? ''),
  };
}

function isOfPayment({ type }: EventRow): boolean {
  return type?.includes('payment_status') === true;
}

/** What an accepted delivery shows by itself. */
const ACCEPTED: Shapes = { deliveries: 'sent', method: 'POST', 'timestamp-unit': 'ms', signed: 'timestamp.body' };

/** `isStale`: whether a delivery was refused because of its time, which no list of the server has. */
type Tail = { signedAs: Map<string, string>; isStale: boolean; stop: AbortController };
type Line = { what: string; event?: string; signedAs?: string };

/** Follows what happens to an order. Resolves once the server follows it too. */
async function followOrder(server: ServerApi, reference: string): Promise<Tail> {
  const tail: Tail = { signedAs: new Map(), isStale: false, stop: new AbortController() };
  const lines = server.followObjects<Line>('/v1/tail', { reference }, tail.stop.signal);
  await lines.next();
  const read = async () => {
    for await (const { what, event, signedAs } of lines) {
      if (event !== undefined && signedAs !== undefined) tail.signedAs.set(event, signedAs);
      if (what === 'stale') tail.isStale = true;
    }
  };
  // Without it the deliveries are still known, but for how they were signed.
  read().catch(() => {});
  return tail;
}

type Heard<T> = { reply: Reply; result: Verdict<T>['result'] };

/** Sends one request, and keeps what came. */
async function hear<T>({ url, key, clock, seen }: Contact, call: ServiceCall<T>): Promise<Heard<T>> {
  const closing = new AbortController().signal;
  const reply = await send({ ...request(url, call, key), deadlineMs: DEADLINE_MS, deadlineClock: clock, closing });
  const headers = HEADERS.flatMap((name) => (reply.headers.has(name) ? [[name, reply.headers.get(name) ?? '']] : []));
  const body = Buffer.from(reply.body).toString();
  if (call.body !== null) seen.push({ what: `${call.name}, sent`, body: call.body });
  seen.push({ what: call.name, status: reply.status, headers: Object.fromEntries(headers), body });
  const secrets = [key, ...call.secrets];
  const { result } = judge({ ...call, secrets }, reply, { as: 'create', nowMs: clock.nowMs() });
  if (!result.ok && IS_PASSING.test(result.fault.code)) throw result.fault;
  return { reply, result };
}

function must<T>({ result }: Heard<T>): T {
  if (result.ok) return result.value;
  throw result.fault;
}
