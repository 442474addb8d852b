import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { PAYLOADS } from '../sandbox/page-payloads.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';

const PROXY_SECRET = 'secret-of-the-proxy-0001';
const PROXY_AUTH = `user=X-User; groups=X-Groups; secret=X-Proxy:${PROXY_SECRET}; viewer=*; operator=support`;

/** Payloads as a single line can hold them: where a stranger writes, settled refuses other controls. */
const LINES = PAYLOADS.map((payload) => payload.replace(/\p{Cc}/gu, ''));

/** The text that a field has of one payload, told apart from the other fields of the same payload. */
export function textIn(field: string, n: number): string {
  return `${field}-${n} ${LINES[n]}`;
}

/**
 * A shop in which each field that a stranger can fill has each payload: references, titles, metadata, ids and types of
 * events, names and e-mail addresses of customers, header names, answers of the shop, users of a proxy, reasons.
 */
export function hostileShop(): () => TestApp {
  let shop: TestApp | undefined;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    const atEnd = (end: () => unknown) => void ends.unshift(end);
    const callback = await startCallback({ atEnd });
    callback.answerWith(({ body }) => ({ status: 410, body: textIn('answer', numberIn(body)) }));
    const environment = { ...callback.environment, SETTLED_PROXY_AUTH: PROXY_AUTH };
    const settled = await startTestApp({ environment, engine: 'sqlite', storePath: join(folder, 'settled.db'), atEnd });
    await Promise.all(LINES.map((_line, n) => seed(settled, n)));
    const openings = LINES.map((_line, n) => {
      const request = { title: textIn('title', n), metadata: { note: textIn('metadata', n) } };
      return { reference: textIn('reference', n), request };
    });
    tamper(
      settled.storePath,
      `INSERT INTO opening (link_key, request, status, due_at_ms)
       SELECT l.key, value ->> 'request', 'done', 1 FROM json_each(?), orders o JOIN link l ON l.order_key = o.key
       WHERE o.reference = value ->> 'reference'`,
      JSON.stringify(openings),
    );
    await eventually(async () => {
      const { events } = (await settled.api('/v1/stats')).body.stats;
      if (events.pending + events.leased > 0) throw new Error('not all is settled');
      const { notices } = (await settled.api('/v1/notices?limit=200')).body;
      if (notices.some((notice: { answer: unknown }) => notice.answer === null)) throw new Error('not all is told');
    });
    await endMatters(settled);
    shop = settled;
    return async () => {
      for (const end of ends) await end();
    };
  });
  return () => {
    if (shop === undefined) throw new Error('the shop has not been started yet');
    return shop;
  };
}

function numberIn(notice: string): number {
  return Number(/"reference":"reference-(\d+) /.exec(notice)?.[1] ?? 0);
}

async function seed(settled: TestApp, n: number): Promise<void> {
  const of = (field: string) => textIn(field, n);
  const link = await settled.reserve(of('reference'));
  const send = (body: string) => settled.deliver(link, body, signedHeaders(link.webhookSecret, body));
  const paid = JSON.parse(paymentEvent({ linkId: 'pl', amount: '60.00' }));
  paid.id = of('event');
  paid.data.paymentLink.id = of('link');
  Object.assign(paid.data.latestPayment, {
    id: of('payment'),
    customer: { name: of('customer'), email: `email-${n}@${LINES[n]?.replace(/[\s@]/g, '')}` },
  });
  await send(JSON.stringify(paid));
  await send(JSON.stringify({ id: of('odd'), type: of('type'), data: { said: PAYLOADS } }));
  await send(`${of('body')} ${PAYLOADS.join('\n')}`);
  const header = `x-${LINES[n]?.replace(/[^!#$%&'*+.^_`|~\w-]/g, '')}-signature`;
  await settled.deliver(link, '{}', { 'content-type': 'application/json', [header]: 'ab'.repeat(32) });
  const filter = { reference: of('filtered') };
  await settled.api('/v1/bulk', { body: { action: 'replay_events', filter, reason: of('bulk') } });
}

/** Ends a matter for each payload, as a person whom the proxy names by it, with it as the reason. */
async function endMatters(settled: TestApp): Promise<void> {
  const { attention } = (await settled.api('/v1/attention?kind=event_not_understood&limit=200')).body;
  for (const [n, { id }] of attention.slice(0, LINES.length).entries()) {
    const status = await asProxyUser(`${settled.apiUrl}/v1/attention/${id}/end`, n);
    // A proxy's header cannot have other characters than Latin-1.
    if (status !== (isPlain(n) ? 200 : 401)) throw new Error(`the matter was not ended: ${status}`);
  }
}

/** Whether it is of ASCII's printable characters. */
export function isPlain(n: number): boolean {
  return /^[\x20-\x7e]*$/.test(LINES[n] ?? '');
}

function asProxyUser(url: string, n: number): Promise<number | undefined> {
  const headers = {
    'x-proxy': PROXY_SECRET,
    'x-groups': 'support',
    'x-user': Buffer.from(textIn('user', n)).toString('latin1'),
    'sec-fetch-site': 'same-origin',
    'content-type': 'application/json',
  };
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('error', reject).end(JSON.stringify({ reason: textIn('reason', n) }));
  });
}
