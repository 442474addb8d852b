import { gzipSync } from 'node:zlib';
import type { TurnableClock } from '../clock.ts';
import { type DeliveryFaultName, type FaultPlans, PUTTING_OFF } from '../fault_plans.ts';
import type { Delivery, DrawnFault, Held } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';

/** What one attempt sends. */
export type Shipment = { secret: string; timestamp: string; body: Buffer };

type MischiefOptions = { store: SandboxStore; clock: TurnableClock; faults: FaultPlans };

/**
 * The mischief of the delivery's next attempt. It is drawn once, and kept with the delivery until the attempt is
 * written down: a delay does not draw again when it is over, and neither does a restart.
 */
export function drawMischief(
  delivery: Delivery,
  about: { event: string; link: string },
  { store, faults }: MischiefOptions,
): Held | null {
  if (delivery.held !== null) return delivery.held;
  const plans = faults.forDelivery({ ...about, attempt: delivery.attempts + 1 });
  if (plans.length === 0) return null;
  const held: Held = { faults: plans.map(({ fault, with: takes }) => ({ fault, takes })), postponed: 0, sentBefore: 0 };
  store.updateDelivery({ ...delivery, held });
  return held;
}

/** The faults that put a delivery off, one after the other. */
function puttingOff({ faults }: Held): DrawnFault[] {
  return faults.filter(({ fault }) => PUTTING_OFF.has(fault));
}

/** The fault that has put the delivery off, and, for a reorder, how many later ones of its link go first. */
export function heldBackBy(
  { held, linkNumber, number }: Delivery,
  store: Pick<SandboxStore, 'sentAfter'>,
): { fault: string; left: number | null } | null {
  const reason = held === null ? undefined : puttingOff(held)[held.postponed - 1];
  if (held === null || reason === undefined) return null;
  if (reason.fault === 'delay') return { fault: 'delay', left: null };
  const sent = store.sentAfter(linkNumber, number) - held.sentBefore;
  return { fault: 'reorder', left: Math.max(0, (reason.takes.by as number) - sent) };
}

/**
 * Puts off a delivery that a delay or a reorder is planned for, one after the other.
 *
 * @returns false where nothing (more) puts it off, and its attempt is to be made
 */
export function postpone(delivery: Delivery, held: Held | null, { store, clock }: MischiefOptions): boolean {
  const reason = held === null ? undefined : puttingOff(held)[held.postponed];
  if (held === null || reason === undefined) return false;
  const { linkNumber, number } = delivery;
  store.updateDelivery({
    ...delivery,
    dueAtMs: reason.fault === 'delay' ? clock.nowMs() + (reason.takes.ms as number) : null,
    held: {
      ...held,
      postponed: held.postponed + 1,
      sentBefore: reason.fault === 'reorder' ? store.sentAfter(linkNumber, number) : 0,
    },
  });
  return true;
}

/**
 * Lets go what is held back by a reorder, once as many later deliveries of its link were sent as the plan says. Where
 * no later one comes, it waits on: whoever planned it can send one.
 */
export function release(linkNumber: number, { store, clock }: MischiefOptions): void {
  for (const delivery of store.heldBack(linkNumber)) {
    if (heldBackBy(delivery, store)?.left === 0) store.updateDelivery({ ...delivery, dueAtMs: clock.nowMs() });
  }
}

/** Lets go everything that is held back by a reorder. What else is planned for it is done when it is sent. */
export function letGo({ store, clock }: Pick<MischiefOptions, 'store' | 'clock'>): void {
  for (const delivery of store.heldBack(null)) {
    const held = delivery.held as Held;
    // None of its plans puts it off any more.
    store.updateDelivery({ ...delivery, dueAtMs: clock.nowMs(), held: { ...held, postponed: held.faults.length } });
  }
}

/** What is planned of this kind, if it is; null otherwise. */
export function planned(held: Held | null, name: DeliveryFaultName): DrawnFault | null {
  return held?.faults.find(({ fault }) => fault === name) ?? null;
}

/** What is done before the signature is made: it fits what is sent, and still must not be believed. */
export function beforeSigning(shipment: Shipment, held: Held | null): Shipment {
  const stale = planned(held, 'stale-timestamp');
  const timestamp =
    stale === null ? shipment.timestamp : String(Number(shipment.timestamp) - (stale.takes.ageMs as number));
  const secret = planned(held, 'wrong-secret') === null ? shipment.secret : `not the secret: ${shipment.secret}`;
  const oversize = planned(held, 'oversize');
  const body = oversize === null ? shipment.body : filledUp(shipment.body, oversize.takes.bytes as number);
  return { timestamp, secret, body };
}

/** The same JSON, with spaces after it. */
function filledUp(body: Buffer, bytes: number): Buffer {
  return Buffer.concat([body, Buffer.alloc(Math.max(0, bytes - body.length), ' ')]);
}

/** How the request is sent: its method, and its body as it is or compressed. */
export function asSent(
  body: Buffer,
  headers: Record<string, string>,
  held: Held | null,
): { method: string; headers: Record<string, string>; body: Buffer } {
  const method = (planned(held, 'other-method')?.takes.method as string | undefined) ?? 'POST';
  if (planned(held, 'compress') === null) return { method, headers, body };
  return { method, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) };
}

/** What is done to the body after it was signed, in the order of the plans. */
export function afterSigning(body: Buffer, held: Held | null): Buffer {
  let changed = body;
  for (const { fault, takes } of held?.faults ?? []) {
    if (fault === 'tamper') changed = tampered(changed, takes.what as string);
    if (fault === 're-encode') changed = reEncoded(changed);
    if (fault === 'truncate') changed = changed.subarray(0, Math.max(0, changed.length - (takes.bytes as number)));
  }
  return changed;
}

/** What is no JSON any more, because another plan spoiled it, gets a line break. */
function reEncoded(body: Buffer): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2));
  } catch {
    return Buffer.concat([body, Buffer.from('\n')]);
  }
}

/** A status, and what a forger would write in its place. */
const FORGED: Record<string, string> = {
  NOT_STARTED: 'COMPLETED',
  PENDING: 'COMPLETED',
  COMPLETED: 'PENDING',
  ACTIVE: 'INACTIVE',
  INACTIVE: 'ACTIVE',
};

/** A body without an amount or a status has one byte changed. */
function tampered(body: Buffer, what: string): Buffer {
  const text = body.toString();
  const amounts = () => text.replaceAll(/"amount":([\d.]+)/g, (_all, amount) => `"amount":${Number(amount) + 1}`);
  const statuses = () =>
    text.replaceAll(
      /"(status|paymentStatus)":"(\w+)"/g,
      (_all, name, status) => `"${name}":"${FORGED[status] ?? status}"`,
    );
  const forged = what === 'amount' ? amounts() : what === 'status' ? statuses() : text;
  if (forged !== text || body.length === 0) return Buffer.from(forged);
  const bytes = Buffer.from(body);
  const middle = Math.floor(bytes.length / 2);
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
  return bytes;
}
