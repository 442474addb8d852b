import { describe, expect, it } from 'vitest';
import type { ReservedLink, TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { peek } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { eventsOf, expectSaid, SAID } from './answers.ts';

const app = sharedApp();

type BoundLink = ReservedLink & { id: string };

async function bound(settled: TestApp): Promise<BoundLink> {
  const link = await settled.reserve(freshReference());
  const id = `pl_${link.reference}`;
  const body = { reference: link.reference, amount: '100.00', id };
  expect((await settled.api('/v1/links', { body })).status).toBe(200);
  return { ...link, id };
}

const PAIRS = [
  [0, 1],
  [0, 2],
  [1, 0],
  [1, 2],
  [2, 0],
  [2, 1],
] as const;

describe('receive: what is signed for one link', () => {
  it.each(PAIRS)('is refused at another link’s address: link %i at %i', async (from, to) => {
    const links = [await bound(app()), await bound(app()), await bound(app())];
    const [signer, target] = [links[from] as BoundLink, links[to] as BoundLink];
    for (const linkId of [signer.id, target.id]) {
      const body = paymentEvent({ linkId });
      await expectSaid(await app().deliver(target, body, signedHeaders(signer.webhookSecret, body)), SAID.unauthorized);
    }
    for (const { reference } of links) {
      expect(await eventsOf(app(), reference)).toEqual([]);
      expect((await app().order(reference)).state).toBe('awaiting_payment');
    }
  });

  it.each(PAIRS)('pays no order when it names another link: link %i naming %i', async (from, to) => {
    const links = [await bound(app()), await bound(app()), await bound(app())];
    const [signer, named] = [links[from] as BoundLink, links[to] as BoundLink];
    const before = await Promise.all(links.map(({ reference }) => app().order(reference)));
    await expectSaid(await app().deliver(signer, paymentEvent({ linkId: named.id })), SAID.recorded);
    await eventually(async () => {
      const events = await eventsOf(app(), signer.reference);
      expect(events).toMatchObject([{ status: 'dead', fault: { code: 'link_mismatch' } }]);
    });
    expect(await Promise.all(links.map(({ reference }) => app().order(reference)))).toEqual(before);
    const [event] = await eventsOf(app(), signer.reference);
    const { attention } = (await app().api('/v1/attention?limit=200')).body;
    expect(attention).toContainEqual(
      expect.objectContaining({ kind: 'link_mismatch', subject: event?.id, reference: signer.reference }),
    );
    const [{ checks }] = peek(
      app().storePath,
      'SELECT count(*) AS checks FROM link_check c JOIN link l ON l.key = c.link_key WHERE l.link_id = ?',
      signer.id,
    );
    expect(checks).toBe(1);
  });

  it('pays no order when it names its own link and another', async () => {
    const link = await bound(app());
    const body = paymentEvent({ linkId: link.id }).replace('"data":{', `"linkId":"pl_other","data":{`);
    await expectSaid(await app().deliver(link, body), SAID.recorded);
    await eventually(async () => expect(await eventsOf(app(), link.reference)).toMatchObject([{ status: 'dead' }]));
    expect((await app().order(link.reference)).state).toBe('awaiting_payment');
  });

  it('pays its order when it names no link', async () => {
    const link = await bound(app());
    await expectSaid(await app().deliver(link, paymentEvent()), SAID.recorded);
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('paid'));
  });
});

describe('receive: a reserved link', () => {
  it('gets its id from the first authentic event, and keeps it', async () => {
    const link = await app().reserve(freshReference());
    await app().deliver(link, paymentEvent({ linkId: `pl_of_${link.reference}`, status: 'PENDING' }));
    await eventually(async () => expect((await app().order(link.reference)).state).toBe('payment_pending'));
    await app().deliver(link, paymentEvent({ linkId: 'pl_another' }));
    await eventually(async () =>
      expect(await eventsOf(app(), link.reference)).toMatchObject([{ status: 'dead' }, { status: 'done' }]),
    );
    const order = await app().order(link.reference);
    expect(order).toMatchObject({ state: 'payment_pending', link: { id: `pl_of_${link.reference}` } });
  });

  it('does not get the id of another order’s link', async () => {
    const [taken, link] = [await bound(app()), await app().reserve(freshReference())];
    await app().deliver(link, paymentEvent({ linkId: taken.id }));
    await eventually(async () => expect(await eventsOf(app(), link.reference)).toMatchObject([{ status: 'dead' }]));
    expect(await app().order(link.reference)).toMatchObject({ state: 'awaiting_payment', link: { id: null } });
  });

  it('gets no id from a delivery that is not authentic', async () => {
    const link = await app().reserve(freshReference());
    const body = paymentEvent({ linkId: 'pl_forged' });
    await expectSaid(
      await app().deliver(link, body, signedHeaders('another-secret-of-24-bytes', body)),
      SAID.unauthorized,
    );
    expect(await app().order(link.reference)).toMatchObject({ link: { id: null } });
  });
});
