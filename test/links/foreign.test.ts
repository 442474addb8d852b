import { describe, expect, it } from 'vitest';
import { act, createLink, plan } from '../support/sandbox.ts';
import { check, pass, requestsOf, reserveLink, startProxiedShop, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

const ASKED = { reference: 'order-1', title: 'A chair', amount: '100.00' };

/** A service that answers a creation of its own accord, as a repeated reference might be. */
async function startAnswering(webhookUrl: string) {
  const { shop, proxy } = await startProxiedShop(startShop);
  const link = await createLink(shop.sandbox, { externalReference: 'order-1', webhookUrl });
  proxy.answerWith(async ({ method }, ask) => {
    if (method !== 'POST') return undefined;
    const { headers } = await ask();
    const paymentLink = { ...link, webhookUrl };
    return { status: 201, headers, text: JSON.stringify({ success: true, paymentLink }) };
  });
  return shop;
}

/** A service that answers a creation 409, as if an earlier answer had been lost, and spells addresses in this way. */
async function startRespelling(spell: (own: string) => string) {
  const { shop, proxy } = await startProxiedShop(startShop);
  await plan(shop.sandbox, { fault: 'drop', count: null });
  const spelled = (text: string) => text.replace(/"webhookUrl":"([^"]*)"/, (_, own) => `"webhookUrl":"${spell(own)}"`);
  proxy.answerWith(async ({ method }, ask) => {
    const { status, headers, text } = await ask();
    return method === 'POST' ? { status: 409, headers, text: '{}' } : { status, headers, text: spelled(text) };
  });
  return shop;
}

describe('a creation answered with a link that is there already', () => {
  it('is not believed if the events of that link go elsewhere', async () => {
    const shop = await startAnswering('https://elsewhere.example.com/hook');
    const { status, body } = await shop.settled.api('/v1/orders', { body: ASKED });
    expect([status, body.title]).toEqual([409, 'reference_taken']);
    expect(await shop.settled.order('order-1')).toMatchObject({ link: null });
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([{ kind: 'reference_taken', reference: 'order-1' }]);
  });
});

describe('a link whose address carries our token elsewhere than at its end', () => {
  it.each([
    (own: string) => `${own}/more`,
    (own: string) => `https://elsewhere.example.com/?to=${own}&as=one`,
    (own: string) => own.replace('/hooks/', '/hooks/x'),
    (own: string) => own.replace('/hooks/', '/hooks.example.com/'),
  ])('is not adopted, nor asked about for the order: %s', async (change) => {
    const shop = await startRespelling(change);
    const { status, body } = await shop.settled.api('/v1/orders', { body: ASKED });
    expect([status, body.title]).toEqual([409, 'reference_taken']);
    expect((await shop.settled.order('order-1')).link).toBeNull();
    const fields = await reserveLink(shop, 'order-2');
    const { id } = await createLink(shop.sandbox, fields);
    await act(shop.sandbox, { id }, 'pay');
    const checked = await check(shop, 'order-2');
    expect([checked.status, checked.body.title]).toEqual([409, 'link_unknown']);
    expect((await shop.settled.order('order-2')).state).toBe('awaiting_payment');
  });
});

describe('an address that the service spells otherwise than settled gave it', () => {
  const SPELLINGS: [string, (own: string) => string, string | null][] = [
    ['as given', (own) => own, null],
    ['the host in capitals', (own) => own.replace('http://', 'HTTP://'), null],
    ['a slash at its end', (own) => `${own}/`, '/hooks/…/'],
    ['a query', (own) => `${own}?v=1`, '/hooks/…?v=1'],
    ['an encoded path', (own) => own.replace('/hooks/', '/%68ooks/'), '/%68ooks/…'],
    ['another host', (own) => own.replace('127.0.0.1', 'localhost'), '/hooks/…'],
    ['masked', (own) => own.replace(/[^/]*$/, '***'), null],
    ['cut off', (own) => own.slice(0, -8), null],
  ];
  it('is still that of our own link, and of a change one matter tells, without the token, until it ends', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    for (const [at, [name, spell, shown]] of SPELLINGS.entries()) {
      let given = '';
      proxy.answerWith(async ({ method }, ask, _response, sent) => {
        const { status, headers, text } = await ask();
        if (method === 'POST') given = JSON.parse(sent).webhookUrl;
        return { status, headers, text: text.replaceAll(given, spell(given)) };
      });
      for (const n of [1, 2]) {
        const answer = await shop.settled.api('/v1/orders', { body: { ...ASKED, reference: `order-${at}-${n}` } });
        expect([answer.status, answer.body.order?.state], name).toEqual([201, 'awaiting_payment']);
      }
      const { attention } = (await shop.settled.api('/v1/attention')).body;
      const ends = at < 2;
      if (ends) expect(attention, name).toEqual([]);
      if (shown === null) continue;
      expect(attention, name).toMatchObject([{ kind: 'webhook_address_changed', reference: null }]);
      expect(attention[0].detail, name).toContain(shown);
      expect(attention[0].detail, name).not.toContain(given.split('/').at(-1));
    }
    proxy.passAll();
    await shop.settled.api('/v1/orders', { body: { ...ASKED, reference: 'order-last' } });
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
  });

  it.each(['a slash at its end', 'a query', 'an encoded path'])(
    'proves after a 409 that the link is ours: %s',
    async (name) => {
      const spell = SPELLINGS.find(([own]) => own === name)?.[1] as (own: string) => string;
      const shop = await startRespelling(spell);
      const { status, body } = await shop.settled.api('/v1/orders', { body: ASKED });
      expect([status, body.order?.link?.id]).toEqual([201, expect.any(String)]);
    },
  );
});

describe('a service that lists other links than those that it is asked for', () => {
  it('has no order forgotten whose link may be behind them, though it refuses to make another', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    await plan(shop.sandbox, { fault: 'drop', count: null });
    let creations = 0;
    const others = Array.from({ length: 3 }, (_, at) => ({ id: `pl_${at}`, externalReference: `other-${at}` }));
    proxy.answerWith(async ({ method, path }, pass, response) => {
      const headers = { 'content-type': 'application/json' };
      if (method === 'POST') {
        const { headers: given } = await pass();
        if (++creations > 1) return { status: 400, headers: given, text: '{"message":"no"}' };
        response.destroy();
        return 'answered';
      }
      const page = Number(new URL(`http://x${path}`).searchParams.get('page') ?? 1);
      const paymentLinks = others.map(({ id, ...link }) => ({ ...link, id: `${id}_${page}` }));
      return { status: 200, headers, text: JSON.stringify({ success: true, paymentLinks }) };
    });
    const opening = shop.settled.api('/v1/orders', { body: ASKED });
    // Nothing is in hand before settled hears of the order.
    await eventually(() => expect(creations).toBeGreaterThan(0));
    await pass(shop, 15_000);
    const { status, body } = await opening;
    expect([status, body.order?.reference]).toEqual([202, 'order-1']);
    // The answer may come while settled tries again; then it names no reason.
    const { answer } = (await shop.settled.api('/v1/orders/order-1/timeline')).body;
    expect(answer).toContain('not among the newest');
    expect(await shop.settled.order('order-1')).toMatchObject({ state: 'awaiting_payment', link: null });
  });
});

describe('a service that lists very many links of one reference', () => {
  it('has two of them looked at, and no more', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    const link = await createLink(shop.sandbox, { externalReference: 'order-1' });
    proxy.answerWith(async ({ path }, ask) => {
      const answer = await ask();
      if (!path.includes('externalReference=')) return answer;
      const page = JSON.parse(answer.text);
      page.paymentLinks = Array.from({ length: 100 }, () => page.paymentLinks[0]);
      return { ...answer, text: JSON.stringify(page) };
    });
    expect((await shop.settled.api('/v1/orders', { body: ASKED })).status).toBe(409);
    await pass(shop, 1_000);
    const shown = (await requestsOf(shop.sandbox)).filter(({ path }) => path.endsWith(link.id));
    expect(shown).toHaveLength(2);
  });
});
