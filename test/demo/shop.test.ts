import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { startSite } from '../sandbox/page-order.ts';
import { foreignTo, PAYLOADS } from '../sandbox/page-payloads.ts';
import { expectToFit, LOOKS, type Tab, useBrowser } from '../support/browser.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { postForm } from '../support/http.ts';
import { type PlainBrowser, plainBrowser, unescaped } from '../support/plain_browser.ts';
import { eventually, itAtLength, times } from '../support/timing.ts';
import { type Addresses, useDemo } from './running.ts';

const open = useBrowser();
const addresses = useDemo();

describe('the shop of the demo', () => {
  it('sells: buy, pay on the hosted page, come back, see it paid', async () => {
    const { shop, sandbox, hooks } = addresses();
    const tab = await open();
    await tab.goto(shop);
    await tab.getByRole('button', { name: 'A lamp for the desk' }).click();
    await tab.getByRole('button', { name: 'Get the PIX code' }).click();
    expect(tab.url()).toMatch(new RegExp(`^${sandbox}/pay/`));
    // The receipt goes on after a moment: it stays until its link has been pressed.
    const pressed = Promise.withResolvers<void>();
    await tab.route(`${hooks}/**`, async (route) => {
      await pressed.promise;
      // A way that the link took over from is given up.
      await route.continue().catch(() => {});
    });
    await tab.getByRole('button', { name: 'I have paid' }).click();
    await tab.getByRole('link', { name: 'Return to the seller now' }).click({ noWaitAfter: true });
    pressed.resolve();
    await heading(tab, 'Paid. Thank you!');
    expect(tab.url()).toMatch(new RegExp(`^${shop}/orders/lamp-[0-9a-f]{6}$`));
    await tab.getByText('A lamp for the desk').waitFor();
    await tab.getByText(/^paid, learned (from a webhook|by asking the service)$/).waitFor();
    await tab.getByText(/^by \d signed notices?: (order\.payment_pending, )?order\.paid$/).waitFor();
    await tab.goto(shop);
    const orders = tab.getByRole('list', { name: 'Orders' });
    await orders
      .getByRole('listitem')
      .filter({ hasText: /lamp-\w{6}\s+R\$\s149\.90\s*paid/ })
      .waitFor();
    expect(tab.wrongs).toEqual([]);
  });

  it('opens the console beside it, signed in, where its orders stand', async () => {
    const { shop, operator } = addresses();
    const { reference } = await buy(shop, { good: 'tea', reference: 'tea-console' });
    const page = plainBrowser(shop);
    await page.open('/');
    await page.press('Open the console');
    await page.press('Sign in');
    expect(page.url().href).toBe(`${operator}/`);
    expect(page.text()).toMatch(/ demo /);
    await page.open(`${operator}/orders/${reference}`);
    expect(page.text('main')).toContain(`Order ${reference} (`);
  });

  it('sells without script as well', async () => {
    const { shop, sandbox } = addresses();
    const page = plainBrowser(shop);
    await page.open('/');
    await page.press('Tea for a month');
    expect(page.markup()).toContain('Get the PIX code');
    await payAt(sandbox, page.url().href);
    await page.open('/');
    const [reference = ''] = /tea-\w{6}(?=<)/.exec(page.markup()) ?? [];
    await page.follow(reference);
    await paid(page);
  });

  it.each([true, false].slice(0, times(1, 2)))(
    'shows without a reload by hand that an order was paid, with script: %s',
    async (javaScriptEnabled) => {
      const { shop, sandbox } = addresses();
      const { reference, page } = await buy(shop, { good: 'chair', reference: `chair-${javaScriptEnabled}` });
      const tab = await open({ javaScriptEnabled });
      await tab.goto(`${shop}/orders/${reference}`);
      await heading(tab, 'Waiting for your payment');
      expect(await tab.getByRole('link', { name: 'Pay now' }).getAttribute('href')).toBe(page);
      await payAt(sandbox, page);
      await heading(tab, 'Paid. Thank you!');
      expect(tab.wrongs).toEqual([]);
    },
  );

  it('finds a payment without a webhook, by asking the service', async () => {
    const { shop, sandbox } = addresses();
    const { reference, page } = await buy(shop, { good: 'chair', reference: 'chair-2' });
    await control(sandbox, '/faults', { fault: 'drop', count: null, match: { link: page.split('/pay/')[1] } });
    await payAt(sandbox, page);
    const order = await orderAt(shop, reference);
    expect(order.text('h1')).toBe('Waiting for your payment');
    // Without script the page comes again by this.
    expect(order.markup()).toMatch(/<meta http-equiv="refresh"/);
    await order.press('I have paid: ask the service now');
    await paid(order);
    expect(order.text()).toContain('paid, learned by asking the service');
  });

  it('believes no notice that settled did not sign', async () => {
    const { shop } = addresses();
    const { reference } = await buy(shop, { good: 'tea', reference: 'tea-2' });
    const order = { reference, state: 'paid', version: 9 };
    const body = JSON.stringify({ type: 'order.paid', data: { order } });
    const at = new Date();
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(SHOP_SECRET).sign('msg_1', at, body),
    };
    for (const sent of [headers, {}]) {
      const { status } = await fetch(`${shop}/settled`, { method: 'POST', body, headers: sent });
      expect(status).toBe(401);
    }
    const page = await orderAt(shop, reference);
    expect(page.text('h1')).toBe('Waiting for your payment');
    expect(page.text()).toContain('nothing yet');
  });

  it('opens one order if its button is pressed twice, and leads to the order if it is paid', async () => {
    const { shop, sandbox } = addresses();
    const first = await buy(shop, { good: 'tea', reference: 'tea-1' });
    expect(await buy(shop, { good: 'tea', reference: 'tea-1' })).toEqual(first);
    await payAt(sandbox, first.page);
    await paid(await orderAt(shop, 'tea-1'));
    expect((await buy(shop, { good: 'tea', reference: 'tea-1' })).page).toBe('/orders/tea-1');
  });

  it('says what settled refuses, and keeps what was typed', async () => {
    const { shop } = addresses();
    const page = plainBrowser(shop);
    await page.open('/');
    await page.press('Pay', { title: 'A pencil', amount: '1.50' }, '.own');
    expect(page.text('.problem')).toMatch(/^settled refused: .*25/);
    expect(page.markup('.own')).toContain('value="A pencil"');
    await buy(shop, { title: 'A table', amount: '300', reference: 'table-1' });
    const answer = await postForm(`${shop}/orders`, { title: 'A table', amount: '301', reference: 'table-1' });
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('settled refused: ')]);
  });

  it.each([
    ['30,00', '30.00'],
    ['R$ 1.234,50', '1,234.50'],
    ['1,234.50', '1,234.50'],
    ['99.9', '99.90'],
  ])('takes prices as people write them: %s', async (amount, shown) => {
    const { shop } = addresses();
    const reference = `table for ${amount}`;
    await buy(shop, { title: 'A table', amount, reference });
    const page = await fetch(`${shop}/orders/${encodeURIComponent(reference)}`);
    expect(await page.text()).toContain(`R$\u00a0${shown}`);
  });

  it('says so if there is no such order or page', async () => {
    const { shop } = addresses();
    for (const path of ['/orders/nobody', '/orders/..%2Fx', '/nowhere', '/orders/%E0%A4%A']) {
      const answer = await fetch(`${shop}${path}`);
      expect([404, 400], path).toContain(answer.status);
      expect(await answer.text(), path).toContain('To the shop');
    }
  });

  itAtLength.each(LOOKS)(
    'fits a window of %i px (%s), as the pages beside it do, and axe finds no fault on one of %i',
    async (...look) => {
      const { shop, operator, sandbox } = addresses();
      const long = 'x'.repeat(128);
      const { page: payment } = await buy(shop, { title: 'y'.repeat(200), amount: '30', reference: long });
      const missing = [shop, sandbox, operator].map((origin) => `${origin}/nowhere`);
      const pages = [shop, `${shop}/orders/${long}`, payment, `${operator}/sign-in`, ...missing];
      await expectToFit(await open({ width: look[0] }), pages, look);
    },
  );
});

describe('hostile texts in the shop of the demo', () => {
  itAtLength('never run, whether settled accepts or refuses them', async () => {
    const { shop } = addresses();
    const tab = await open();
    const isInert = async (what: string) => {
      const foreign: string[] = await tab.evaluate(foreignTo('/assets/shop.js'));
      expect(foreign, what).toEqual([]);
      expect(tab.wrongs, what).toEqual([]);
    };
    const all = PAYLOADS.join(' ');
    await tab.goto(shop);
    await tab.getByText('Something else').click();
    await tab.getByLabel('What').fill(all);
    await tab.getByLabel('Price').fill(all);
    await tab.getByLabel('Order', { exact: true }).fill(all);
    await tab.getByRole('button', { name: 'Pay', exact: true }).click();
    await tab.getByRole('alert').waitFor();
    await isInert(all);
    const taken = PAYLOADS.filter((_, at) => at % times(24, 8) === 0);
    for (const [at, payload] of taken.entries()) {
      const reference = `${payload} ${at}`;
      await buy(shop, { title: payload, reference, amount: '30' });
      await tab.goto(`${shop}/orders/${encodeURIComponent(reference)}`);
      expect(await tab.locator('dd').allTextContents()).toEqual(expect.arrayContaining([payload, reference]));
      await isInert(payload);
    }
    await tab.goto(shop);
    const orders = tab.getByRole('list', { name: 'Orders' }).getByRole('listitem');
    expect(await orders.count()).toBeGreaterThanOrEqual(taken.length);
    await isInert('the list');
  });

  it('come back escaped, each of them', async () => {
    const { shop } = addresses();
    for (const payload of PAYLOADS) {
      // Too cheap: refused before anything is asked of the service.
      const answer = await postForm(`${shop}/orders`, { title: payload, reference: payload, amount: '1' });
      expect([400, 422], payload).toContain(answer.status);
      const [, ownForm = ''] = (await answer.text()).split('<form class="own"');
      const values = [...ownForm.matchAll(/ name="(?:title|reference)" value="([^"<>]*)"/g)];
      expect(values.map(([, value = '']) => unescaped(value))).toEqual([payload.trim(), payload.trim()]);
    }
    for (const [at, payload] of PAYLOADS.filter((_, at) => at % 24 === 0).entries()) {
      const reference = `${payload} . ${at}`;
      await buy(shop, { title: payload, reference, amount: '30' });
      const front = plainBrowser(shop);
      await front.open('/');
      expect(bidirectional(await orderAt(shop, reference))).toEqual([payload, reference]);
      expect(bidirectional(front)).toContain(reference);
    }
  });
});

describe('the shop of the demo and other sites', () => {
  itAtLength('cannot be made to buy by the page of another site', async () => {
    const { shop } = addresses();
    const fields = '<input name=good value=tea><input name=reference value=won-1>';
    const other = await startSite((_request, response) => {
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<!doctype html><form method=post action="${shop}/orders">${fields}<button>Win</button></form>`);
    });
    const tab = await open();
    await tab.goto(other.url);
    await tab.getByRole('button', { name: 'Win' }).click();
    await tab.getByRole('heading', { name: 'Refused' }).waitFor();
    expect((await fetch(`${shop}/orders/won-1`)).status).toBe(404);
  });

  it('refuses requests that a browser marks as from another site', async () => {
    const { shop } = addresses();
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'http://127.0.0.1:1' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', origin: shop },
      { host: 'evil.example' },
    ]) {
      const form = { good: 'tea', reference: 'won-2' };
      for (const path of ['/orders', '/orders/won-2/check']) {
        expect((await postForm(`${shop}${path}`, form, headers)).status, JSON.stringify(headers)).toBe(403);
      }
    }
    expect((await fetch(`${shop}/orders/won-2`)).status).toBe(404);
  });

  it('loads nothing but its own files, and its forms lead only to the hosted page and the console', async () => {
    const { shop, sandbox, operator } = addresses();
    for (const path of ['/', '/orders/nobody', '/assets/shop.js']) {
      const { headers } = await fetch(`${shop}${path}`);
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
          `form-action 'self' ${sandbox} ${operator}; base-uri 'none'; frame-ancestors 'none'`,
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-powered-by')).toBeNull();
    }
  });
});

async function heading(tab: Tab, name: string): Promise<void> {
  await tab.getByRole('heading', { name }).waitFor();
}

/** The page of an order, without script. */
async function orderAt(shop: string, reference: string): Promise<PlainBrowser> {
  const page = plainBrowser(shop);
  await page.open(`/orders/${encodeURIComponent(reference)}`);
  return page;
}

/** Opens it again until it says that it is paid. */
function paid(order: PlainBrowser): Promise<void> {
  return eventually(async () => {
    await order.open(order.url().pathname);
    expect(order.text()).toContain('Paid. Thank you!');
  });
}

/** Presses the button without a browser; returns where it leads. */
async function buy(shop: string, form: Record<string, string>): Promise<{ reference: string; page: string }> {
  const { status, headers } = await postForm(`${shop}/orders`, form);
  expect(status).toBe(303);
  return { reference: form.reference as string, page: headers.get('location') as string };
}

/** The texts of a page that others wrote. */
function bidirectional(page: PlainBrowser): string[] {
  return [...page.markup().matchAll(/<bdi>([^<>]*)<\/bdi>/g)].map(([, text = '']) => unescaped(text));
}

function control(sandbox: Addresses['sandbox'], path: string, body: object): Promise<Response> {
  return fetch(`${sandbox}/_control${path}`, { method: 'POST', body: JSON.stringify(body) });
}

async function payAt(sandbox: string, page: string): Promise<void> {
  expect((await control(sandbox, `/links/${page.split('/pay/')[1]}/pay`, {})).status).toBe(200);
  await control(sandbox, '/idle', {});
}
