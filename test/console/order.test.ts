import { describe, expect, it } from 'vitest';
import { prose } from '../../src/console/values.ts';
import { enter, namedToken, signIn } from '../support/access.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { useBrowser } from '../support/browser.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { freePort } from '../support/network.ts';
import { plainOperator } from '../support/plain_browser.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { see as seeAt, textOf } from './reading.ts';
import { viewOf } from './sample.ts';

const settled = sharedApp();
const open = useBrowser();

/** An order that is held because less was paid than it asks. */
async function held(reference = freshReference(), app: TestApp = settled()): Promise<string> {
  const link = await app.reserve(reference);
  const event = paymentEvent({ linkId: `pl_${reference}`, paymentId: `pay_${reference}`, amount: '60.00' });
  expect((await app.deliver(link, event)).status).toBe(200);
  await eventually(async () => expect((await app.order(reference)).state).toBe('held'));
  return reference;
}

const see = (path: string, token?: string) => seeAt(settled(), path, { token });

/** A sentence of the API, as a page has it. */
function shown(sentence: string, reference: string): string {
  return textOf(`<main>${prose(viewOf(), sentence, reference).markup}`).trim();
}

/** Sends a form as a page of the console would. */
const send = (action: string, fields: Record<string, string>, token?: string) =>
  seeAt(settled(), action, { token, fields });

describe('console: an order', () => {
  it('says first what why says, word for word, and how service, settled and shop differ', async () => {
    const reference = await held();
    const { body } = await settled().api(`/v1/orders/${reference}/timeline`);
    const { text, markup } = await see(`/orders/${reference}`);
    const answer = shown(body.answer, reference);
    expect(answer).toContain('R$60.00');
    expect(text).toContain(answer);
    // Each decision stands once: as a form that says what it would do.
    expect(body.next).toHaveLength(2);
    for (const decision of ['accept', 'reject'])
      expect(markup.match(new RegExp(`id="${decision}"`, 'g'))).toHaveLength(1);
    expect(text).not.toMatch(/Accept…|Reject…|settled (orders|events|notices|why|attention) /);
    expect(text.indexOf(answer)).toBeLessThan(text.indexOf('The service says'));
    expect(body.service.says).toEqual([`the payment is completed (pay_${reference}): 60.00 BRL`]);
    expect(body.differences).toEqual([
      `The service says that pay_${reference} is 60.00 BRL, but the order asks for 100.00 BRL.`,
    ]);
    for (const words of [...body.service.says, ...body.differences]) expect(text).toContain(shown(words, reference));
    for (const { summary } of body.entries) expect(text).toContain(shown(summary, reference));
  });

  it('names the customer as the shop said, on its page and in the list, where a word finds it', async () => {
    const reference = freshReference();
    const word = reference.replace(/[^a-z0-9]/gi, '');
    await settled().reserve(reference, '100.00', { customer: { name: `Ana ${word}`, email: 'ana@example.com' } });
    const { text } = await see(`/orders/${reference}`);
    expect(text).toContain(`The shop said that the customer is Ana ${word} <ana@example.com>.`);
    expect(text).toMatch(new RegExp(`Customer, said by the shop\\s+Ana ${word}\\s*ana@example\\.com`));
    const other = freshReference();
    await settled().reserve(other, '100.00', { customer: { name: null, email: `${word}@example.org` } });
    const list = await see(`/orders?q=${word}`);
    for (const shownThere of ['2 orders', reference, `Ana ${word}`, other, `${word}@example.org`]) {
      expect(list.text).toContain(shownThere);
    }
  });

  it('is decided from the list of matters too: its row leads to both forms, and names no command', async () => {
    const reference = await held();
    const { markup } = await see('/attention?kind=hold');
    const row = markup.split('<tr ').find((one) => one.includes(`/orders/${reference}"`)) ?? '';
    expect(textOf(`<main>${row}`)).toContain('R$60.00 came, R$40.00 less than it asks for');
    expect(textOf(`<main>${row}`)).not.toContain('settled ');
    for (const decision of ['accept', 'reject']) {
      const [, query] = new RegExp(`href="/orders/${reference}(\\?[^"#]+)#${decision}"`).exec(row) ?? [];
      const page = await see(`/orders/${reference}${query}`);
      expect(page.markup).toMatch(new RegExp(`<details class="action" id="${decision}" open>`));
    }
  });

  it('shows of each decision what a dry run says of it', async () => {
    const reference = await held();
    const { text } = await see(`/orders/${reference}`);
    for (const decision of ['accept', 'reject']) {
      const { body } = await settled().api(`/v1/orders/${reference}/resolve`, { body: { decision, dryRun: true } });
      expect(body.preview.sentences.length).toBeGreaterThan(1);
      for (const sentence of body.preview.sentences) expect(text).toContain(shown(sentence, reference));
      expect(body.preview.warning).toBeNull();
    }
    expect((await settled().order(reference)).state).toBe('held');
  });

  it('warns before money is accepted that was never counted, and says then who accepted it and why', async () => {
    const link = await settled().reserve(freshReference());
    const event = JSON.parse(paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00' }));
    event.data.latestPayment.status = 'PENDING';
    await settled().deliver(link, JSON.stringify(event));
    await eventually(async () => expect((await settled().order(link.reference)).state).toBe('held'));
    const page = plainOperator(settled());
    await page.open(`/orders/${link.reference}`);
    const [accept, reject] = [page.markup('#accept'), page.markup('#reject')];
    expect(page.text('#accept')).toContain('settled has counted no money for order');
    expect([accept, reject].map((form) => form.includes('class="problem"'))).toEqual([true, false]);
    expect([accept, reject].join()).not.toContain(' open>');
    await page.press('', { reason: 'it is at the bank' }, '#accept');
    expect(page.url().search).toBe('?done=resolveOrder');
    expect(page.text('#sides')).toMatch(/accepted by operator, .*Reason: “?it is at the bank/);
    expect(page.text('.difference')).toBe(
      'The service and settled say the same, but the order is not right: underpaid.',
    );
    expect(page.text('#story')).toContain('by operator, reason given: it is at the bank');
  });

  it('unfolds the form that an address names by its end, with a script', async () => {
    const reference = await held();
    const tab = await open();
    await enter(tab, settled(), `/orders/${reference}#reject`);
    await tab.locator('#reject[open]').waitFor();
    expect(await tab.locator('#accept[open]').count()).toBe(0);
    expect(tab.wrongs).toEqual([]);
  });

  it('keeps what was typed when another person decides meanwhile, and says what the order is now', async () => {
    const reference = await held();
    const tab = await open();
    await enter(tab, settled(), `/orders/${reference}`);
    await tab.locator('#reject summary').click();
    await tab.fill('#reject-reason', 'nobody knows <this>');
    await settled().api(`/v1/orders/${reference}/resolve`, { body: { decision: 'accept', reason: 'fine' } });
    const said = await tab.locator('body > .problem').innerText();
    expect(said).toContain('This changed while you were typing');
    expect(said).toContain(`Order ${reference}`);
    expect(said).toContain('is paid. A person accepted');
    expect(said).toContain('You had typed: “nobody knows <this>”');
    expect(await tab.locator('#reject').count()).toBe(0);
    expect(tab.wrongs).toEqual([]);
  });

  it('is decided by keyboard alone, without a script', async () => {
    const reference = await held();
    const tab = await open({ javaScriptEnabled: false });
    await enter(tab, settled(), `/orders/${reference}`);
    for (let presses = 0; presses < 60; presses++) {
      await tab.keyboard.press('Tab');
      if ((await tab.locator('#accept > summary:focus').count()) === 1) break;
    }
    await tab.keyboard.press('Enter');
    await tab.keyboard.press('Tab');
    await tab.keyboard.type('the customer pays the rest in the shop');
    await tab.keyboard.press('Tab');
    await tab.keyboard.press('Enter');
    await tab.waitForURL(/done=resolveOrder/);
    expect(await tab.locator('.notice.done').innerText()).toBe('The decision was made.');
    expect(await tab.locator('.answer').innerText()).toContain('is paid. A person accepted R$60.00');
    expect(await tab.locator('#accept').count()).toBe(0);
    expect((await settled().order(reference)).state).toBe('paid');
    expect(tab.wrongs).toEqual([]);
  });

  it('shows what it is now if it changed meanwhile, and keeps what was typed', async () => {
    const reference = await held();
    const fields = { decision: 'reject', reason: 'nobody knows <this> money', back: `/orders/${reference}` };
    const action = `/v1/orders/${reference}/resolve`;
    await settled().api(action, { body: { decision: 'accept', reason: 'fine' } });
    const { status, text } = await send(action, fields);
    expect(status).toBe(409);
    expect(text).toContain(`Order ${reference} is paid. You can resolve only a held order.`);
    expect(text).toContain('You had typed: nobody knows <this> money');
    expect(text).toContain('is paid. A person accepted R$60.00');
    expect((await settled().order(reference)).state).toBe('paid');
  });

  it('keeps a form open with what was typed if the API refuses it', async () => {
    const reference = await held();
    const action = `/v1/orders/${reference}/resolve`;
    const reason = 'x'.repeat(501);
    const { status, markup, text } = await send(action, { decision: 'reject', reason, back: `/orders/${reference}` });
    expect(status).toBe(400);
    expect(text).toContain('reason: must have');
    expect(markup).toMatch(/<details class="action" id="reject" open>/);
    expect(markup).toMatch(/<details class="action" id="accept"><summary>/);
    expect(markup).toContain(`${reason}</textarea>`);
    expect((await settled().order(reference)).state).toBe('held');
  });

  it('says what was done only in words that it knows', async () => {
    const reference = await held();
    expect((await see(`/orders/${reference}?done=checkOrder`)).text).toContain('settled asked the service');
    const { markup } = await see(`/orders/${reference}?done=You+won+a+prize`);
    expect(markup).not.toContain('prize');
    expect(markup).not.toContain('class="notice done"');
  });

  it('has no form for a viewer, and the server does not obey one', async () => {
    const reference = await held();
    const token = await namedToken(settled(), 'viewer');
    const { markup } = await see(`/orders/${reference}`, token);
    expect(markup.slice(markup.indexOf('<main'), markup.indexOf('</main>'))).not.toContain('<form');
    const fields = { decision: 'accept', reason: 'please', back: `/orders/${reference}` };
    const { status, text } = await send(`/v1/orders/${reference}/resolve`, fields, token);
    expect(status).toBe(403);
    expect(text).toContain('needs the role operator');
    expect((await settled().order(reference)).state).toBe('held');
  });

  it('that is not there is said, with the reference', async () => {
    const { status, text } = await see('/orders/nowhere');
    expect(status).toBe(404);
    expect(text).toMatch(/^ There is no order nowhere here\. The search above/);
  });
});

describe('console: behind a path of a proxy', () => {
  it('leads everywhere below it, and an action that is refused shows its page again', async () => {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const environment = { SETTLED_OPERATOR_LISTEN: `127.0.0.1:${port}`, SETTLED_CONSOLE_URL: `${origin}/ops/pay` };
    const app = await startTestApp({ environment });
    const reference = await held('lamp 1', app);
    const { own } = await signIn({ apiUrl: `${origin}/ops/pay` });
    const action = `/ops/pay/v1/orders/lamp%201/resolve`;
    for (const path of ['/', '/attention', '/orders', '/orders/lamp%201', '/events/1']) {
      const markup = await (await fetch(`${origin}/ops/pay${path}`, { headers: own })).text();
      const addresses = [...markup.matchAll(/ (?:href|action|src)="([^"#][^"]*)"/g)].map(([, to = '']) => to);
      expect(addresses.filter((to) => !to.startsWith('/ops/pay/'))).toEqual([]);
      expect(addresses.length).toBeGreaterThan(10);
      if (path.startsWith('/orders/')) expect(addresses).toContain(action);
    }
    const send = (reason: string) => {
      const body = new URLSearchParams({ decision: 'reject', reason, back: '/ops/pay/orders/lamp%201' });
      return fetch(`${origin}${action}`, { method: 'POST', headers: own, body, redirect: 'manual' });
    };
    const refused = await send('');
    expect(refused.status).toBe(422);
    expect(textOf(await refused.text())).toContain('reason: is needed');
    const done = await send('not ours');
    expect(done.headers.get('location')).toBe('/ops/pay/orders/lamp%201?done=resolveOrder');
    expect((await app.order(reference)).state).toBe('cancelled');
  });
});
