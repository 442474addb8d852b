import { createHmac } from 'node:crypto';

/** Signs for tests; shares no code with settled's verification. */
export function signatureHex(secret: string, timestamp: string, body: string | Uint8Array): string {
  return createHmac('sha256', secret)
    .update(Buffer.concat([Buffer.from(`${timestamp}.`), Buffer.from(body)]))
    .digest('hex');
}

export function signedHeaders(
  secret: string,
  body: string | Uint8Array,
  timestamp: string = String(Date.now()),
): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-service-signature': signatureHex(secret, timestamp, body),
    'x-service-timestamp': timestamp,
  };
}

let lastEvent = 0;

/** The body of a payment event; default COMPLETED. */
export function paymentEvent(
  options: {
    id?: string;
    linkId?: string;
    status?: string;
    paymentId?: string | null;
    amount?: string;
    currency?: string;
    /** The payment's own quote, its amount as the service writes it. */
    quote?: string;
  } = {},
): string {
  const { id = `evt_${++lastEvent}`, linkId, status = 'COMPLETED', paymentId = 'pay_1' } = options;
  const { amount, currency, quote } = options;
  const money = amount === undefined ? '' : `,"amount":${amount},"currency":"${currency ?? 'BRL'}"`;
  const link = linkId === undefined ? '' : `"paymentLink":{"id":"${linkId}"${money}},`;
  const quoted = quote === undefined ? '' : `,"quote":{"amount":${quote},"currency":"BRL"}`;
  const payment = paymentId === null ? '' : `,"latestPayment":{"id":"${paymentId}","status":"${status}"${quoted}}`;
  return `{"id":"${id}","type":"payment_link.payment_status_changed","data":{${link}"paymentStatus":"${status}"${payment}}}`;
}
