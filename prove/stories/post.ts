import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import type { Ways } from './wire.ts';

const ANSWER_MS_MAX = 8_000;
const CHUNK_BYTES = 100;

export type Delivery = {
  url: string;
  body: string;
  /** Null for a delivery without a signature. */
  secret: string | null;
  atMs: number;
  isChunked: boolean;
  encoding: Ways['signature'];
};

/** Sends one signed delivery. Resolves with the status of its answer; null if there was none. */
export function post({ url, body, secret, atMs, isChunked, encoding }: Delivery): Promise<number | null> {
  const bytes = Buffer.from(body);
  const stamp = String(atMs);
  const signed = {
    'x-service-timestamp': stamp,
    'x-service-signature': sign(secret ?? '', `${stamp}.${body}`, encoding),
  };
  return new Promise((resolve) => {
    const sending = request(url, {
      method: 'POST',
      agent: false,
      timeout: ANSWER_MS_MAX,
      headers: {
        'content-type': 'application/json',
        ...(isChunked ? {} : { 'content-length': bytes.length }),
        ...(secret === null ? {} : signed),
      },
    });
    sending.once('error', () => resolve(null));
    sending.once('timeout', () => sending.destroy());
    sending.once('response', (answer) => {
      answer.resume().once('error', () => resolve(null));
      answer.once('end', () => resolve(answer.statusCode ?? null));
    });
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) sending.write(bytes.subarray(at, at + CHUNK_BYTES));
    sending.end();
  });
}

function sign(secret: string, text: string, encoding: Ways['signature']): string {
  const mac = createHmac('sha256', secret).update(text);
  if (encoding === 'base64') return mac.digest('base64');
  return encoding === 'hex' ? mac.digest('hex') : `sha256=${mac.digest('hex')}`;
}
