import { describe, expect, it } from 'vitest';
import { paymentEvent, signatureHex, signedHeaders } from '../support/deliveries.ts';
import { type RawAnswer, rawConnection } from '../support/http.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventsOf, SAID } from './answers.ts';

const app = sharedApp();

const BODY = paymentEvent({ id: 'evt_raw' });
const TIMESTAMP = String(Date.now());
const WRONG = 'ab'.repeat(32);

/** A link, and what a genuine delivery for it has: a test changes one line of it. */
async function genuine(body = BODY) {
  const link = await app().reserve(freshReference());
  const signature = signatureHex(link.webhookSecret, TIMESTAMP, body);
  const path = new URL(link.webhookUrl).pathname;
  return {
    link,
    path,
    signature,
    lines: [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Service-Signature: ${signature}`,
      `X-Service-Timestamp: ${TIMESTAMP}`,
    ],
  };
}

function expectRaw(answer: RawAnswer, said: { status: number; body: object; headers?: object }): void {
  expect([answer.status, JSON.parse(answer.body)]).toEqual([said.status, said.body]);
  expect(answer.headers).toMatchObject(said.headers ?? {});
}

async function sendRaw(lines: readonly string[], body = BODY): Promise<RawAnswer> {
  const connection = await rawConnection(app().hooksUrl);
  connection.send(`${lines.join('\r\n')}\r\n\r\n${body}`);
  return connection.answer();
}

describe('receive: header lines', () => {
  it('of a genuine delivery are accepted', async () => {
    const { lines } = await genuine();
    expectRaw(await sendRaw(lines), SAID.recorded);
  });

  it('are accepted in other letters and with spaces around the values', async () => {
    const { lines, signature } = await genuine();
    const changed = lines.map((line) =>
      line.startsWith('X-Service-Signature') ? `x-SERVICE-signature:  \t${signature}\t ` : line,
    );
    expectRaw(await sendRaw(changed), SAID.recorded);
  });

  it.each<[string, (parts: { signature: string }) => string]>([
    ['the right signature again', ({ signature }) => `X-Service-Signature: ${signature}`],
    ['a wrong signature after the right one', () => `X-Service-Signature: ${WRONG}`],
    ['an empty signature', () => 'X-Service-Signature:'],
    ['the signature again in other letters', ({ signature }) => `x-service-SIGNATURE: ${signature}`],
    ['the right timestamp again', () => `X-Service-Timestamp: ${TIMESTAMP}`],
    ['another timestamp', () => 'X-Service-Timestamp: 1760000000001'],
    ['an empty timestamp', () => 'X-Service-Timestamp:'],
  ])('are refused with %s', async (_name, more) => {
    const parts = await genuine();
    expectRaw(await sendRaw([...parts.lines, more(parts)]), SAID.unauthorized);
    expect(await eventsOf(app(), parts.link.reference)).toEqual([]);
  });

  it('are refused with a wrong signature before the right one', async () => {
    const { lines } = await genuine();
    const [request = '', ...others] = lines;
    expectRaw(await sendRaw([request, `X-Service-Signature: ${WRONG}`, ...others]), SAID.unauthorized);
  });

  it('do not count if they come after the body', async () => {
    const { lines, signature, link } = await genuine();
    const kept = lines.filter((line) => !/^(Content-Length|X-Service-Signature)/.test(line));
    const chunked = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\nX-Service-Signature: ${signature}\r\n\r\n`;
    const answer = await sendRaw([...kept, 'Transfer-Encoding: chunked', 'Trailer: X-Service-Signature'], chunked);
    expectRaw(answer, SAID.unauthorized);
    expect(await eventsOf(app(), link.reference)).toEqual([]);
  });
});

describe('receive: requests that two servers could read in two ways', () => {
  const length = Buffer.byteLength(BODY);

  it.each<[string, (lines: string[]) => string[]]>([
    ['a length and chunks', (lines) => [...lines, 'Transfer-Encoding: chunked']],
    ['chunks and something else', (lines) => [...without(lines, 'Content-Length'), 'Transfer-Encoding: chunked, x']],
    ['the same length twice', (lines) => [...lines, `Content-Length: ${length}`]],
    ['two lengths', (lines) => [...lines, 'Content-Length: 1']],
    [
      'two lengths in one line',
      (lines) => [...without(lines, 'Content-Length'), `Content-Length: ${length}, ${length}`],
    ],
    ['a length with a sign', (lines) => [...without(lines, 'Content-Length'), `Content-Length: +${length}`]],
    ['a length that is no number', (lines) => [...without(lines, 'Content-Length'), 'Content-Length: many']],
    ['a length below zero', (lines) => [...without(lines, 'Content-Length'), 'Content-Length: -1']],
    ['a folded line', (lines) => [...lines, 'X-Note: one\r\n two']],
    ['a space before the colon', (lines) => [...lines, 'X-Note : one']],
    ['a line without a colon', (lines) => [...lines, 'nonsense']],
    ['a NUL in a value', (lines) => [...lines, 'X-Note: one\0two']],
    ['a NUL in the signature', (lines) => lines.map((line) => line.replace('Signature: ', 'Signature: \0'))],
    ['a bare line feed', (lines) => [...lines, 'X-Note: one\nX-Other: two']],
    ['a bare carriage return', (lines) => [...lines, 'X-Note: one\rX-Other: two']],
    ['no host', (lines) => without(lines, 'Host')],
    ['another protocol', (lines) => [(lines[0] as string).replace('HTTP/1.1', 'HTTP/9.9'), ...lines.slice(1)]],
  ])('are refused, and the connection is closed: %s', async (_name, change) => {
    const { lines, link } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    connection.send(`${change(lines).join('\r\n')}\r\n\r\n${BODY}`);
    expect(await connection.closed).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n(?:[^\r]+\r\n)*?Connection: close\r\n/i);
    expect(await eventsOf(app(), link.reference)).toEqual([]);
  });

  it('are not routed by their host', async () => {
    const { lines } = await genuine();
    const changed = lines.map((line) => (line.startsWith('Host') ? 'Host: elsewhere.example' : line));
    expectRaw(await sendRaw(changed), SAID.recorded);
  });
});

function without(lines: readonly string[], name: string): string[] {
  return lines.filter((line) => !line.startsWith(name));
}

const MORE_THAN_FITS = 256 * 1024 + 1;

describe('receive: a body that is too large', () => {
  it('is refused by its announced length, before a byte of it is sent', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const announced = [...without(lines, 'Content-Length'), `Content-Length: ${MORE_THAN_FITS}`];
    connection.send(`${announced.join('\r\n')}\r\n\r\n`);
    expectRaw(await connection.answer(), SAID.tooLarge);
    await connection.closed;
  });

  it('is refused while it comes in chunks, although its end is never sent', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const chunked = [...without(lines, 'Content-Length'), 'Transfer-Encoding: chunked'];
    connection.send(`${chunked.join('\r\n')}\r\n\r\n`);
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    for (let i = 0; i < 9; i++) connection.send(chunk);
    expectRaw(await connection.answer(), SAID.tooLarge);
    await connection.closed;
  });

  it('may be one chunk that claims gigabytes: reading stops at the limit', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const chunked = [...without(lines, 'Content-Length'), 'Transfer-Encoding: chunked'];
    connection.send(`${chunked.join('\r\n')}\r\n\r\nFFFFFFFF\r\n`);
    connection.send('x'.repeat(MORE_THAN_FITS + 65_536));
    expectRaw(await connection.answer(), SAID.tooLarge);
    await connection.closed;
  });

  it('is refused before its token is looked at', async () => {
    const connection = await rawConnection(app().hooksUrl);
    const lines = ['POST /hooks/unknown HTTP/1.1', 'Host: localhost', `Content-Length: ${MORE_THAN_FITS}`];
    connection.send(`${lines.join('\r\n')}\r\n\r\n`);
    expectRaw(await connection.answer(), SAID.tooLarge);
  });

  it('of exactly the limit is taken in chunks', async () => {
    const body = `{"id":"evt_chunks","data":"${'x'.repeat(256 * 1024 - 29)}"}`;
    expect(body).toHaveLength(256 * 1024);
    const { lines } = await genuine(body);
    const chunked = [...without(lines, 'Content-Length'), 'Transfer-Encoding: chunked'];
    const half = body.length / 2;
    const chunks = [body.slice(0, half), body.slice(half)].map((part) => `${half.toString(16)}\r\n${part}\r\n`);
    expectRaw(await sendRaw(chunked, `${chunks.join('')}0\r\n\r\n`), SAID.recorded);
  });
});

describe('receive: a sender that waits for 100 Continue', () => {
  it('gets 100 Continue, and its delivery is recorded', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    connection.send(`${[...lines, 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`);
    await connection.continued();
    connection.send(BODY);
    expectRaw(await connection.answer(), SAID.recorded);
  });

  it.each<[string, number, (lines: string[]) => string[]]>([
    ['100 gigabytes', 413, (lines) => [...without(lines, 'Content-Length'), 'Content-Length: 100000000000']],
    ['an encoded body', 415, (lines) => [...lines, 'Content-Encoding: gzip']],
  ])('never gets 100 Continue for %s', async (_what, status, change) => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    connection.send(`${[...change(lines), 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`);
    const received = await connection.closed;
    expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(received).not.toContain('100 Continue');
  });

  it('with another expectation is refused', async () => {
    const { lines } = await genuine();
    expect((await sendRaw([...lines, 'Expect: a miracle'])).status).toBe(417);
  });
});

describe('receive: a connection', () => {
  it('serves one delivery after the other', async () => {
    const { lines, link } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const request = `${lines.join('\r\n')}\r\n\r\n${BODY}`;
    connection.send(request);
    expectRaw(await connection.answer(), SAID.recorded);
    connection.send(request);
    expectRaw(await connection.answer(), SAID.duplicate);
    expect(await eventsOf(app(), link.reference)).toHaveLength(1);
  });

  it.each([
    ['another delivery', (request: string) => request],
    ['thousands', (request: string) => request.repeat(4_000)],
    ['one that waits to go on', () => 'POST /hooks/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n'],
    ['one that expects a miracle', () => 'POST /hooks/x HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n'],
    ['one without a host', () => 'GET /livez HTTP/1.1\r\n\r\n'],
    ['what is no request', () => 'nonsense\r\n\r\n'],
  ])('that does not wait for an answer gets that one and no other: behind it %s', async (_name, behind) => {
    const { lines, link } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const request = `${lines.join('\r\n')}\r\n\r\n${BODY}`;
    connection.send(request + behind(request));
    expectRaw(await connection.answer(), { ...SAID.recorded, headers: { connection: 'close' } });
    expect(await connection.closed).toBe('');
    expect(await eventsOf(app(), link.reference)).toMatchObject([{ duplicates: 0 }]);
  });

  it('that waits for each answer keeps its connection', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    for (let n = 0; n < 20; n++) {
      connection.send(`${lines.join('\r\n')}\r\n\r\n${BODY}`);
      const headers = { connection: 'keep-alive' };
      expectRaw(await connection.answer(), { ...(n === 0 ? SAID.recorded : SAID.duplicate), headers });
    }
  });

  it('that asks for what is answered at once does not get the next one answered either', async () => {
    const connection = await rawConnection(app().hooksUrl);
    connection.send('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
    expect((await connection.answer()).headers).toMatchObject({ connection: 'close' });
    expect(await connection.closed).toBe('');
  });

  it('that ends within a body leaves nothing behind', async () => {
    const { lines, link } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    connection.send(`${lines.join('\r\n')}\r\n\r\n${BODY.slice(0, -1)}`);
    connection.end();
    await connection.closed;
    expect(await eventsOf(app(), link.reference)).toEqual([]);
    // The same delivery, whole, is new.
    const headers = signedHeaders(link.webhookSecret, BODY);
    expect(await (await app().deliver(link, BODY, headers)).json()).toEqual(SAID.recorded.body);
  });
});

describe('receive: a body in chunks', () => {
  const unsized = (lines: readonly string[]) => [
    ...without([...lines], 'Content-Length'),
    'Transfer-Encoding: chunked',
  ];
  const inPieces = (body: string) => `${[...body].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`;
  const tiny = (pieces: number) =>
    `POST /hooks/${'x'.repeat(32)} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${inPieces('x'.repeat(pieces))}`;

  it('of one byte each is recorded, and its connection serves the next delivery, in chunks or not', async () => {
    const { lines } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const chunked = `${unsized(lines).join('\r\n')}\r\n\r\n${inPieces(BODY)}`;
    const headers = { connection: 'keep-alive' };
    connection.send(chunked);
    expectRaw(await connection.answer(), { ...SAID.recorded, headers });
    for (const again of [`${lines.join('\r\n')}\r\n\r\n${BODY}`, chunked]) {
      connection.send(again);
      expectRaw(await connection.answer(), { ...SAID.duplicate, headers });
    }
  });

  it('gets its answer and no other, if the sender does not wait', async () => {
    const { lines, link } = await genuine();
    const connection = await rawConnection(app().hooksUrl);
    const chunked = `${unsized(lines).join('\r\n')}\r\n\r\n${inPieces(BODY)}`;
    connection.send(chunked.repeat(100));
    expectRaw(await connection.answer(), { ...SAID.recorded, headers: { connection: 'close' } });
    expect(await connection.closed).toBe('');
    expect(await eventsOf(app(), link.reference)).toMatchObject([{ duplicates: 0 }]);
  });

  it('is not read to its end if there are too many', async () => {
    const connection = await rawConnection(app().hooksUrl);
    connection.send(tiny(2_049));
    const answer = await connection.answer();
    expect([answer.status, answer.headers.connection]).toEqual([503, 'close']);
    expect(await connection.closed).toBe('');
  });
});
