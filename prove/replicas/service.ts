import { createServer, type IncomingMessage } from 'node:http';
import { listen } from '../../test/support/network.ts';

/** The window of the service's rate limit (spec section 8). */
const WINDOW_MS = 60_000;
const ROOT = '/api/v1';

/** A link that the service made for settled. */
export type MadeLink = { id: string; reference: string; webhookUrl: string; webhookSecret: string };

/** The part of the service's API that settled uses. It records when each request arrived, and has no rate limit. */
export type Service = {
  readonly url: string;
  /** When each request arrived, oldest first. */
  readonly requestsAtMs: readonly number[];
  /** Every link that it made, oldest first. */
  readonly made: readonly MadeLink[];
  /** The references of links that exist without having been made here, by id. All of them are paid. */
  readonly registered: Map<string, string>;
  /** The references of orders that are paid twice. */
  readonly paidTwice: Set<string>;
  onMade: (link: MadeLink) => void;
  close(): void;
};

export async function startService(amount: number): Promise<Service> {
  const requestsAtMs: number[] = [];
  const made: MadeLink[] = [];
  const registered = new Map<string, string>();
  const paidTwice = new Set<string>();

  const server = createServer(async (request, response) => {
    requestsAtMs.push(performance.now());
    const { status, body } = answer(request, Buffer.concat(await request.toArray()).toString());
    const text = JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });

  function answer({ method, url = '' }: IncomingMessage, body: string): { status: number; body: object } {
    const { pathname, searchParams } = new URL(url, 'http://service');
    const path = pathname.slice(ROOT.length);
    if (path === '/merchant/profile') return ok({ merchant: { id: 'merchant', status: 'ACTIVE' } });
    if (path === '/payment-links') {
      if (method === 'POST') return make(JSON.parse(body));
      const reference = searchParams.get('externalReference');
      // Like the service's sandbox: links can only be read one by one.
      if (reference === null) return refusal(403, 'FORBIDDEN');
      const found = made.filter((link) => link.reference === reference).map(shown);
      return ok({ paymentLinks: found, pagination: { page: 1, totalPages: 1 } });
    }
    const id = decodeURIComponent(path.slice('/payment-links/'.length));
    const reference = registered.get(id);
    if (reference !== undefined) return ok({ paymentLink: details({ id, reference }) });
    const link = made.find((one) => one.id === id);
    return link === undefined ? refusal(404, 'NOT_FOUND') : ok({ paymentLink: details(shown(link)) });
  }

  function make(asked: { externalReference: string; webhookUrl: string; webhookSecret: string }) {
    const { externalReference: reference, webhookUrl, webhookSecret } = asked;
    if (made.some((link) => link.reference === reference)) return refusal(409, 'CONFLICT');
    const link = { id: `pl_${reference}`, reference, webhookUrl, webhookSecret };
    made.push(link);
    service.onMade(link);
    return { status: 201, body: { success: true, paymentLink: shown(link) } };
  }

  function shown({ id, reference, webhookUrl }: MadeLink) {
    const url = `https://pay.example/${id}`;
    return { id, reference, externalReference: reference, amount, currency: 'BRL', status: 'ACTIVE', webhookUrl, url };
  }

  function details(link: { id: string; reference: string }): object {
    const ids = [paymentIdOf(link.reference), ...(paidTwice.has(link.reference) ? [secondOf(link.reference)] : [])];
    return {
      ...link,
      externalReference: link.reference,
      amount,
      currency: 'BRL',
      status: 'ACTIVE',
      paymentStatus: 'COMPLETED',
      payments: ids.map((id) => ({ id, status: 'COMPLETED', quote: { amount, currency: 'BRL' } })),
    };
  }

  const { url: address, close } = await listen(server);
  const service: Service = { url: address, requestsAtMs, made, registered, paidTwice, onMade: () => {}, close };
  return service;
}

export function paymentIdOf(reference: string): string {
  return `pay_${reference}`;
}

/** The second payment of an order that is paid twice. */
export function secondOf(reference: string): string {
  return `${paymentIdOf(reference)}_again`;
}

/** The most requests in any 60 seconds. */
export function busiestMinute(atMs: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [index, ms] of atMs.entries()) {
    while ((atMs[first] as number) <= ms - WINDOW_MS) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

function ok(fields: object) {
  return { status: 200, body: { success: true, ...fields } };
}

function refusal(status: number, code: string) {
  return { status, body: { success: false, error: code, code } };
}
