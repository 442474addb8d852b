import { describe, expect, it } from 'vitest';
import type { ReservedLink, TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually, startOwnTime } from '../support/timing.ts';
import { deliverAndSee, get, orderPath, paidOrder, post, problem } from './client.ts';

const settled = sharedApp();
/** Of two tests that read whole lists: one of the events, the other of refused deliveries, which are none. */
const alone = sharedApp();

type Listed = { id: string; status: string; eventId: string; reference: string };

async function eventsOf(app: TestApp, query: string): Promise<Listed[]> {
  const { status, body } = await get(app, `/v1/events?${query}`);
  expect([status, body.errors]).toEqual([200, undefined]);
  return body.events;
}

/** The only event of an order, when it has come to the status. */
function eventIn(app: TestApp, reference: string, status: string): Promise<Listed> {
  return eventually(async () => {
    const [event] = await eventsOf(app, `reference=${encodeURIComponent(reference)}`);
    expect(event?.status).toBe(status);
    return event as Listed;
  });
}

/** Signs and sends bytes to a link. */
function deliverBytes(link: ReservedLink, body: Uint8Array<ArrayBuffer>): Promise<Response> {
  return fetch(link.webhookUrl, { method: 'POST', body, headers: signedHeaders(link.webhookSecret, body) });
}

describe('api: one event', () => {
  it('is shown with its body byte for byte, in base64 and as text', async () => {
    const link = await settled().reserve(freshReference());
    const body = `  ${paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00' })}\r\n\t`;
    await deliverAndSee(settled(), link, body, 'paid');
    const { id } = await eventIn(settled(), link.reference, 'done');
    const response = await get(settled(), `/v1/events/${id}`);
    const { event } = response.body;
    expect(Buffer.from(event.bodyBase64, 'base64').toString()).toBe(body);
    expect(event).toEqual({
      id,
      eventId: JSON.parse(body).id,
      type: 'payment_link.payment_status_changed',
      reference: link.reference,
      linkId: `pl_${link.reference}`,
      status: 'done',
      outcome: 'applied',
      rule: 'paid',
      attempt: 1,
      conflict: false,
      duplicates: 0,
      fault: null,
      reading: null,
      receivedAt: expect.stringMatching(/Z$/),
      dueAt: null,
      endedAt: expect.stringMatching(/Z$/),
      timestamp: expect.stringMatching(/^\d{13}$/),
      bodySha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      bodyBase64: expect.any(String),
      bodyText: body,
      bodyDropped: false,
    });
  });

  it.each([
    ['that is not UTF-8 has no text', new Uint8Array(256).map((_, i) => i), null],
    ['keeps a byte order mark', new TextEncoder().encode('\uFEFFx'), '\uFEFFx'],
  ])('%s, and loses no byte', async (_name, body, text) => {
    const link = await settled().reserve(freshReference());
    expect((await deliverBytes(link, body)).status).toBe(202);
    const { id } = await eventIn(settled(), link.reference, 'dead');
    const { event } = (await get(settled(), `/v1/events/${id}`)).body;
    expect(event.bodyText).toBe(text);
    expect(Buffer.from(event.bodyBase64, 'base64')).toEqual(Buffer.from(body));
    expect(event.fault).toEqual({ code: 'unreadable_event', message: expect.any(String) });
  });

  it.each(['999999', '0', '-1', '1.0', '1e1', 'abc', '99999999999999999999', '01', "1'"])(
    'is not called %s',
    async (id) => {
      problem(await get(settled(), `/v1/events/${id}`), 404, 'not_found');
      problem(await post(settled(), `/v1/events/${id}/replay`, {}), 404, 'not_found');
    },
  );
});

describe('api: the list of events', () => {
  it('goes from the newest to the oldest, by pages that stay in step while events arrive', async () => {
    const app = alone();
    const link = await app.reserve('order');
    const send = (id: string) => app.deliver(link, paymentEvent({ id, linkId: 'pl_1', status: 'PENDING' }));
    for (let i = 0; i < 7; i++) await send(`old-${i}`);
    const seen: string[] = [];
    let cursor: string | null = '';
    for (let page = 0; cursor !== null; page++) {
      const { body } = await get(app, `/v1/events?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...body.events.map(({ eventId }: Listed) => eventId));
      cursor = body.nextCursor;
      await send(`new-${page}`);
    }
    expect(seen).toEqual(Array.from({ length: 7 }, (_, i) => `old-${6 - i}`));
  });

  it('holds no bodies', async () => {
    const { reference } = await paidOrder(settled());
    const { text } = await get(settled(), `/v1/events?reference=${reference}`);
    expect(text).not.toContain('latestPayment');
  });
});

// flow/poison.test.ts replays what is dead.
describe('api: replaying an event', () => {
  it('pays nothing twice if the event was settled', async () => {
    const { reference } = await paidOrder(settled());
    const before = await settled().order(reference);
    const { id } = await eventIn(settled(), reference, 'done');
    expect((await post(settled(), `/v1/events/${id}/replay`, {})).status).toBe(202);
    await eventually(async () => {
      const { event } = (await get(settled(), `/v1/events/${id}`)).body;
      expect(event).toMatchObject({ status: 'done', outcome: 'already_applied' });
    });
    expect(await settled().order(reference)).toEqual(before);
  });

  it('leaves a settled event settled if its secret was corrected meanwhile', async () => {
    const app = settled();
    const { reference } = await paidOrder(app);
    const before = await app.order(reference);
    const { id } = await eventIn(app, reference, 'done');
    const webhookSecret = 'another-secret-than-before';
    await app.api('/v1/links', { body: { reference, amount: '100.00', webhookSecret } });
    expect((await post(app, `/v1/events/${id}/replay`, {})).status).toBe(202);
    await eventually(async () => {
      const { event } = (await get(app, `/v1/events/${id}`)).body;
      expect(event).toMatchObject({ status: 'done', outcome: 'applied', fault: { code: 'stored_event_damaged' } });
    });
    expect(await attentionOf(app, reference)).toEqual([]);
    expect(await app.order(reference)).toEqual(before);
  });

  it('wakes settlement, which otherwise looks once a second', async () => {
    const { reference } = await paidOrder(settled());
    const { id } = await eventIn(settled(), reference, 'done');
    const ownMs = startOwnTime();
    for (let i = 0; i < 6; i++) {
      expect((await post(settled(), `/v1/events/${id}/replay`, {})).status).toBe(202);
      await eventually(async () => {
        const { event } = (await get(settled(), `/v1/events/${id}`)).body;
        expect(event.status).toBe('done');
      });
    }
    expect(ownMs()).toBeLessThan(3_000);
  });

  it('is refused for an event that waits or is in work', async () => {
    const app = settled();
    const { reference } = await paidOrder(app);
    const { id } = await eventIn(app, reference, 'done');
    for (const status of ['pending', 'leased']) {
      tamper(app.storePath, `UPDATE inbox SET status = '${status}', due_at_ms = 9999999999999 WHERE key = ${id}`);
      problem(await post(app, `/v1/events/${id}/replay`, {}), 409, 'event_in_work');
    }
  });
});

/** What waits for a person, of one order or of none. */
async function attentionOf(app: TestApp, reference: string): Promise<{ kind: string; reference: string }[]> {
  const { attention, nextCursor } = (await get(app, '/v1/attention')).body;
  expect(nextCursor).toBeNull();
  return attention.filter((one: { reference: string | null }) => (one.reference ?? reference) === reference);
}

describe('api: refused deliveries', () => {
  it('are listed by order and reason, with their number and times, never their bodies', async () => {
    const app = alone();
    const [first, second] = [await app.reserve('first'), await app.reserve('second')];
    const body = paymentEvent({ amount: '100.00', paymentId: 'pay_of_the_forger' });
    await app.deliver(first, body, signedHeaders('a-secret-of-somebody-else', body));
    await app.deliver(second, body, {});
    await eventually(async () => {
      const response = await get(app, '/v1/rejections');
      const { rejections, nextCursor } = response.body;
      expect(rejections).toHaveLength(2);
      expect(rejections).toContainEqual({
        id: expect.any(String),
        reference: 'first',
        reason: 'signature_wrong',
        count: 1,
        diagnosis: expect.objectContaining({ code: 'wrong_secret_or_altered_body' }),
        firstAt: expect.stringMatching(/Z$/),
        lastAt: expect.stringMatching(/Z$/),
      });
      expect(nextCursor).toBeNull();
      expect(response.text).not.toContain('forger');
    });
    const { rejections } = (await get(app, '/v1/rejections?reference=second')).body;
    expect(rejections).toMatchObject([{ reference: 'second', reason: 'signature_missing' }]);
    const page = (await get(app, '/v1/rejections?limit=1')).body;
    const rest = (await get(app, `/v1/rejections?limit=1&cursor=${page.nextCursor}`)).body;
    expect(new Set([...page.rejections, ...rest.rejections].map(({ reference }) => reference)).size).toBe(2);
    expect(rest.nextCursor).toBeNull();
  });
});

describe('api: attention', () => {
  it('lists open matters with their orders, and none that is over', async () => {
    const app = settled();
    const { reference, link } = await paidOrder(app);
    const linkId = `pl_${reference}`;
    const second = paymentEvent({ linkId, paymentId: 'pay_second', amount: '100.00' });
    await deliverAndSee(app, link, second, 'paid');
    await eventually(async () => {
      expect(await attentionOf(app, reference)).toEqual([
        {
          id: expect.any(String),
          kind: 'duplicate_payment',
          reason: null,
          concern: 'money',
          subject: reference,
          reference,
          detail: expect.stringContaining(reference),
          count: 1,
          openedAt: expect.stringMatching(/Z$/),
          lastAt: expect.stringMatching(/Z$/),
          order: expect.objectContaining({ reference, state: 'paid', flags: ['duplicate_payment'] }),
        },
      ]);
    });
    const refund = paymentEvent({ linkId, paymentId: 'pay_second', status: 'REFUNDED', amount: '100.00' });
    await deliverAndSee(app, link, refund, 'paid');
    await eventually(async () => expect(await attentionOf(app, reference)).toEqual([]));
    expect((await get(app, orderPath(reference))).body.order.flags).toEqual([]);
  });
});
