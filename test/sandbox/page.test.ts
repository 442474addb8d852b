import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { holdTime, LOOKS, overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { signatureHex } from '../support/deliveries.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { eventually, itAtLength, times } from '../support/timing.ts';
import { createLink, details, saying, sharedSandbox, startSite } from './page-order.ts';
import { foreignTo, PAYLOADS } from './page-payloads.ts';

/**
 * What only a browser shows: the test command pays once and sends each event once, the long mode does all. What the server's
 * answers hold is in page-answers.test.ts and page-safety.test.ts.
 */

const KINDS = ['payment_link.created', 'payment_link.status_changed', 'payment_link.payment_status_changed'] as const;
const SECRET = 'secret-of-the-panel';

const open = useBrowser();
const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe.each(LOOKS)('the hosted page at %i px in %s mode', (width, colorScheme) => {
  /** Nothing scrolls sideways, and axe finds nothing. `isHeld`: the page's time is, without which axe cannot look. */
  async function looksRight(tab: Tab, { isHeld = false } = {}): Promise<void> {
    expect(await overflowOf(tab)).toBe(0);
    await tab.emulateMedia({ colorScheme });
    if (!isHeld) expect(await violationsIn(tab)).toEqual([]);
    expect(tab.wrongs).toEqual([]);
  }

  itAtLength('pays by PIX: pending until the bank confirms, then complete, with a receipt', async () => {
    const sandbox = production();
    const link = await createLink(sandbox, {
      externalReference: `order-7-${width}-${colorScheme}`,
      description: 'Row F',
    });
    const tab = await open({ width });
    await tab.goto(link.url);
    const order = tab.getByRole('region', { name: 'Your order' });
    for (const text of ['Two tickets', 'R$ 149.90', 'Row F', 'order-7-', 'Sandbox Merchant', 'no time limit']) {
      await order.getByText(text).first().waitFor();
    }
    await looksRight(tab);
    await tab.getByLabel('Name optional').fill('Ana');
    await tab.getByRole('button', { name: 'Get the PIX code' }).click();
    await tab.getByText('Waiting for your bank').waitFor();
    await looksRight(tab);
    expect(await tab.getByLabel('PIX code').inputValue()).toContain('NOT-A-PIX-CODE');
    expect(await details(sandbox, link)).toMatchObject({ status: 'ACTIVE', paymentStatus: 'PENDING' });

    await tab.getByRole('button', { name: 'I have paid' }).click();
    await heading(tab, 'Payment complete');
    await looksRight(tab);
    await tab.goto(tab.url().replace(/\?.*/, ''));
    await heading(tab, 'This link is already paid');
    await looksRight(tab);
  });

  it('pays by card in 3 instalments, with interest, and sends nothing of the card', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open({ width });
    const sent: string[] = [];
    tab.on('request', (request) => sent.push(request.postData() ?? ''));
    await holdTime(tab);
    await tab.goto(link.url);
    await fillCard(tab, { installments: '3' });
    await looksRight(tab, { isHeld: true });
    await tab.getByRole('button', { name: 'Pay R$ 155.87' }).click();
    await tab.getByRole('status').getByText('PENDING').waitFor();
    expect(await details(sandbox, link)).toMatchObject({ status: 'ACTIVE', paymentStatus: 'PENDING' });
    await tab.clock.resume();
    await heading(tab, 'Payment complete');
    await tab.getByText('Credit card, 3 instalments').first().waitFor();
    expect((await details(sandbox, link)).payments).toMatchObject([
      {
        status: 'COMPLETED',
        customer: { name: 'ANA LIMA', email: null },
        quote: { amount: 149.9, paymentMethod: 'CREDIT_CARD', installments: 3, totalBRL: 155.87 },
      },
    ]);
    const posted = sent.filter((body) => body !== '');
    expect(posted[0]).toBe('method=CREDIT_CARD&name=ANA+LIMA&email=&installments=3');
    expect(posted.join()).not.toMatch(/4111|12%2F34|123/);
    await looksRight(tab);
  });

  itAtLength('says that its link has expired, also to a page that was open at the time', async () => {
    const sandbox = await startTestSandbox();
    const expiresAt = new Date(sandbox.clock.nowMs() + 3_600_000).toISOString();
    const link = await createLink(sandbox, { expiresAt });
    const tab = await open({ width });
    await tab.goto(link.url);
    await heading(tab, 'How would you like to pay?');
    await sandbox.clock.advance(3_600_000);
    await heading(tab, 'This link has expired');
    await looksRight(tab);
    await tab.goto(`${sandbox.url}/pay/pl_nobody`);
    await heading(tab, 'Not found');
    await looksRight(tab);
  });

  it.each((['browser', 'server'] as const).slice(0, times(1, 2)))(
    'sends each event from the panel, by the %s, and keeps its log over a reload',
    async (from) => {
      const sandbox = simulated();
      const receiver = await startReceiver(sandbox.url);
      const link = await createLink(sandbox, { webhookUrl: `${receiver.url}/hook`, webhookSecret: SECRET });
      await sandbox.idle();
      expect(receiver.requests).toEqual([]);
      const tab = await open({ width });
      await tab.goto(link.url);
      if (from === 'browser') await tab.getByLabel('this browser').check();
      for (const kind of KINDS) {
        await button(tab, kind).click();
        await entry(tab, kind).getByText('202', { exact: true }).waitFor();
        await entry(tab, kind).getByText(`heard ${kind}`).waitFor();
        await entry(tab, kind).getByText(`from the ${from}`).waitFor();
      }
      const told = receiver.requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body).type);
      expect(told).toEqual(KINDS);
      expect(receiver.requests.some(({ method }) => method === 'OPTIONS')).toBe(from === 'browser');
      await looksRight(tab);

      await tab.reload();
      for (const kind of KINDS) await entry(tab, kind).getByText(`heard ${kind}`).waitFor();
      await tab.goto((await createLink(sandbox)).url);
      await tab.getByText('Nothing yet.').waitFor();
      await tab.goto(link.url);
      await button(tab, 'Clear the log').click();
      await tab.reload();
      await tab.getByText('Nothing yet.').waitFor();
    },
  );

  itAtLength('holds words without a gap, large amounts and long addresses', async () => {
    const sandbox = simulated();
    const long = 'W'.repeat(400);
    const tab = await open({ width });
    await tab.goto(
      (
        await createLink(sandbox, {
          title: long,
          description: long,
          amount: 999_999_999_999.99,
          externalReference: `${long.slice(10)}${width}${colorScheme}`,
          webhookUrl: `${sandbox.url}/${long}`,
          metadata: { [long]: long },
        })
      ).url,
    );
    await tab.getByText('The link’s data').click();
    await looksRight(tab);
  });
});

describe('the hosted page in a browser', () => {
  itAtLength('sends the customer on to the callbackUrl after a visible moment', async () => {
    const sandbox = production();
    // The page stays until the shop answers, which it does when the page has been looked at.
    const seen = Promise.withResolvers<void>();
    const shop = await startSite(async (request, response) => {
      await seen.promise;
      saying('Welcome back')(request, response);
    });
    const link = await createLink(sandbox, { callbackUrl: `${shop.url}/thanks?order=7&x=%22` });
    const tab = await open();
    await tab.goto(link.url);
    await tab.getByRole('button', { name: 'Get the PIX code' }).click();
    await tab.getByRole('button', { name: 'I have paid' }).click();
    await heading(tab, 'Payment complete');
    const onward = tab.getByRole('link', { name: 'Return to the seller now' });
    expect(await onward.getAttribute('href')).toBe(`${shop.url}/thanks?order=7&x=%22`);
    seen.resolve();
    await tab.getByText('Welcome back').waitFor();
    expect(tab.url()).toBe(`${shop.url}/thanks?order=7&x=%22`);
  });

  itAtLength('pays with the keyboard alone', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    await tab.keyboard.press('Tab');
    expect(await focused(tab)).toBe('choose-pix');
    await tab.keyboard.press('ArrowRight');
    expect(await focused(tab)).toBe('choose-card');
    await tab.keyboard.press('Tab');
    for (const text of [null, '4111 1111 1111 1111', 'ANA LIMA', '12/34', '123', null]) {
      if (text !== null) await tab.keyboard.type(text);
      await tab.keyboard.press('Tab');
    }
    expect(await focused(tab)).toBe('installments');
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('Tab');
    await tab.keyboard.press('Enter');
    await heading(tab, 'Payment complete');
    expect((await details(sandbox, link)).payments[0].quote.installments).toBe(2);
  });

  itAtLength('does not take a card that is not filled in', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    await tab.getByText('Credit card').click();
    await tab.getByRole('button', { name: 'Pay' }).click();
    expect(await focused(tab)).toBe('card-number');
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
  });

  itAtLength('says that it was paid in another tab', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const [one, other] = [await open(), await open()];
    await one.goto(link.url);
    await one.getByRole('button', { name: 'Get the PIX code' }).click();
    await one.getByText('Waiting for your bank').waitFor();
    await other.goto(link.url);
    await other.getByRole('button', { name: 'Get the PIX code' }).click();
    await other.getByRole('button', { name: 'I have paid' }).click();
    await heading(other, 'Payment complete');
    await heading(one, 'This link is already paid');
  });

  it('runs nothing that a link carries, on the way through a payment', async () => {
    const sandbox = production();
    const tab = await open();
    const all = PAYLOADS.join(' ');
    const link = await createLink(sandbox, {
      ...{ title: all, description: all, externalReference: all, metadata: { [all]: all } },
      webhookUrl: `https://shop.example/?${all.replace(/\s/g, '')}`,
    });
    await tab.goto(link.url);
    for (const name of ['Get the PIX code', 'I have paid']) {
      expect(await tab.locator('h1').textContent()).toBe(asShown(all));
      expect(await tab.evaluate(FOREIGN)).toEqual([]);
      await tab.getByRole('button', { name }).click();
    }
    await heading(tab, 'Payment complete');
    expect(await tab.evaluate(FOREIGN)).toEqual([]);
    expect(tab.wrongs).toEqual([]);
  });

  itAtLength('cannot be paid by a page of another site, neither by form nor by script', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const other = await startSite((_request, response) => {
      const form = `<form method=post action="${link.url}/payments"><input name=method value=PIX><button>Win</button></form>`;
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html>${form}`);
    });
    const tab = await open();
    await tab.goto(other.url);
    const byScript = `fetch('${link.url}/payments', { method: 'POST', mode: 'no-cors', body: new URLSearchParams('method=PIX') }).then(() => 'sent')`;
    expect(await tab.evaluate(byScript)).toBe('sent');
    const [answer] = await Promise.all([
      tab.waitForResponse((response) => response.request().method() === 'POST'),
      tab.getByRole('button', { name: 'Win' }).click(),
    ]);
    expect(answer.status()).toBe(403);
    await tab.getByText('may not use the sandbox').waitFor();
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
  });
});

describe('the Sandbox panel in a browser', () => {
  it('simulates what its buttons say, in the chosen money, and says why one is refused', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { amount: 100 });
    const tab = await open();
    await tab.goto(link.url);
    await button(tab, 'REFUNDED').click();
    await entry(tab, 'payment status: REFUNDED').getByText('has no payment that is COMPLETED').waitFor();
    await tab.getByLabel('less', { exact: true }).check();
    for (const status of ['PENDING', 'COMPLETED']) {
      await button(tab, status).click();
      await entry(tab, `payment status: ${status}`).getByText('done').waitFor();
      // The choice stays while the page is drawn anew; it is of the next payment, so this one keeps its money.
      expect(await tab.getByLabel('less', { exact: true }).isChecked()).toBe(true);
    }
    await button(tab, 'EXPIRED').click();
    await entry(tab, 'link status: EXPIRED').getByText('done').waitFor();
    expect(await button(tab, 'EXPIRED').getAttribute('aria-pressed')).toBe('true');
    const payments = [{ status: 'COMPLETED', quote: { amount: 60, currency: 'BRL' } }];
    expect(await details(sandbox, link)).toMatchObject({ status: 'EXPIRED', payments });
  });

  it.each((['browser', 'server'] as const).slice(0, times(1, 2)))(
    'shows the answer of a receiver to the %s as text, even if it is markup',
    async (from) => {
      const markup = '<img src=x onerror=hit=1><b>bold</b><script>hit=1</script>';
      const sandbox = simulated();
      const receiver = await startSite((_request, response) => {
        response.setHeader('access-control-allow-origin', sandbox.url);
        response.setHeader('access-control-allow-headers', '*');
        response.end(markup);
      });
      const tab = await open();
      await tab.goto((await createLink(sandbox, { webhookUrl: receiver.url })).url);
      if (from === 'browser') await tab.getByLabel('this browser').check();
      await button(tab, 'payment_link.created').click();
      const told = entry(tab, 'payment_link.created');
      for (const isReloaded of [false, true]) {
        if (isReloaded) await tab.reload();
        await told.getByText(`from the ${from}`).waitFor();
        expect(await told.locator('pre').textContent()).toBe(markup);
        expect(await told.locator('img, script, pre *').count()).toBe(0);
        expect(tab.wrongs).toEqual([]);
      }
    },
  );

  itAtLength('shows an answer that is not 2xx, and a receiver that does not exist', async () => {
    const sandbox = simulated();
    const broken = await startSite((_request, response) => response.writeHead(500).end('out of order'));
    const link = await createLink(sandbox, { webhookUrl: broken.url });
    const tab = await open();
    await tab.goto(link.url);
    await button(tab, 'payment_link.created').click();
    await entry(tab, 'payment_link.created').getByText('500').waitFor();
    await entry(tab, 'payment_link.created').getByText('out of order').waitFor();

    const nobody = await createLink(sandbox, { webhookUrl: 'http://127.0.0.1:9/hook' });
    await tab.goto(nobody.url);
    await button(tab, 'payment_link.created').click();
    await entry(tab, 'payment_link.created').getByText('ECONNREFUSED').waitFor();

    await tab.goto((await createLink(sandbox)).url);
    await tab.getByText('This link has no webhookUrl').waitFor();
  });

  itAtLength('suggests that a receiver may not answer other origins', async () => {
    const sandbox = simulated();
    const closed = await startSite((_request, response) => response.writeHead(200).end());
    const tab = await open();
    await tab.goto((await createLink(sandbox, { webhookUrl: closed.url })).url);
    await tab.getByLabel('this browser').check();
    await button(tab, 'payment_link.created').click();
    await entry(tab, 'payment_link.created').getByText(`does not allow ${sandbox.url} (CORS)`).waitFor();
    expect(closed.requests.map(({ method }) => method)).toEqual(['OPTIONS']);
  });

  itAtLength('turns an order paid by an event sent from the browser', async () => {
    const sandbox = simulated();
    const reference = 'order-browser';
    const settled = await startTestApp({ environment: { SETTLED_HOOKS_CORS: sandbox.url } });
    const { webhookUrl, webhookSecret } = await settled.reserve(reference, '149.90');
    const link = await createLink(sandbox, { externalReference: reference, webhookUrl, webhookSecret });
    const tab = await open();
    await tab.goto(link.url);
    await tab.getByLabel('this browser').check();
    await button(tab, 'COMPLETED').click();
    await entry(tab, 'payment status: COMPLETED').waitFor();
    await button(tab, 'payment_link.payment_status_changed').click();
    const told = entry(tab, 'payment_link.payment_status_changed');
    await told.getByText('200', { exact: true }).waitFor();
    await told.getByText('"received":true').waitFor();
    await eventually(async () => expect((await settled.order(reference)).state).toBe('paid'));
    await tab.reload();
    await told.getByText('"received":true').waitFor();
    expect(tab.wrongs).toEqual([]);
  });
});

const FOREIGN = foreignTo('/assets/page.js');

/** The text of a page knows no carriage return and no NUL. */
function asShown(payload: string): string {
  return payload.replaceAll('\u0000', '').replaceAll('\r\n', '\n').replaceAll('\r', '\n');
}

async function fillCard(tab: Tab, { installments }: { installments: string }): Promise<void> {
  await tab.getByText('Credit card').click();
  await tab.getByLabel('Card number').fill('4111 1111 1111 1111');
  await tab.getByLabel('Name on the card').fill('ANA LIMA');
  await tab.getByLabel('Expiry').fill('12/34');
  await tab.getByLabel('CVC').fill('123');
  await tab.getByLabel('Instalments', { exact: true }).selectOption(installments);
}

async function heading(tab: Tab, name: string): Promise<void> {
  await tab.getByRole('heading', { name }).waitFor();
}

async function focused(tab: Tab): Promise<unknown> {
  return await tab.evaluate('document.activeElement.id');
}

function button(tab: Tab, name: string) {
  return tab.locator('#panel').getByRole('button', { name: new RegExp(`^${name}`) });
}

/** An entry of the log, by what it is about. */
function entry(tab: Tab, what: string) {
  return tab.getByRole('list', { name: 'Log' }).getByRole('listitem').filter({ hasText: what });
}

/** A receiver that checks the signature, answers pages of one origin, and says what it heard. */
async function startReceiver(origin: string) {
  return await startSite((request, response, body) => {
    response.setHeader('access-control-allow-origin', origin);
    if (request.method === 'OPTIONS') {
      const headers = 'content-type, x-service-signature, x-service-timestamp';
      response.writeHead(204, { 'access-control-allow-headers': headers }).end();
      return;
    }
    const expected = signatureHex(SECRET, String(request.headers['x-service-timestamp']), body);
    if (request.headers['x-service-signature'] !== expected) response.writeHead(401).end('not signed by us');
    else response.writeHead(202).end(`heard ${JSON.parse(body).type}`);
  });
}
