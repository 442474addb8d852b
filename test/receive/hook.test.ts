import { randomBytes } from 'node:crypto';
import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { peek, tamper } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { eventsOf, expectSaid, SAID } from './answers.ts';

const app = sharedApp();

async function reserved(amount?: string) {
  return app().reserve(freshReference(), amount);
}

function post(url: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) {
  return fetch(url, { method: 'POST', body, headers });
}

const unknownUrl = () => `${app().hooksUrl}/hooks/${randomBytes(24).toString('base64url')}`;

describe('receive: an authentic, fresh delivery', () => {
  it('is recorded', async () => {
    const link = await reserved();
    await expectSaid(await app().deliver(link, paymentEvent()), SAID.recorded);
  });

  it('is on the disk, byte for byte, when it is acknowledged', async () => {
    const link = await reserved();
    const body = Buffer.from('\ufeff{ "id": "evt_bytes", "note": "ção" }\r\n');
    await expectSaid(await post(link.webhookUrl, body, signedHeaders(link.webhookSecret, body)), SAID.recorded);
    const [row] = peek(
      app().storePath,
      `SELECT b.body, i.event_id FROM inbox i JOIN inbox_body b ON b.inbox_key = i.key
       JOIN link l ON l.key = i.link_key WHERE l.token = ?`,
      link.webhookUrl.split('/').at(-1),
    );
    expect(row).toEqual({ body, event_id: 'evt_bytes' });
  });

  it('is a duplicate when its bytes come again, signed again', async () => {
    const link = await reserved();
    const body = paymentEvent();
    await app().deliver(link, body);
    const again = signedHeaders(link.webhookSecret, body, String(Date.now() - 60_000));
    await expectSaid(await app().deliver(link, body, again), SAID.duplicate);
    expect(await eventsOf(app(), link.reference)).toMatchObject([{ duplicates: 1, conflict: false }]);
  });

  it('is flagged as a conflict, and processed, when its event id came before with other content', async () => {
    const link = await reserved();
    await app().deliver(link, paymentEvent({ id: 'evt_conflict', status: 'PENDING' }));
    await expectSaid(await app().deliver(link, paymentEvent({ id: 'evt_conflict' })), SAID.recorded);
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('paid'));
    const events = await eventsOf(app(), link.reference);
    expect(events.map(({ conflict }) => conflict)).toEqual([true, false]);
    const { attention } = (await app().api('/v1/attention')).body;
    const [newest, first] = events.map(({ id }) => id);
    expect(attention).toContainEqual(
      expect.objectContaining({
        kind: 'event_conflict',
        reference: link.reference,
        count: 1,
        detail: expect.stringContaining(`other content (events ${first} and ${newest})`),
      }),
    );
  });

  it('of several events of a payment under its own id is settled each time, and is no matter', async () => {
    const link = await reserved();
    for (const [status, state] of [
      ['PENDING', 'payment_pending'],
      ['COMPLETED', 'paid'],
      ['REFUNDED', 'refunded'],
    ] as const) {
      await expectSaid(
        await app().deliver(link, paymentEvent({ id: 'pay_own', paymentId: 'pay_own', status })),
        SAID.recorded,
      );
      await eventually(async () => expect((await app().order(link.reference)).state).toBe(state));
    }
    const kindsOf = async () => {
      const { attention } = (await app().api('/v1/attention')).body;
      return attention.flatMap(({ kind, reference }: { kind: string; reference: string }) =>
        reference === link.reference ? [kind] : [],
      );
    };
    expect(await kindsOf()).not.toContain('event_conflict');
    const other = paymentEvent({ id: 'pay_own', paymentId: 'pay_2' });
    await expectSaid(await app().deliver(link, other), SAID.recorded);
    expect(await kindsOf()).toContain('event_conflict');
  });

  it('without an event id is known by its digest, so that its repetition is a duplicate', async () => {
    const link = await reserved();
    const body = paymentEvent().replace(/"id":"evt_\d+",/, '');
    await expectSaid(await app().deliver(link, body), SAID.recorded);
    await expectSaid(await app().deliver(link, body), SAID.duplicate);
    const [event] = await eventsOf(app(), link.reference);
    expect(event?.eventId).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it.each(['payment_link.created', 'payment_link.unheard_of', null])('of type %j is recorded', async (type) => {
    const link = await reserved();
    const body = JSON.stringify({ id: 'evt_other', type });
    await expectSaid(await app().deliver(link, body), SAID.recorded);
    await eventually(async () => expect(await eventsOf(app(), link.reference)).toMatchObject([{ status: 'done' }]));
  });
});

describe("receive: an event whose id is its link's", () => {
  /** Registers a link of an id, in one step or in two. */
  const registered = async (id: string, isReserved: boolean) => {
    const reference = freshReference();
    const webhookSecret = 'a signing secret of this test';
    const fields = { reference, amount: '100.00' };
    const own = { ...fields, id, webhookSecret };
    if (isReserved) {
      const link = await reserved();
      await app().api('/v1/links', { body: { reference: link.reference, amount: '100.00', id } });
      return link;
    }
    const { body } = await app().api('/v1/links', { body: own });
    return { reference, webhookSecret, webhookUrl: body.link.webhookUrl.replace(/^.*(?=\/hooks)/, app().hooksUrl) };
  };

  it.each([
    ['registered', false],
    ['reserved, and bound later', true],
  ])('is known by its digest, and is no conflict: %s', async (name, isReserved) => {
    const id = `pl_${name.slice(0, 8)}_own_id`;
    const link = await registered(id, isReserved);
    const says = (paymentStatus: string) => JSON.stringify({ id, paymentStatus, amount: 100, currency: 'BRL' });
    for (const status of ['PENDING', 'COMPLETED']) {
      await expectSaid(await app().deliver(link, says(status)), SAID.recorded);
      await expectSaid(await app().deliver(link, says(status)), SAID.duplicate);
    }
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('paid'));
    const digest = { eventId: expect.stringMatching(/^sha256:/), conflict: false, duplicates: 1 };
    expect(await eventsOf(app(), link.reference)).toMatchObject([digest, digest]);
    const { attention } = (await app().api('/v1/attention')).body;
    expect(attention.filter(({ reference }: { reference: string }) => reference === link.reference)).toEqual([]);
  });
});

describe('receive: an authentic delivery that cannot be read', () => {
  it.each([
    ['not JSON', Buffer.from('not JSON')],
    ['not UTF-8', Buffer.from('7b226964223a22ff227d', 'hex')],
    ['empty', Buffer.alloc(0)],
    ['nested 33 deep', Buffer.from('['.repeat(33) + ']'.repeat(33))],
    ['two JSON texts', Buffer.from('{}{}')],
  ])('is acknowledged as recorded, and waits for a person and a check: %s', async (_name, body) => {
    const link = await reserved();
    const token = link.webhookUrl.split('/').at(-1);
    // Registering queued a check already; without it the delivery must queue its own.
    tamper(app().storePath, 'DELETE FROM link_check WHERE link_key = (SELECT key FROM link WHERE token = ?)', token);
    await expectSaid(await post(link.webhookUrl, body, signedHeaders(link.webhookSecret, body)), SAID.unreadable);
    const checks = peek(
      app().storePath,
      'SELECT reason FROM link_check c JOIN link l ON l.key = c.link_key WHERE l.token = ?',
      token,
    );
    expect(checks).toEqual([{ reason: 'unreadable' }]);
    await eventually(async () => {
      const events = await eventsOf(app(), link.reference);
      expect(events).toMatchObject([{ status: 'dead', fault: { code: 'unreadable_event' } }]);
    });
    const [event] = await eventsOf(app(), link.reference);
    const shown = (await app().api(`/v1/events/${event?.id}`)).body.event;
    expect(Buffer.from(shown.bodyBase64, 'base64')).toEqual(body);
    const { attention } = (await app().api('/v1/attention')).body;
    const mine = attention.filter(({ reference }: { reference: string }) => reference === link.reference);
    const detail = expect.stringContaining(`settled events show ${event?.id}`);
    expect(mine).toEqual([
      expect.objectContaining({ kind: 'event_not_understood', subject: link.reference, count: 1, detail }),
    ]);
  });
});

describe('receive: a delivery that is not authentic', () => {
  const body = paymentEvent();
  const right = (secret: string) => signedHeaders(secret, body);

  it.each<[string, (secret: string) => Record<string, string>]>([
    ['no headers', () => ({})],
    ['no signature', (secret) => ({ 'x-service-timestamp': right(secret)['x-service-timestamp'] as string })],
    ['no timestamp', (secret) => ({ 'x-service-signature': right(secret)['x-service-signature'] as string })],
    ['an empty signature', (secret) => ({ ...right(secret), 'x-service-signature': '' })],
    ['a malformed signature', (secret) => ({ ...right(secret), 'x-service-signature': 'nonsense' })],
    ['a malformed timestamp', (secret) => ({ ...right(secret), 'x-service-timestamp': '1.7e12' })],
    ['a signature of another secret', () => right('another-secret-of-24-bytes')],
    ['a signature of another body', (secret) => signedHeaders(secret, `${body} `)],
    [
      'a stale timestamp and a wrong signature',
      () => signedHeaders('another-secret-of-24-bytes', body, '1700000000000'),
    ],
  ])('is refused: %s', async (_name, headers) => {
    const link = await reserved();
    await expectSaid(await post(link.webhookUrl, body, headers(link.webhookSecret)), SAID.unauthorized);
    expect(await eventsOf(app(), link.reference)).toEqual([]);
    expect((await app().order(link.reference)).state).toBe('awaiting_payment');
  });

  it('is refused at a token that no link has', async () => {
    await expectSaid(await post(unknownUrl(), body, right('some-secret-of-24-bytes!')), SAID.unauthorized);
  });

  it.each(['x', 'hooks', '%F0%9F%92%B3', 'a'.repeat(500), '%00', '..%2f..'])(
    'is refused at a token that is none: %s',
    async (token) => {
      const answer = await post(`${app().hooksUrl}/hooks/${token}`, body, right('some-secret-of-24-bytes!'));
      await expectSaid(answer, SAID.unauthorized);
    },
  );

  it('learns nothing of whether the token or the signature was wrong', async () => {
    const link = await reserved();
    const headers = right('another-secret-of-24-bytes');
    const answers = [await post(link.webhookUrl, body, headers), await post(unknownUrl(), body, headers)];
    const [known, unknown] = await Promise.all(
      answers.map(async (answer) => {
        const shown = new Map(answer.headers);
        expect(shown.get('x-request-id')).toBeTruthy();
        for (const name of ['date', 'x-request-id']) shown.delete(name);
        return { status: answer.status, headers: Object.fromEntries(shown), body: await answer.text() };
      }),
    );
    expect(unknown).toEqual(known);
    expect(known?.status).toBe(401);
  });
});

describe('receive: the encoding of a body', () => {
  const plain = paymentEvent();
  const encodings = {
    gzip: gzipSync(plain),
    deflate: deflateSync(plain),
    br: Buffer.from(plain),
    'identity, gzip': Buffer.from(plain),
    GZIP: gzipSync(plain),
    nonsense: Buffer.from(plain),
  };

  for (const [encoding, body] of Object.entries(encodings)) {
    it(`is refused, although signed: ${encoding}`, async () => {
      const link = await reserved();
      const headers = { ...signedHeaders(link.webhookSecret, body), 'content-encoding': encoding };
      await expectSaid(await post(link.webhookUrl, new Uint8Array(body), headers), SAID.encoded);
      expect(await eventsOf(app(), link.reference)).toEqual([]);
    });
  }

  it.each(['identity', 'Identity'])('may be named as %s', async (encoding) => {
    const link = await reserved();
    const headers = { ...signedHeaders(link.webhookSecret, plain), 'content-encoding': encoding };
    await expectSaid(await app().deliver(link, plain, headers), SAID.recorded);
  });
});

describe('receive: the content type', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json; charset=utf-16',
    'application/x-www-form-urlencoded',
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'nonsense',
    ';;;',
  ])('does not matter: %s', async (contentType) => {
    const link = await reserved();
    const body = paymentEvent();
    const headers = { ...signedHeaders(link.webhookSecret, body), 'content-type': contentType };
    await expectSaid(await app().deliver(link, body, headers), SAID.recorded);
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('paid'));
  });

  it('may be missing', async () => {
    const link = await reserved();
    const body = Buffer.from(paymentEvent());
    const { 'content-type': _dropped, ...headers } = signedHeaders(link.webhookSecret, body);
    await expectSaid(await post(link.webhookUrl, body, headers), SAID.recorded);
  });
});

describe('receive: the route', () => {
  it.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('takes no %s', async (method) => {
    const link = await reserved();
    for (const url of [link.webhookUrl, unknownUrl(), `${app().hooksUrl}/hooks`]) {
      const answer = await fetch(url, { method });
      const { methodNotAllowed } = SAID;
      if (method === 'HEAD') expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
      else await expectSaid(answer, methodNotAllowed);
    }
  });

  it.each<[string, (path: string) => string]>([
    ['in capitals', (path) => path.replace('/hooks', '/Hooks')],
    ['with two slashes after it', (path) => `${path}//`],
    ['with two slashes', (path) => path.replace('/hooks', '//hooks')],
    ['with more behind it', (path) => `${path}/more`],
    ['under another prefix', (path) => `/v1${path}`],
  ])('is at no other address: %s', async (_name, change) => {
    const link = await reserved();
    const body = paymentEvent();
    const url = `${app().hooksUrl}${change(new URL(link.webhookUrl).pathname)}`;
    const answer = await post(url, body, signedHeaders(link.webhookSecret, body));
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ title: 'not_found' });
    expect(await eventsOf(app(), link.reference)).toEqual([]);
  });

  it('is not on the private listener', async () => {
    const link = await reserved();
    const body = paymentEvent();
    const url = `${app().apiUrl}${new URL(link.webhookUrl).pathname}`;
    expect((await post(url, body, signedHeaders(link.webhookSecret, body))).status).toBe(404);
  });

  it('takes a token with the case of its letters changed for another token', async () => {
    const link = await reserved();
    const body = paymentEvent();
    const token = link.webhookUrl.split('/').at(-1) as string;
    const changed = [...token].map((c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase())).join('');
    const url = `${app().hooksUrl}/hooks/${changed}`;
    await expectSaid(await post(url, body, signedHeaders(link.webhookSecret, body)), SAID.unauthorized);
  });
});
