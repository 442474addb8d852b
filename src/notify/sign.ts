import { createHmac } from 'node:crypto';

/**
 * The headers of one attempt (Standard Webhooks, version 1). Made anew for each, because the time is signed; the id stays.
 *
 * @param keys the shop's key or, while it changes it, the new and the old one: either verifies
 */
export function noticeHeaders(
  keys: readonly Buffer[],
  { id, body, nowMs }: { id: string; body: string; nowMs: number },
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
