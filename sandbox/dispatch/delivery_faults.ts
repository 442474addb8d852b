import { gzipSync } from 'node:zlib';
import type { TurnableClock } from '../clock.ts';
import { type DeliveryFaultName, type FaultPlans, POSTPONING } from '../fault_plans.ts';
import type { Delivery, DrawnFault, Held } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';

/** What one attempt signs and sends. */
export type Shipment = { secret: string; timestamp: string; body: Buffer };

type FaultOptions = { store: SandboxStore; clock: TurnableClock; faults: FaultPlans };

/**
 * The faults of the delivery's next attempt. They are drawn from the plans once, and kept with the delivery until the
 * attempt is recorded: neither the end of a delay nor a restart draws again.
 */
export function drawFaults(
  delivery: Delivery,
  about: { event: string; link: string },
  { store, faults }: FaultOptions,
): Held | null {
  if (delivery.held !== null) return delivery.held;
  const plans = faults.forDelivery({ ...about, attempt: delivery.attempts + 1 });
  if (plans.length === 0) return null;
  const held: Held = { faults: plans.map(({ fault, with: takes }) => ({ fault, takes })), postponed: 0, sentBefore: 0 };
  store.updateDelivery({ ...delivery, held });
  return held;
}

/** The faults that postpone a delivery, one after the other. */
function postponing({ faults }: Held): DrawnFault[] {
  return faults.filter(({ fault }) => POSTPONING.has(fault));
}

/** The fault that has postponed the delivery, and for a reorder how many later ones of its link still go first. */
export function heldBackBy(
  { held, linkNumber, number }: Delivery,
  store: Pick<SandboxStore, 'sentAfter'>,
): { fault: string; left: number | null } | null {
  const reason = held === null ? undefined : postponing(held)[held.postponed - 1];
  if (held === null || reason === undefined) return null;
  if (reason.fault === 'delay') return { fault: 'delay', left: null };
  const sent = store.sentAfter(linkNumber, number) - held.sentBefore;
  return { fault: 'reorder', left: Math.max(0, (reason.takes.by as number) - sent) };
}

/**
 * Postpones a delivery by the next of its delays and reorders.
 *
 * @returns false if none is left, and the attempt is to be made
 */
export function postpone(delivery: Delivery, held: Held | null, { store, clock }: FaultOptions): boolean {
  const reason = held === null ? undefined : postponing(held)[held.postponed];
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
 * Makes deliveries due that a reorder holds back, once as many later ones of their link were sent as the plan says. If
 * no later one follows, they keep waiting.
 */
export function releaseReordered(linkNumber: number, { store, clock }: FaultOptions): void {
  for (const delivery of store.heldBack(linkNumber)) {
    if (heldBackBy(delivery, store)?.left === 0) store.updateDelivery({ ...delivery, dueAtMs: clock.nowMs() });
  }
}

/** Makes everything due that a reorder holds back. Its other faults are done when it is sent. */
export function releaseAll({ store, clock }: Pick<FaultOptions, 'store' | 'clock'>): void {
  for (const delivery of store.heldBack(null)) {
    const held = delivery.held as Held;
    // No plan postpones it now.
    store.updateDelivery({ ...delivery, dueAtMs: clock.nowMs(), held: { ...held, postponed: held.faults.length } });
  }
}

/** The planned fault of this name; null if there is none. */
export function planned(held: Held | null, name: DeliveryFaultName): DrawnFault | null {
  return held?.faults.find(({ fault }) => fault === name) ?? null;
}

/** Faults done before signing: the signature matches what is sent, and a receiver must refuse it all the same. */
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

/** The request's method, and its body as it is or compressed, as a whole or in chunks. */
export function asSent(
  body: Buffer,
  headers: Record<string, string>,
  held: Held | null,
  usual: string,
): { method: string; headers: Record<string, string>; body: Buffer; chunkBytes: number | null } {
  const method = (planned(held, 'other-method')?.takes.method as string | undefined) ?? usual;
  const chunkBytes = (planned(held, 'chunked')?.takes.bytes as number | undefined) ?? null;
  if (planned(held, 'compress') === null) return { method, headers, body, chunkBytes };
  return { method, chunkBytes, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) };
}

/** Faults done to the body after signing, in the order of the plans. */
export function afterSigning(body: Buffer, held: Held | null): Buffer {
  let changed = body;
  for (const { fault, takes } of held?.faults ?? []) {
    if (fault === 'tamper') changed = tampered(changed, takes.what as string);
    if (fault === 're-encode') changed = reEncoded(changed);
    if (fault === 'truncate') changed = changed.subarray(0, Math.max(0, changed.length - (takes.bytes as number)));
  }
  return changed;
}

/** A body that another fault already damaged is no longer JSON, and gets a line break instead. */
function reEncoded(body: Buffer): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2));
  } catch {
    return Buffer.concat([body, Buffer.from('\n')]);
  }
}

/** What a forger would write in the place of each status. */
const FORGED: Record<string, string> = {
  NOT_STARTED: 'COMPLETED',
  PENDING: 'COMPLETED',
  COMPLETED: 'PENDING',
  ACTIVE: 'INACTIVE',
  INACTIVE: 'ACTIVE',
};

/** If the body has no amount or status to change, one byte is changed. */
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
