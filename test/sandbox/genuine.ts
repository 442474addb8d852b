import { createHmac } from 'node:crypto';
import type { Received } from '../support/receiver.ts';

export const SECRET = 'a-secret-of-the-merchant-of-this-test';
export const CREATED = 'payment_link.created';
export const PAYMENT_STATUS = 'payment_link.payment_status_changed';

/** Whether a delivery carries the signature of its own bytes. */
export function isGenuine({ headers, body }: Received): boolean {
  const mac = createHmac('sha256', SECRET).update(`${headers['x-service-timestamp']}.`).update(body);
  return headers['x-service-signature'] === mac.digest('hex');
}
