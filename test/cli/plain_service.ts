import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serveHere } from '../support/http.ts';

/**
 * A payment-link service without any code of the project: its answers and events differ from those of the sandbox wherever
 * the specification is silent, and say too much.
 */
export type PlainService = {
  url: string;
  apiKey: string;
  /** Every link, as it was asked for. */
  links: { id: string; webhookSecret: string; externalReference: string; webhookUrl: string }[];
  /** A customer pays the link: an event says so. */
  pay(id: string): Promise<void>;
  /** What no recording may hold. */
  personal: readonly string[];
};

/** `hold`: called for each request before it is carried out, and once more before it is answered. */
export type PlainOptions = {
  hold?: (step: string) => Promise<unknown>;
  /** Answers a request in place of the service; false if it does not. */
  instead?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** The body of the answer to a creation. */
  made?: (link: object, webhookSecret: string) => object;
  /** Writes a signature; null for one that it would not send. */
  sign?: (code: Buffer) => string | null;
};

/** Names of fields that are values. */
const HOLDERS = { AngelaPrado: true, qZmTkWbXvLpR: 7 };
const CUSTOMER = { name: 'Ângela Prado 3ª', email: 'angela.prado@example.com', document: '390.533.447-05', age: 4711 };

const MADE = (link: object, webhookSecret: string) => ({ data: { paymentLink: { ...link, webhookSecret } } });

export async function startPlainService({
  hold,
  instead,
  made = MADE,
  sign,
}: PlainOptions = {}): Promise<PlainService> {
  const apiKey = 'live_key_0123456789_of_the_plain_service';
  const links: PlainService['links'] = [];
  const paid = new Set<string>();
  const details = (link: PlainService['links'][number]) => {
    const { webhookSecret: _, ...shown } = link;
    const quote = { amount: '25.01', currency: 'BRL', totalBRL: '26.90', paymentMethod: 'PIX', installments: 1 };
    const payment = { status: 'COMPLETED', completedAt: '2030-01-31T12:00:00Z', customer: CUSTOMER, quote };
    const isPaid = paid.has(link.id);
    const status = {
      status: 'ACTIVE',
      paymentStatus: isPaid ? 'COMPLETED' : 'NOT_STARTED',
      owner: CUSTOMER,
      holders: HOLDERS,
    };
    return {
      ...shown,
      amount: '25.01',
      currency: 'BRL',
      url: `${url}/pay/${link.id}`,
      ...status,
      payments: isPaid ? [payment] : [],
    };
  };

  async function deliver(id: string, kind: string): Promise<void> {
    const link = links.find((one) => one.id === id) as PlainService['links'][number];
    const { webhookUrl, webhookSecret, ...said } = details(link) as never as Record<string, string>;
    const resource = { link: said, paymentStatus: said.paymentStatus, latestPayment: said.payments?.[0] ?? null };
    const body = JSON.stringify({ eventType: kind, resource });
    const write = sign ?? ((code: Buffer) => `v1,${code.toString('base64')}`);
    const signedAt = (ms: number): [signature: string, timestamp: string] => {
      const code = createHmac('sha256', link.webhookSecret).update(`${ms}.${body}`).digest();
      const signature = write(code);
      return signature === null ? signedAt(ms + 1) : [signature, String(ms)];
    };
    const [signature, timestamp] = signedAt(Date.now());
    const headers = { 'x-service-signature': signature, 'x-service-timestamp': timestamp };
    await fetch(link.webhookUrl, { method: 'POST', headers, body }).catch(() => {});
  }

  const url = await serveHere(async (request, response) => {
    if (instead?.(request, response) === true) return;
    const path = (request.url ?? '').replace('/api/v1', '');
    const sent = await text(request).catch(() => '');
    const step = `${request.method} ${path.replace(/\?.*|(?<=links\/).*/, '')}`;
    await hold?.(step);
    const answer = async (status: number, body: object) => {
      await hold?.(`${step} answered`);
      response.writeHead(status, {
        'content-type': 'application/json',
        'x-ratelimit-reset': String(Date.now() + 60_000),
        'x-ratelimit-limit': `60; key=${apiKey}`,
      });
      response.end(JSON.stringify({ ...body, debug: { key: request.headers['x-api-key'] } }));
    };
    if (request.headers['x-api-key'] !== apiKey) return answer(401, { message: 'no' });
    if (path === '/merchant/profile')
      return answer(200, { merchant: { id: 'm-1', status: 'ACTIVE', owner: CUSTOMER } });
    if (request.method === 'POST') {
      const asked = JSON.parse(sent);
      const link = { ...asked, id: `L-${links.length + 1}-${Date.now()}` };
      links.push(link);
      await answer(200, made(details(link), asked.webhookSecret));
      return deliver(link.id, 'payment_link.created');
    }
    const found = links.find(({ id }) => path === `/payment-links/${id}`);
    if (found !== undefined) return answer(200, { paymentLink: details(found) });
    return path.includes('?')
      ? answer(403, { message: 'no list' })
      : answer(404, { message: `not here: ${CUSTOMER.name}` });
  });
  return {
    url,
    apiKey,
    links,
    personal: [...Object.values(CUSTOMER).map(String), ...Object.keys(HOLDERS)],
    pay: async (id) => {
      paid.add(id);
      await deliver(id, 'payment_link.payment_status_changed');
    },
  };
}
