import { request } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { startSite } from '../sandbox/page-order.ts';
import { foreignTo, PAYLOADS } from '../sandbox/page-payloads.ts';
import { LOOKS, overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { times } from '../support/timing.ts';
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
    const tab = await open();
    await tab.goto(shop);
    const opened = tab.context().waitForEvent('page');
    await tab.getByRole('button', { name: 'Open the console' }).click();
    const beside = await opened;
    await beside.getByRole('button', { name: 'Sign in' }).click();
    await beside.waitForURL(`${operator}/`);
    await beside.getByText('demo', { exact: true }).waitFor();
    await beside.goto(`${operator}/orders/${reference}`);
    await beside.getByText(`Order ${reference} (`).first().waitFor();
    expect(tab.wrongs).toEqual([]);
  });

  it('sells without script as well', async () => {
    const { shop, sandbox } = addresses();
    const tab = await open({ javaScriptEnabled: false });
    await tab.goto(shop);
    await tab.getByRole('button', { name: 'Tea for a month' }).click();
    await tab.getByRole('button', { name: 'Get the PIX code' }).waitFor();
    await payAt(sandbox, tab.url());
    await tab.goto(shop);
    await tab.getByRole('link', { name: /^tea-\w{6}$/ }).click();
    await heading(tab, 'Paid. Thank you!');
  });

  it.each([true, false])(
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
    const tab = await open({ javaScriptEnabled: false });
    await tab.goto(`${shop}/orders/${reference}`);
    await heading(tab, 'Waiting for your payment');
    await tab.getByRole('button', { name: 'ask the service now' }).click();
    await heading(tab, 'Paid. Thank you!');
    await tab.getByText('paid, learned by asking the service').waitFor();
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
    const tab = await open();
    await tab.goto(`${shop}/orders/${reference}`);
    await heading(tab, 'Waiting for your payment');
    await tab.getByText('nothing yet').waitFor();
  });

  it('opens one order if its button is pressed twice, and leads to the order if it is paid', async () => {
    const { shop, sandbox } = addresses();
    const first = await buy(shop, { good: 'tea', reference: 'tea-1' });
    expect(await buy(shop, { good: 'tea', reference: 'tea-1' })).toEqual(first);
    await payAt(sandbox, first.page);
    const tab = await open();
    await tab.goto(`${shop}/orders/tea-1`);
    await heading(tab, 'Paid. Thank you!');
    expect((await buy(shop, { good: 'tea', reference: 'tea-1' })).page).toBe('/orders/tea-1');
  });

  it('says what settled refuses, and keeps what was typed', async () => {
    const { shop } = addresses();
    const tab = await open();
    await tab.goto(shop);
    await tab.getByText('Something else').click();
    await tab.getByLabel('What').fill('A pencil');
    await tab.getByLabel('Price').fill('1.50');
    await tab.getByRole('button', { name: 'Pay', exact: true }).click();
    await tab
      .getByRole('alert')
      .getByText(/^settled refused: .*25/)
      .waitFor();
    expect(await tab.getByLabel('What').inputValue()).toBe('A pencil');
    await buy(shop, { title: 'A table', amount: '300', reference: 'table-1' });
    const answer = await post(`${shop}/orders`, { form: { title: 'A table', amount: '301', reference: 'table-1' } });
    expect(answer).toMatchObject({ status: 409, text: expect.stringContaining('settled refused: ') });
    expect(tab.wrongs).toEqual([]);
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

  it.each(LOOKS)(
    'fits a window of %i px (%s), as the pages beside it do, and axe finds no fault on one of %i',
    async (width, colorScheme, axeEvery) => {
      const { shop, operator, sandbox } = addresses();
      const long = 'x'.repeat(128);
      const { page: payment } = await buy(shop, { title: 'y'.repeat(200), amount: '30', reference: long });
      const tab = await open({ width });
      await tab.emulateMedia({ colorScheme });
      const pages = {
        front: shop,
        order: `${shop}/orders/${long}`,
        missing: `${shop}/nowhere`,
        pay: payment,
        'pay-missing': `${sandbox}/nowhere`,
        docs: `${operator}/docs`,
        'sign-in': `${operator}/sign-in`,
        'console-missing': `${operator}/nowhere`,
      };
      for (const [at, [name, page]] of Object.entries(pages).entries()) {
        await tab.goto(page);
        expect([name, await overflowOf(tab)]).toEqual([name, 0]);
        if (at % axeEvery === 0) expect([name, await violationsIn(tab)]).toEqual([name, []]);
      }
    },
  );
});

describe('hostile texts in the shop of the demo', () => {
  it('never run, whether settled accepts or refuses them', async () => {
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
      const { status, text } = await post(`${shop}/orders`, {
        form: { title: payload, reference: payload, amount: '1' },
      });
      expect([400, 422], payload).toContain(status);
      const [, ownForm = ''] = text.split('<form class="own"');
      const values = [...ownForm.matchAll(/ name="(?:title|reference)" value="([^"<>]*)"/g)];
      expect(values.map(([, value = '']) => unescaped(value))).toEqual([payload.trim(), payload.trim()]);
    }
  });
});

describe('the shop of the demo and other sites', () => {
  it('cannot be made to buy by the page of another site', async () => {
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
        expect((await post(`${shop}${path}`, { form, headers })).status, JSON.stringify(headers)).toBe(403);
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

/** Presses the button without a browser; returns where it leads. */
async function buy(shop: string, form: Record<string, string>): Promise<{ reference: string; page: string }> {
  const { status, location } = await post(`${shop}/orders`, { form });
  expect(status).toBe(303);
  return { reference: form.reference as string, page: location as string };
}

/** The text that an attribute stands for. */
function unescaped(value: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return value.replace(/&([a-z]+|#39);/g, (_all, name: string) => characters[name] as string);
}

function control(sandbox: Addresses['sandbox'], path: string, body: object): Promise<Response> {
  return fetch(`${sandbox}/_control${path}`, { method: 'POST', body: JSON.stringify(body) });
}

async function payAt(sandbox: string, page: string): Promise<void> {
  expect((await control(sandbox, `/links/${page.split('/pay/')[1]}/pay`, {})).status).toBe(200);
  await control(sandbox, '/idle', {});
}

type Posted = { status: number | undefined; location: string | undefined; text: string };

/** A form as it is, with headers that fetch does not let a program set. */
function post(
  url: string,
  { form, headers = {} }: { form: Record<string, string>; headers?: Record<string, string> },
): Promise<Posted> {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'POST', headers: { ...type, ...headers } });
    asked.on('error', reject);
    asked.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        resolve({ status: response.statusCode, location: response.headers.location, text });
      });
    });
    asked.end(new URLSearchParams(form).toString());
  });
}
