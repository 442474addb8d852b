import { createHmac } from 'node:crypto';
import type { Switches } from '../options.ts';

export type Signed = {
  secret: string;
  /** Epoch milliseconds, as text. */
  timestamp: string;
  /** The bytes as they are sent; text is signed as UTF-8. */
  body: Buffer | string;
  encoding: Switches['signature'];
  /** Default: timestamp and body. */
  signed?: Switches['signed'];
};

/** The value of the signature header: HMAC-SHA256 over timestamp + "." + raw body (spec section 6). */
export function sign({ secret, timestamp, body, encoding, signed = 'timestamp.body' }: Signed): string {
  const before = signed === 'body' ? '' : `${timestamp}.`;
  const digest = createHmac('sha256', secret).update(before).update(body).digest();
  switch (encoding) {
    case 'hex':
      return digest.toString('hex');
    case 'hex-upper':
      return digest.toString('hex').toUpperCase();
    case 'base64':
      return digest.toString('base64');
    case 'base64url':
      return digest.toString('base64url');
    case 'base64-unpadded':
      return digest.toString('base64').replace('=', '');
    case 'sha256=hex':
      return `sha256=${digest.toString('hex')}`;
    case 'sha256=base64':
      return `sha256=${digest.toString('base64')}`;
    case 'SHA256=hex':
      return `SHA256=${digest.toString('hex')}`;
    case 'sha256:hex':
      return `sha256:${digest.toString('hex')}`;
    case 'hmac-sha256=hex':
      return `hmac-sha256=${digest.toString('hex')}`;
    case 'v1=hex':
      return `v1=${digest.toString('hex')}`;
    case 'v1,base64':
      return `v1,${digest.toString('base64')}`;
    case 't=,v1=hex':
      return `t=${timestamp},v1=${digest.toString('hex')}`;
    case 'signature=':
      return `signature=${digest.toString('hex')}`;
  }
}

/** The value of the timestamp header: `nowMs` of the sandbox's clock, or real time. */
export function stamp(switches: Pick<Switches, 'timestamps' | 'timestamp-unit'>, nowMs: number): string {
  const ms = switches.timestamps === 'true' ? Date.now() : nowMs;
  return String(switches['timestamp-unit'] === 's' ? Math.floor(ms / 1_000) : ms);
}

/**
 * The headers of a delivery. The spec names neither method nor content type; this is a POST of JSON. The prefix stands
 * for the service's brand, which the spec leaves out.
 */
export function deliveryHeaders(
  prefix: string,
  { timestamp, signature }: { timestamp: string; signature: string },
): Record<string, string> {
  return { 'content-type': 'application/json', [`${prefix}-signature`]: signature, [`${prefix}-timestamp`]: timestamp };
}
