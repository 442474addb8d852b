import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import type { Html } from '../http/app.ts';

/** Nothing inline, nothing from elsewhere, no frame around it, and forms lead to the console alone. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** Smaller answers go as they are: they fit into one packet. */
const COMPRESSED_FROM_BYTES = 1_400;

const compress = promisify(gzip);

/** Sends a page of the console. Caches do not keep it. */
export async function sendConsolePage(request: Request, response: Response, page: Html, status = 200): Promise<void> {
  protect(response);
  response.status(status).set('cache-control', 'no-store').type('html');
  const text = Buffer.from(page.markup);
  if (text.length < COMPRESSED_FROM_BYTES || !acceptsGzip(request)) return void response.send(text);
  sendCompressed(response, await compress(text));
}

/** Sets what every answer of the console has, pages and assets alike. */
export function protect(response: Response): void {
  response.set({
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    vary: 'accept-encoding',
  });
}

export function sendCompressed(response: Response, bytes: Buffer): void {
  response.set('content-encoding', 'gzip').send(bytes);
}

export function acceptsGzip(request: Request): boolean {
  return request.acceptsEncodings('gzip') === 'gzip';
}
