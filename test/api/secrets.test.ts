import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api/router.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signatureHex, signedHeaders } from '../support/deliveries.ts';
import { followTail } from '../support/tail.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee } from './client.ts';

const CHOSEN = 'secret-that-the-shop-chose-0001';
const CORRECTED = 'secret-that-was-put-right-00002';

/** It is followed instead. */
const ENDLESS = '/v1/tail';

type Heard = { asked: string; said: string };

/** Asks every route, well and badly, and notes everything that is said: status, headers and body. */
async function askEverything(app: TestApp, heard: Heard[]): Promise<void> {
  const events = (await app.api('/v1/events')).body.events.map(({ id }: { id: string }) => id);
  const orders = ['reserved', 'registered', 'unknown', 'x'.repeat(129)];
  const bodies = [
    {},
    { decision: 'accept', reason: 'seen' },
    { reference: 'reserved', amount: '100.00' },
    { reference: 'reserved', amount: '999.00' },
    { reference: 'reserved', amount: '100.00', id: 'pl_registered' },
    { reference: 'registered', amount: '100.00', webhookSecret: CHOSEN },
    { reference: 'registered', amount: '100.00', webhookSecret: CORRECTED },
    { reference: 'registered', amount: '100.00', webhookSecret: CORRECTED, surprise: CHOSEN },
    { reference: 'unused', amount: 'x', webhookSecret: CHOSEN },
    { reference: 'unused', amount: '30', id: 'pl_registered', webhookSecret: CHOSEN },
    { reference: 'unused', amount: '30', webhookSecret: CHOSEN.slice(0, 15) },
  ];
  for (const { method, path } of ROUTES) {
    const places = path.includes(':reference')
      ? orders.map((reference) => path.replace(':reference', reference))
      : path.includes(':id')
        ? [...events, '999'].map((id) => path.replace(':id', id))
        : [path, `${path}?limit=1&q=${CHOSEN.slice(0, 4)}`].filter((place) => place !== ENDLESS);
    for (const place of places) {
      for (const token of [OPERATOR_TOKEN, SHOP_TOKEN, 'nobody-has-this-token']) {
        // Nobody's body is not read.
        for (const body of method === 'get' ? [undefined] : bodies.slice(token.startsWith('nobody') ? -1 : 0)) {
          const answer = await fetch(`${app.apiUrl}${place}`, {
            method: method.toUpperCase(),
            headers: {
              authorization: `Bearer ${token}`,
              ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          });
          const { status, headers } = answer;
          const said = `${status} ${JSON.stringify([...headers])} ${await answer.text()}`;
          heard.push({ asked: `${method} ${path}`, said });
        }
      }
    }
  }
}

describe('api: secrets', () => {
  it('are in no answer, but for the one that a reservation tells once', async () => {
    const app = await startTestApp();
    const tail = await followTail(app);
    const link = await app.reserve('reserved');
    const registration = { reference: 'registered', amount: '100.00', id: 'pl_registered', webhookSecret: CHOSEN };
    expect((await app.api('/v1/links', { body: registration })).status).toBe(201);
    const body = paymentEvent({ linkId: 'pl_reserved', amount: '100.00' });
    const signature = signatureHex(link.webhookSecret, '1700000000000', body);
    await app.deliver(link, body, signedHeaders(link.webhookSecret, body, '1700000000000'));
    await app.deliver(link, body, signedHeaders('another-secret-altogether', body));
    await app.deliver(link, 'not JSON');
    const { webhookUrl, webhookSecret } = link;
    const nested = JSON.stringify({ webhookUrl, webhook_secret: webhookSecret });
    const escaped = webhookUrl.replaceAll('/', String.raw`\u002f`);
    const data = { webhookUrl, webhookSecret, webhook_secret: webhookSecret, nested, title: 'A chair' };
    const said = JSON.stringify({ id: 'evt_told', data }).replace('"title"', `"escaped":"${escaped}","title"`);
    for (const each of [said, said.replaceAll('/', '\\/')]) await app.deliver(link, each);
    const fresh = signedHeaders(link.webhookSecret, body);
    await deliverAndSee(app, link, body, 'paid');
    await app.deliver(link, body, fresh);
    await eventually(async () => expect((await app.api('/v1/rejections')).body.rejections).toHaveLength(1));

    const heard: Heard[] = [];
    await askEverything(app, heard);
    expect(new Set(tail.lines.map(({ what }) => what))).toContain('rejected');
    heard.push({ asked: `get ${ENDLESS}`, said: JSON.stringify([tail.response.headers, tail.lines]) });
    expect(new Set(heard.map(({ asked }) => asked)).size).toBe(ROUTES.length);
    for (const url of ['/livez', '/readyz', '/nothing']) {
      const { text } = await request(app.apiUrl).get(url);
      heard.push({ asked: url, said: text });
    }

    const shown = heard.filter(({ asked }) => asked === 'get /v1/events/:id').map(({ said }) => said);
    expect(shown.filter((text) => text.includes('A chair') && text.includes('****'))).toHaveLength(2);
    for (const [name, secret] of secretsOf(app, {
      'reserved secret': link.webhookSecret,
      'chosen secret': CHOSEN,
      'corrected secret': CORRECTED,
      'stale signature': signature,
      'fresh signature': fresh['x-service-signature'] as string,
    })) {
      const told = heard
        .filter(({ said }) => said.includes(secret) || said.toLowerCase().includes(secret))
        .map(({ asked }) => asked);
      expect([name, told]).toEqual([name, []]);
    }
    const token = link.webhookUrl.split('/').at(-1) as string;
    const toldToken = heard.filter(({ said }) => said.includes(token)).map(({ asked }) => asked);
    expect(new Set(toldToken)).toEqual(new Set(['post /v1/links']));
  });
});

/** Everything that no answer may hold, by name, in the spellings in which it could come out. */
function secretsOf(app: TestApp, known: Record<string, string>): [string, string][] {
  const key = readFileSync(`${app.storePath}.key`, 'utf8').trim();
  const db = new Database(app.storePath, { readonly: true });
  const sealed = db.prepare('SELECT sealed_secret AS a, secret_fingerprint AS b FROM link').all() as {
    a: Buffer;
    b: Buffer;
  }[];
  const macs = db.prepare('SELECT mac FROM inbox').pluck().all() as Buffer[];
  db.close();
  const bytes = [Buffer.from(key, 'base64'), ...sealed.flatMap(({ a, b }) => [a, b]), ...macs];
  expect(bytes.length).toBeGreaterThan(6);
  return [
    ...Object.entries(known),
    ['operator token', OPERATOR_TOKEN],
    ['shop token', SHOP_TOKEN],
    ['secrets key', key],
    ...bytes.flatMap((one, i): [string, string][] => [
      [`bytes ${i} in hex`, one.toString('hex')],
      [`bytes ${i} in base64`, one.toString('base64').replace(/=+$/, '')],
      [`bytes ${i} as a JSON list`, [...one.subarray(0, 12)].join(',')],
    ]),
  ];
}
