import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { peek } from '../support/rows.ts';
import { act, plan } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import {
  dropFirstEvents,
  expectPaid,
  openLink,
  openOrder,
  passUntil,
  payLink,
  quiet,
  type Shop,
  startAgain,
  startProxiedShop,
  startShop,
  stopSettled,
} from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

const CREATION = { method: 'POST', path: '/api/v1/payment-links' };

async function attentionOf({ settled }: Shop): Promise<{ id: string; kind: string; detail: string }[]> {
  return (await settled.api('/v1/attention')).body.attention;
}

async function rejectionsOf({ settled }: Shop): Promise<{ reason: string; reference: string }[]> {
  return (await settled.api('/v1/rejections')).body.rejections;
}

async function whyOf({ settled }: Shop, reference: string): Promise<string> {
  const { body } = await settled.api(`/v1/orders/${reference}/timeline`);
  return JSON.stringify(body);
}

/** An authentic event of a link, signed by hand: what settled answers. */
async function deliver({ settled, sandbox }: Shop, secret: string, body: object): Promise<number> {
  const [{ token }] = peek(settled.storePath, 'SELECT token FROM link') as [{ token: string }];
  const text = JSON.stringify(body);
  const timestamp = String(sandbox.clock.nowMs());
  const signature = createHmac('sha256', secret).update(`${timestamp}.${text}`).digest('hex');
  const headers = { 'x-service-signature': signature, 'x-service-timestamp': timestamp };
  return (await fetch(`${settled.hooksUrl}/hooks/${token}`, { method: 'POST', body: text, headers })).status;
}

/** One shop for all that need none of their own: what the service leaves open is switched while it runs. */
const anyShop = sharedShop();

async function startSpeaking(...silences: string[]): Promise<Shop> {
  const shop = anyShop();
  const pairs = silences.map((silence) => silence.split('='));
  const body = { 'creation-envelope': 'in-link', ...Object.fromEntries(pairs) };
  expect((await shop.sandbox.control('/silences', { body })).status).toBe(200);
  await shop.sandbox.control('/faults', { method: 'DELETE' });
  return shop;
}

const ofOrder = <T extends { reference: string | null }>(rows: T[], reference: string) =>
  rows.filter((row) => row.reference === reference);

describe('a service that names its own signing secret', () => {
  it.each(['in-link', 'beside-link', 'bare'])('is believed with it: %s', async (envelope) => {
    const shop = await startSpeaking('creation-secret=own', `creation-envelope=${envelope}`);
    const reference = freshReference();
    await dropFirstEvents(shop);
    await payLink(shop, await openLink(shop, reference));
    await expectPaid(shop, reference);
    expect(ofOrder(await rejectionsOf(shop), reference)).toEqual([]);
    expect(await whyOf(shop, reference)).toContain('named a signing secret of its own');
    expect(await attentionOf(shop)).toEqual([]);
  });

  it('is believed at once although its first event came before it had named the secret', async () => {
    const shop = await startSpeaking('creation-secret=own');
    const reference = freshReference();
    await plan(shop.sandbox, { fault: 'early-event', match: CREATION });
    const link = await openLink(shop, reference);
    const early = ofOrder(await rejectionsOf(shop), reference);
    expect(early).toMatchObject([{ reason: 'signature_wrong' }]);
    // A refused delivery has its link asked about: that is not to be how the payment becomes known.
    await eventually(async () => {
      const { events } = (await shop.settled.api(`/v1/events?reference=${reference}&kind=reading`)).body;
      expect(events).toMatchObject([{ status: 'done' }]);
    });
    await payLink(shop, link);
    await expectPaid(shop, reference);
    expect(ofOrder(await rejectionsOf(shop), reference)).toEqual(early);
  });

  it('is believed with either secret, and with no third; replayed, too, and under another secrets key', async () => {
    const { shop, proxy } = await startProxiedShop(startShop, { switches: ['creation-secret=own'] });
    await dropFirstEvents(shop);
    let given = '';
    let named = '';
    proxy.answerWith(async ({ method }, pass, _response, body) => {
      const answer = await pass();
      if (method === 'POST') {
        given = JSON.parse(body).webhookSecret;
        named = JSON.parse(answer.text).paymentLink.webhookSecret;
      }
      return answer;
    });
    const { id } = await openLink(shop, 'order-1');
    expect([named.length > 16, named === given]).toEqual([true, false]);
    const event = (name: string) => ({ id: name, type: 'payment_link.status_changed', data: { linkId: id } });
    const answers = async (to: Shop, round: number) => [
      await deliver(to, given, event(`evt_ours_${round}`)),
      await deliver(to, named, event(`evt_theirs_${round}`)),
      await deliver(to, `${named}.`, event(`evt_nobodys_${round}`)),
    ];
    expect(await answers(shop, 1)).toEqual([200, 200, 401]);
    const before = peek(shop.settled.storePath, 'SELECT DISTINCT service_secrets_key_id AS id FROM link');
    expect((await shop.settled.api('/v1/admin/rotate-key', { body: {} })).body.rotation).toMatchObject({
      secrets: 2,
      resealed: 2,
    });
    const after = peek(shop.settled.storePath, 'SELECT secrets_key_id AS a, service_secrets_key_id AS b FROM link');
    expect(after).toEqual([{ a: after[0].a, b: after[0].a }]);
    expect(before[0].id).not.toBe(after[0].a);
    await stopSettled(shop);
    const next = await startAgain(shop);
    expect(await answers(next, 2)).toEqual([200, 200, 401]);
    await quiet(next);
    const { events } = (await next.settled.api('/v1/events?reference=order-1&kind=event')).body;
    expect(events.map(({ status }: { status: string }) => status)).toEqual(Array(4).fill('done'));
    const bytes = peek(next.settled.storePath, 'SELECT sealed_secret AS a, service_sealed_secret AS b FROM link');
    expect(Buffer.concat([bytes[0].a, bytes[0].b]).includes(named)).toBe(false);
    await payLink(next, { id });
    await expectPaid(next, 'order-1');
  });

  it.each([
    ['short', 'fewer than 16 bytes'],
    ['masked', 'masked'],
  ])('is not believed with one that is %s: one matter tells of it', async (creationSecret, flaw) => {
    const shop = await startSpeaking(`creation-secret=${creationSecret}`);
    await dropFirstEvents(shop);
    const [reference, another] = [freshReference(), freshReference()];
    const link = await openLink(shop, reference);
    await openLink(shop, another);
    const matters = await attentionOf(shop);
    expect(matters).toMatchObject([{ kind: 'secret_unusable', subject: 'webhookSecret', count: 2 }]);
    expect(matters[0]?.detail).toContain(flaw);
    expect(await whyOf(shop, another)).toContain(flaw);
    await payLink(shop, link);
    const isOurs = creationSecret === 'masked';
    if (!isOurs) {
      await eventually(async () => expect(ofOrder(await rejectionsOf(shop), reference)).toHaveLength(1));
      const { body } = await shop.settled.api(`/v1/orders/${reference}/timeline`);
      expect(body.answer).toContain(`a signing secret for this link that settled cannot use (it has ${flaw})`);
      expect(body.next.join('\n')).toContain("Ask the service's operator which secret it signs");
      // What settled opened takes no secret by hand.
      expect(body.next.join('\n')).not.toMatch(/links add|adopt/);
    }
    if (!isOurs) await passUntil(shop, async () => (await shop.settled.order(reference)).state === 'paid');
    await expectPaid(shop, reference, { learnedBy: isOurs ? 'webhook' : 'reconciliation' });
    const end = { body: { reason: 'the service was asked' } };
    expect((await shop.settled.api(`/v1/attention/${matters[0]?.id}/end`, end)).status).toBe(200);
  });
});

describe("a link whose creation's answer was lost", () => {
  const LOST =
    "settled did not receive the service's answer when it created the link. If the answer named another signing secret";

  it.each([
    ['own', 'reconciliation'],
    ['given', 'webhook'],
  ] as const)('may have another secret: why says so until a delivery verifies (%s)', async (secret, learnedBy) => {
    const shop = await startSpeaking(`creation-secret=${secret}`);
    const reference = freshReference();
    await dropFirstEvents(shop);
    await plan(shop.sandbox, { fault: 'lose-response', match: CREATION, with: { when: 'after' } });
    const opened = openOrder(shop, reference);
    const isOpen = async () => ((await shop.settled.order(reference))?.link ?? null) !== null;
    await passUntil(shop, isOpen, { withinMs: 60_000 });
    const { link } = (await opened).body.order;
    expect(await whyOf(shop, reference)).toContain(LOST);
    await act(shop.sandbox, link, 'pay', { complete: false });
    await shop.sandbox.idle();
    await quiet(shop);
    expect(ofOrder(await rejectionsOf(shop), reference)).toHaveLength(secret === 'own' ? 1 : 0);
    expect((await whyOf(shop, reference)).includes(LOST)).toBe(secret === 'own');
    await act(shop.sandbox, link, 'complete');
    await passUntil(shop, async () => (await shop.settled.order(reference)).state === 'paid');
    await expectPaid(shop, reference, { learnedBy });
  });

  it('says nothing of it if the answer came', async () => {
    const shop = await startSpeaking('creation-secret=given');
    const reference = freshReference();
    await dropFirstEvents(shop);
    await openLink(shop, reference);
    expect(await whyOf(shop, reference)).not.toContain('was lost');
  });
});
