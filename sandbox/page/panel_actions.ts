import type { Context } from '../context.ts';
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
import type { Delivery } from '../store/deliveries.ts';
import { oneNamed } from '../validate.ts';

/** Answers the panel's script about an event that the server sent. */
type ServerSending = { atMs: number; event: string; status: number | null; body: string | null; error: string | null };

/** A signed event for the panel's script to send. */
type BrowserSending = { atMs: number; event: string; url: string; headers: Record<string, string>; body: string };

export function simulateStatus({ service }: Context, link: Link, given: unknown): void {
  service.setStatus(link, oneNamed('link status', given, LINK_STATUSES));
}

/**
 * PENDING starts a payment by PIX. COMPLETED completes the pending one, or starts one first. A payment that is started
 * names the given money.
 */
export function simulatePayment({ service }: Context, link: Link, given: unknown, givenMoney: unknown): void {
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

/** Sends an event as a delivery like every other, and waits for the first attempt's answer. */
export async function sendFromServer(context: Context, link: Link, given: unknown): Promise<ServerSending> {
  const { service, store, clock, dispatcher } = context;
  receiverOf(link);
  const kind = oneNamed('event kind', given, EVENT_KINDS);
  const atMs = clock.nowMs();
  const { event, delivery } = service.emit(link, kind, 'panel');
  await dispatcher.idle();
  const attempt = store.attemptsOf((delivery as Delivery).number).at(-1);
  if (attempt === undefined) {
    const error = 'Not sent yet: a fault plan holds it back. The control API lists the plans.';
    return { atMs, event: event.id, status: null, body: null, error };
  }
  const { responseStatus, responseBody, error } = attempt;
  return { atMs, event: event.id, status: responseStatus, body: responseBody, error };
}

/** The same request, signed, for the page's script to send from the browser. It creates no delivery. */
export function forBrowser({ service, clock, switches, options }: Context, link: Link, given: unknown): BrowserSending {
  const url = receiverOf(link);
  const kind = oneNamed('event kind', given, EVENT_KINDS);
  const atMs = clock.nowMs();
  const { event } = service.emit(link, kind, 'automatic');
  const { signature: encoding, signed } = switches();
  const timestamp = stamp(switches(), atMs);
  const signature = sign({ secret: link.webhookSecret, timestamp, body: event.body, encoding, signed });
  const headers = deliveryHeaders(options.headerPrefix, { timestamp, signature });
  return { atMs, event: event.id, url, headers, body: event.body };
}

/** The link's webhookUrl. Throws the refusal 404 if it has none. */
function receiverOf({ id, webhookUrl }: Link): string {
  if (webhookUrl !== null) return webhookUrl;
  const message = `Link ${id} has no webhookUrl, so there is nowhere to send its events. Set one when you create the link.`;
  throw new Refusal(404, 'no_webhook_url', message, 'webhookUrl');
}
