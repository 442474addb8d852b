import { describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { peek, tamper } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { eventsOf, expectSaid, SAID } from './answers.ts';

const app = sharedApp();

/** A link that the shop made with a webhookUrl of its own: only its id and secret are known here. */
async function registered() {
  const reference = freshReference();
  const link = { reference, id: `pl_${reference}`, webhookSecret: `the-secret-of-${reference}!` };
  const { status } = await app().api('/v1/links', { body: { ...link, amount: '100.00' } });
  expect(status).toBe(201);
  return link;
}

type Link = Awaited<ReturnType<typeof registered>>;

function post(body: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${app().hooksUrl}/hooks`, { method: 'POST', body, headers });
}

const completed = (rest: object) =>
  JSON.stringify({
    id: 'evt_shared',
    paymentStatus: 'COMPLETED',
    latestPayment: { id: 'pay_1', status: 'COMPLETED' },
    ...rest,
  });

/** What a refused delivery could leave behind for a link. */
function traces({ id }: Link) {
  const count = (table: string) =>
    peek(
      app().storePath,
      `SELECT count(*) AS n FROM ${table} t JOIN link l ON l.key = t.link_key WHERE l.link_id = ?`,
      id,
    )[0].n;
  return { events: count('inbox'), hints: count('hint'), rejections: count('rejection'), checks: count('link_check') };
}

const NONE = { events: 0, hints: 0, rejections: 0, checks: 0 };

/** Registering queues a check; it is taken away to see whether a delivery queues one. */
function forgetChecks({ id }: Link): void {
  tamper(app().storePath, 'DELETE FROM link_check WHERE link_key = (SELECT key FROM link WHERE link_id = ?)', id);
}

describe('receive: the shared route', () => {
  const inLink = (id: unknown) => [{ paymentLink: { id } }, { link: { id } }, { paymentLinkId: id }, { linkId: id }];
  const places = (id: unknown) => [
    ...inLink(id),
    ...inLink(id).map((data) => ({ data })),
    ...inLink(id).map((payload) => ({ payload })),
  ];

  it.each(places('ID').map((place) => [JSON.stringify(place)]))('finds the link id in %s', async (place) => {
    const link = await registered();
    const body = completed(JSON.parse(place.replace('ID', link.id)));
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('paid'));
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.duplicate);
  });

  it('finds a link id that several places agree on', async () => {
    const link = await registered();
    const body = completed({ linkId: link.id, data: { paymentLink: { id: link.id } } });
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });

  it.each([
    ['in a list of one', (id: string) => `[${completed({ linkId: id })}]`],
    ['in snake case, three objects deep', (id: string) => `{"event":{"data":{"object":{"link_id":"${id}"}}}}`],
  ])('finds a link id %s', async (_name, write) => {
    const link = await registered();
    const body = write(link.id);
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });

  it('finds a link id 32 levels deep in company', async () => {
    const link = await registered();
    const body = `{"linkId":"${link.id}","note":${'['.repeat(31)}${']'.repeat(31)}}`;
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });

  it('finds a link id in a body of 2000 values', async () => {
    const link = await registered();
    const body = `{"linkId":"${link.id}","note":[${Array(1997).fill('0').join(',')}]}`;
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });

  it.each<[string, (id: string) => string]>([
    ['no link id', () => completed({})],
    ['an empty link id', () => completed({ linkId: '' })],
    ['a link id that is no text', (id) => completed({ linkId: { id } })],
    ['a link id in no accepted place', (id) => completed({ paymentLink: { linkId: id }, id })],
    ['two link ids that disagree', (id) => completed({ linkId: id, paymentLinkId: 'pl_other' })],
    ['two link ids that disagree, ours first', (id) => completed({ paymentLinkId: id, linkId: 'pl_other' })],
    [
      'two link ids that disagree, the other one inside',
      (id) => completed({ paymentLink: { id }, data: { link: { id: 'pl_other' } } }),
    ],
    ['two link ids that disagree, ours inside', (id) => completed({ linkId: 'pl_other', data: { link: { id } } })],
    ['the id of an unknown link', () => completed({ linkId: 'pl_nobody' })],
    ['a link id that differs in case', (id) => completed({ linkId: id.toUpperCase() })],
    ['nesting 33 deep', (id) => `{"linkId":"${id}","note":${'['.repeat(32)}${']'.repeat(32)}}`],
    ['2001 values', (id) => `{"linkId":"${id}","note":[${Array(1998).fill('0').join(',')}]}`],
    [
      '2001 objects',
      (id) => `{"linkId":"${id}","note":${'{"a":'.repeat(20)}0${'}'.repeat(20)}${',"b":{}'.repeat(1000)}}`,
    ],
    ['a body that is not JSON', (id) => `linkId=${id}`],
    ['a body that is a list of two', (id) => `[{"linkId":"${id}"},{"linkId":"${id}"}]`],
    ['a link id inside of text', (id) => completed({ data: JSON.stringify({ linkId: id }) })],
    ['a body that is text', (id) => JSON.stringify(completed({ linkId: id }))],
    ['no body', () => ''],
  ])('refuses %s, although signed', async (_name, write) => {
    const link = await registered();
    forgetChecks(link);
    const body = write(link.id);
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.unauthorized);
    expect(traces(link)).toEqual(NONE);
  });

  it.each<[string, (secret: string, body: string) => Record<string, string>]>([
    ['no signature', () => ({})],
    ['a malformed signature', (secret, body) => ({ ...signedHeaders(secret, body), 'x-service-signature': 'x' })],
    ['the signature of another secret', (_secret, body) => signedHeaders('another-secret-of-24-bytes', body)],
    ['the signature of another body', (secret, body) => signedHeaders(secret, `${body} `)],
  ])('refuses %s, and keeps its reason alone: no check for what anyone may send', async (_name, headers) => {
    const link = await registered();
    forgetChecks(link);
    const body = completed({ linkId: link.id });
    await expectSaid(await post(body, headers(link.webhookSecret, body)), SAID.unauthorized);
    await eventually(() => expect(traces(link)).toEqual({ ...NONE, rejections: 1, checks: 0 }));
    const whole = completed({ id: 'evt_after', linkId: link.id });
    await expectSaid(await post(whole, signedHeaders(link.webhookSecret, whole)), SAID.recorded);
    // Settling that one may queue a check, sooner or later.
    expect({ ...traces(link), checks: 0 }).toEqual({ ...NONE, events: 1, rejections: 1 });
  });

  it('answers an unknown link and a wrong signature alike', async () => {
    const link = await registered();
    const shown = async (linkId: string) => {
      const body = completed({ linkId });
      const answer = await post(body, signedHeaders('another-secret-of-24-bytes', body));
      const headers = new Map(answer.headers);
      for (const name of ['date', 'x-request-id']) headers.delete(name);
      return [answer.status, Object.fromEntries(headers), await answer.text()];
    };
    expect(await shown('pl_nobody')).toEqual(await shown(link.id));
  });

  it('keeps an authentic but stale delivery as a hint, and queues a check', async () => {
    const link = await registered();
    forgetChecks(link);
    const body = completed({ linkId: link.id });
    const stale = signedHeaders(link.webhookSecret, body, String(Date.now() - 301_000));
    await expectSaid(await post(body, stale), SAID.stale);
    expect(traces(link)).toEqual({ ...NONE, hints: 1, checks: 1 });
  });

  it('finds a link that was registered after it had been asked for in vain', async () => {
    const reference = freshReference();
    const link = { reference, id: `pl_${reference}`, webhookSecret: `the-secret-of-${reference}!` };
    const body = completed({ linkId: link.id });
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.unauthorized);
    expect((await app().api('/v1/links', { body: { ...link, amount: '100.00' } })).status).toBe(201);
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });

  it('refuses what one link signed for another', async () => {
    const [first, second] = [await registered(), await registered()];
    const body = completed({ linkId: second.id });
    await expectSaid(await post(body, signedHeaders(first.webhookSecret, body)), SAID.unauthorized);
    expect(await eventsOf(app(), second.reference)).toEqual([]);
  });

  it.each([
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n'],
    ['announced as the largest', 'Content-Length: 262144\r\n\r\n{'],
  ])('takes a genuine delivery while a hundred dribble bodies %s', async (_how, dribble) => {
    const link = await registered();
    for (let n = 0; n < 100; n++) {
      const connection = await rawConnection(app().hooksUrl);
      connection.send(`POST /hooks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n${dribble}`);
      // From here on its body is being read.
      await connection.continued();
    }
    const body = completed({ paymentLinkId: link.id });
    await expectSaid(await post(body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
  });
});

describe('names that are written with escapes', () => {
  /** Every letter of a name as `\uXXXX`. */
  const escaped = (name: string) =>
    [...name].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const escapedIn = (json: string, name: string) => json.replace(`"${name}"`, `"${escaped(name)}"`);

  /** A stranger sends the same names, but for one, which is as long and what the other's text begins with. */
  async function layInWait(json: string, name: string): Promise<void> {
    const lookAlike = JSON.stringify(escaped(name).slice(0, name.length));
    const body = json.replace(`"${name}"`, lookAlike);
    expect((await post(body, { 'content-type': 'application/json' })).status).toBe(401);
  }

  it('are read as they are meant, no matter what a stranger sent before', async () => {
    const { reference, id, webhookSecret } = await registered();
    const body = completed({ paymentLinkId: id });
    await layInWait(body, 'paymentStatus');
    const sent = escapedIn(body, 'paymentStatus');
    expect((await post(sent, signedHeaders(webhookSecret, sent))).status).toBe(200);
    await eventually(async () => expect((await app().api(`/v1/orders/${reference}`)).body.order.state).toBe('paid'));
  });

  it('are read as they are meant in a request of the shop', async () => {
    const reference = freshReference();
    const webhookSecret = `the-secret-of-${reference}!`;
    const body = JSON.stringify({ webhookSecret, reference, amount: '100.00', id: `pl_${reference}` });
    await layInWait(body, 'reference');
    const { status } = await fetch(`${app().apiUrl}/v1/links`, {
      method: 'POST',
      body: escapedIn(body, 'reference'),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    expect(status).toBe(201);
    expect((await app().api(`/v1/orders/${reference}`)).status).toBe(200);
  });
});
