import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { sign } from '../../sandbox/dispatch/signing.ts';
import { SWITCHES } from '../../sandbox/options.ts';
import type { Received } from '../support/receiver.ts';
import { createDelivered, createLink, firstDelivery, HOUR_MS, MINUTE_MS, startPair, turn } from '../support/sandbox.ts';

const SECRET = 'a-secret-of-the-merchant: áé🔑';

/** Written here once more, and not as the sandbox writes it. */
function mac({ headers, body }: Received, secret = SECRET): Buffer {
  const text = Buffer.concat([Buffer.from(`${headers['x-service-timestamp']}.`), body]);
  return createHmac('sha256', Buffer.from(secret, 'utf8')).update(text).digest();
}

const ENCODINGS: Record<string, (digest: Buffer, timestamp: string) => string> = {
  hex: (digest) => digest.toString('hex'),
  'hex-upper': (digest) => digest.toString('hex').toUpperCase(),
  base64: (digest) => digest.toString('base64'),
  base64url: (digest) => digest.toString('base64').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
  'base64-unpadded': (digest) => digest.toString('base64').replaceAll('=', ''),
  'sha256=hex': (digest) => `sha256=${digest.toString('hex')}`,
  'sha256=base64': (digest) => `sha256=${digest.toString('base64')}`,
  'SHA256=hex': (digest) => `SHA256=${digest.toString('hex')}`,
  'sha256:hex': (digest) => `sha256:${digest.toString('hex')}`,
  'hmac-sha256=hex': (digest) => `hmac-sha256=${digest.toString('hex')}`,
  'v1=hex': (digest) => `v1=${digest.toString('hex')}`,
  'v1,base64': (digest) => `v1,${digest.toString('base64')}`,
  't=,v1=hex': (digest, timestamp) => `t=${timestamp},v1=${digest.toString('hex')}`,
  'signature=': (digest) => `signature=${digest.toString('hex')}`,
};

describe('sandbox: the signature', () => {
  it('is known to this test in every encoding', () => {
    expect(Object.keys(ENCODINGS)).toEqual([...SWITCHES.signature.values]);
  });

  it.each(SWITCHES.signature.values)('is HMAC-SHA256 over timestamp, full stop and body, as %s', async (encoding) => {
    const { sandbox, receiver } = await startPair({ switches: [`signature=${encoding}`] });
    const title = 'Cadeira “de balanço” 🪑';
    await createDelivered({ sandbox, receiver }, { webhookSecret: SECRET, title });
    const [delivery] = receiver.received as [Received];
    expect(delivery.headers['x-service-signature']).toBe(
      ENCODINGS[encoding]?.(mac(delivery), String(delivery.headers['x-service-timestamp'])),
    );
  });

  it('comes in headers with the given prefix', async () => {
    const { sandbox, receiver } = await startPair({ headerPrefix: 'X-Acme' });
    await createDelivered({ sandbox, receiver }, { webhookSecret: SECRET });
    const [sent] = receiver.received as [Received];
    const { headers } = sent;
    const plain = { ...sent, headers: { 'x-service-timestamp': headers['x-acme-timestamp'] } };
    expect(headers['x-acme-signature']).toBe(mac(plain).toString('hex'));
    expect(Object.keys(headers).filter((name) => name.startsWith('x-service'))).toEqual([]);
  });

  it("is keyed with the service's secret if the merchant gave none", async () => {
    const { sandbox, receiver } = await startPair();
    const { webhookSecret } = await createDelivered({ sandbox, receiver });
    const [delivery] = receiver.received as [Received];
    expect(delivery.headers['x-service-signature']).toBe(mac(delivery, webhookSecret).toString('hex'));
  });

  it('differs from link to link and from body to body', () => {
    const given = { secret: 'one', timestamp: '1760000000000', body: '{}', encoding: 'hex' } as const;
    const others = [{ secret: 'two' }, { timestamp: '1760000000001' }, { body: '{ }' }];
    const signatures = [given, ...others.map((other) => ({ ...given, ...other }))].map(sign);
    expect(new Set(signatures).size).toBe(4);
  });
});

describe('sandbox: what a retry is signed with', () => {
  async function retried(silence: string) {
    const { sandbox, receiver } = await startPair({ switches: [`retries=${silence}`] });
    receiver.answerWith(503);
    const link = await createLink(sandbox, { webhookUrl: receiver.url, webhookSecret: SECRET });
    await turn(sandbox, 2 * HOUR_MS);
    const stamps = receiver.received.map(({ headers }) => Number(headers['x-service-timestamp']));
    return { sandbox, receiver, link, stamps };
  }

  it('is its own timestamp, if retries are signed again', async () => {
    const { sandbox, receiver, link, stamps } = await retried('re-signed');
    expect(stamps).toHaveLength(5);
    const { log } = await firstDelivery(sandbox, link);
    expect(stamps).toEqual(log.map(({ at }: { at: string }) => Date.parse(at)));
    expect(new Set(stamps).size).toBe(5);
    for (const delivery of receiver.received) {
      expect(delivery.headers['x-service-signature']).toBe(mac(delivery).toString('hex'));
    }
  });

  it('is the timestamp and the signature of the first attempt, if it is signed once', async () => {
    const { receiver, stamps } = await retried('signed-once');
    const [first, ...retries] = receiver.received as [Received, ...Received[]];
    expect(stamps).toEqual(Array(5).fill(stamps[0]));
    expect(first.headers['x-service-signature']).toBe(mac(first).toString('hex'));
    for (const { headers } of retries) {
      expect(headers['x-service-signature']).toBe(first.headers['x-service-signature']);
    }
  });

  it('sends the same bytes with every retry', async () => {
    const { receiver } = await retried('re-signed');
    expect(new Set(receiver.received.map(({ body }) => body.toString('hex'))).size).toBe(1);
  });
});

describe('sandbox: the timestamp', () => {
  it('follows the turned clock', async () => {
    const { sandbox, receiver } = await startPair();
    await turn(sandbox, 24 * HOUR_MS);
    await createDelivered({ sandbox, receiver });
    const aheadMs = Number(receiver.received[0]?.headers['x-service-timestamp']) - Date.now();
    expect(Math.abs(aheadMs - 24 * HOUR_MS)).toBeLessThan(MINUTE_MS);
  });

  it('is real time if the switch says so, even after the clock was turned', async () => {
    const { sandbox, receiver } = await startPair({ switches: ['timestamps=true'] });
    await turn(sandbox, 24 * HOUR_MS);
    await createDelivered({ sandbox, receiver }, { webhookSecret: SECRET });
    const [delivery] = receiver.received as [Received];
    expect(Math.abs(Number(delivery.headers['x-service-timestamp']) - Date.now())).toBeLessThan(MINUTE_MS);
    expect(delivery.headers['x-service-signature']).toBe(mac(delivery).toString('hex'));
  });
});
