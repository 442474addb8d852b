import { deliveryHeaders, sign, stamp } from '../dispatch/signing.ts';
import {
  EVENT_KINDS,
  LINK_STATUSES,
  type Link,
  PAYMENT_MONEY,
  PAYMENT_STATUSES,
  type PaymentStatus,
  Refusal,
} from '../model.ts';
import type { Parts } from '../sandbox.ts';
import type { Delivery } from '../store/deliveries.ts';
import { oneNamed } from '../validate.ts';

/** What the panel's script is answered about an event that the server sent. */
type ServerSending = { atMs: number; event: string; status: number | null; body: string | null; error: string | null };

/** A signed event for the panel's script to send. */
type BrowserSending = { atMs: number; event: string; url: string; headers: Record<string, string>; body: string };

export function simulateStatus({ service }: Parts, link: Link, given: unknown): void {
  service.setStatus(link, oneNamed('link status', given, LINK_STATUSES));
}

/**
 * PENDING starts a payment by PIX, COMPLETED completes one (and starts it where none is pending). A payment that is started
 * names the given money.
 */
export function simulatePayment({ service }: Parts, link: Link, given: unknown, givenMoney: unknown): void {
  const status = oneNamed('payment status', given, PAYMENT_STATUSES);
  const money = oneNamed('money', givenMoney ?? 'asked', PAYMENT_MONEY);
  const start = () => service.startPayment(link, { method: 'PIX', installments: 1, customer: null, money });
  const moves: Record<PaymentStatus, () => void> = {
    PENDING: start,
    COMPLETED: () => {
      if (!service.payments(link).some(({ status }) => status === 'PENDING')) start();
      service.completePayment(service.link(link.id));
    },
    REFUNDED: () => service.refund(link),
    DISPUTED: () => service.dispute(link),
  };
  moves[status]();
}

/** Sends an event on the way that every delivery takes, and waits for what comes back of the first attempt. */
export async function sendFromServer(parts: Parts, link: Link, given: unknown): Promise<ServerSending> {
  const { service, store, clock, idle } = parts;
  receiverOf(link);
  const kind = oneNamed('event kind', given, EVENT_KINDS);
  const atMs = clock.nowMs();
  const { event, delivery } = service.emit(link, kind, 'panel');
  await idle();
  const attempt = store.attemptsOf((delivery as Delivery).number).at(-1);
  if (attempt === undefined) {
    const error = 'Not sent yet: mischief holds it back. The control API lists the plans.';
    return { atMs, event: event.id, status: null, body: null, error };
  }
  const { responseStatus, responseBody, error } = attempt;
  return { atMs, event: event.id, status: responseStatus, body: responseBody, error };
}

/**
 * The same request, for the page's script to send. It is no delivery: in the environment `sandbox` an event has one
 * only where the panel asks for it.
 */
export function forBrowser({ service, clock, silences, options }: Parts, link: Link, given: unknown): BrowserSending {
  const url = receiverOf(link);
  const kind = oneNamed('event kind', given, EVENT_KINDS);
  const atMs = clock.nowMs();
  const { event } = service.emit(link, kind, 'automatic');
  const { signature: encoding, timestamps } = silences();
  const timestamp = stamp(timestamps, atMs);
  const signature = sign({ secret: link.webhookSecret, timestamp, body: event.body, encoding });
  const headers = deliveryHeaders(options.headerPrefix, { timestamp, signature });
  return { atMs, event: event.id, url, headers, body: event.body };
}

/** Where the link's events go. */
function receiverOf({ id, webhookUrl }: Link): string {
  if (webhookUrl !== null) return webhookUrl;
  const message = `Link ${id} has no webhookUrl, so there is nobody to tell. Give one when you create the link.`;
  throw new Refusal(404, 'no_webhook_url', message, 'webhookUrl');
}
