import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { type Tab, useBrowser } from '../support/browser.ts';
import { signatureHex } from '../support/deliveries.ts';
import { eventually } from '../support/timing.ts';
import { createLink, details, sharedSandbox, startSite } from './page-order.ts';

const KINDS = ['payment_link.created', 'payment_link.status_changed', 'payment_link.payment_status_changed'] as const;
const SECRET = 'secret-of-the-panel';

const open = useBrowser();
const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe('the Sandbox panel', () => {
  it('exists in the environment sandbox only, which disables paying', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    await tab.getByText('Payments are disabled').waitFor();
    expect(await tab.getByRole('button', { name: 'Get the PIX code' }).isDisabled()).toBe(true);
    for (const action of ['payments', 'complete']) {
      const body = new URLSearchParams({ method: 'PIX' });
      const answer = await fetch(`${link.url}/${action}`, { method: 'POST', body });
      expect([action, answer.status]).toEqual([action, 403]);
      expect(await answer.text()).toContain('Payments are disabled');
    }
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');

    const payable = await createLink(production());
    await tab.goto(payable.url);
    expect(await tab.getByRole('heading', { name: 'Sandbox panel' }).count()).toBe(0);
    const answer = await panelCall(payable.url, 'status', 'EXPIRED');
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'no_panel' }]);
    expect((await details(production(), payable)).status).toBe('ACTIVE');
  });

  it('simulates each link status', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    const shown = { EXPIRED: 'This link has expired', INACTIVE: 'This link is closed', ACTIVE: 'How would you like' };
    for (const [status, heading] of Object.entries(shown)) {
      await button(tab, status).click();
      await tab.getByRole('heading', { name: heading }).waitFor();
      expect((await details(sandbox, link)).status).toBe(status);
      expect(await button(tab, status).getAttribute('aria-pressed')).toBe('true');
    }
  });

  it('makes a payment name the chosen money instead of what its link asks', async () => {
    const sandbox = simulated();
    const tab = await open();
    const named = {
      'what the link asks': [100, 100, 'BRL'],
      less: [100, 60, 'BRL'],
      'more, by the link too': [120, 120, 'BRL'],
      'more, as interest': [100, 121.89, 'BRL'],
      'another currency': [100, 18, 'USD'],
    };
    for (const [label, [ofLink, amount, currency]] of Object.entries(named)) {
      const link = await createLink(sandbox, { amount: 100 });
      await tab.goto(link.url);
      await tab.getByLabel(label, { exact: true }).check();
      await button(tab, 'PENDING').click();
      await entry(tab, 'payment status: PENDING').getByText('done').waitFor();
      // The choice stays while the page is drawn anew; it is of the next payment, so this one keeps its money.
      expect(await tab.getByLabel(label, { exact: true }).isChecked()).toBe(true);
      await button(tab, 'COMPLETED').click();
      await entry(tab, 'payment status: COMPLETED').getByText('done').waitFor();
      const shown = await details(sandbox, link);
      expect(shown).toMatchObject({ amount: ofLink, currency: 'BRL', paymentStatus: 'COMPLETED' });
      expect(shown.payments).toMatchObject([{ status: 'COMPLETED', quote: { amount, currency } }]);
    }
    const link = await createLink(sandbox);
    const refused = await fetch(`${link.url}/panel/payment`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ value: 'COMPLETED', money: 'none' }),
    });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { message: expect.stringContaining('known: asked') },
    ]);
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
  });

  it('simulates each payment status, refund and dispute among them, and says why one is refused', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    await button(tab, 'REFUNDED').click();
    await entry(tab, 'payment status: REFUNDED').getByText('has no payment that is COMPLETED').waitFor();
    for (const status of ['PENDING', 'COMPLETED', 'DISPUTED']) {
      await button(tab, status).click();
      await entry(tab, `payment status: ${status}`).getByText('done').waitFor();
      expect((await details(sandbox, link)).payments).toMatchObject([{ status }]);
    }
    await tab.getByText('The payment is now disputed.').waitFor();

    const other = await createLink(sandbox);
    await tab.goto(other.url);
    await button(tab, 'COMPLETED').click();
    await button(tab, 'REFUNDED').click();
    await tab.getByText('The payment has been refunded.').waitFor();
    expect((await details(sandbox, other)).payments).toMatchObject([{ status: 'REFUNDED' }]);
  });

  it.each(['server', 'browser'] as const)(
    'sends each event from the %s, and keeps its log over a reload',
    async (from) => {
      const sandbox = simulated();
      const receiver = await startReceiver(sandbox.url);
      const link = await createLink(sandbox, { webhookUrl: `${receiver.url}/hook`, webhookSecret: SECRET });
      await sandbox.idle();
      expect(receiver.requests).toEqual([]);
      const tab = await open();
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
      expect(tab.wrongs).toEqual([]);

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

  it.each(['server', 'browser'] as const)(
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

  it('shows an answer that is not 2xx, and a receiver that does not exist', async () => {
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

  it('suggests that a receiver may not answer other origins', async () => {
    const sandbox = simulated();
    const closed = await startSite((_request, response) => response.writeHead(200).end());
    const tab = await open();
    await tab.goto((await createLink(sandbox, { webhookUrl: closed.url })).url);
    await tab.getByLabel('this browser').check();
    await button(tab, 'payment_link.created').click();
    await entry(tab, 'payment_link.created').getByText(`does not allow ${sandbox.url} (CORS)`).waitFor();
    expect(closed.requests.map(({ method }) => method)).toEqual(['OPTIONS']);
  });

  it('refuses unknown names, and lists the known ones', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { webhookUrl: 'http://127.0.0.1:9/' });
    const known = {
      status: 'ACTIVE, INACTIVE, EXPIRED',
      payment: 'PENDING, COMPLETED, DISPUTED, REFUNDED',
      send: KINDS.join(', '),
      sign: KINDS.join(', '),
    };
    for (const [action, names] of Object.entries(known)) {
      const answer = await panelCall(link.url, action, 'BOGUS');
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining(names) });
    }
    const unread = await fetch(`${link.url}/panel/status`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"value":',
    });
    expect([unread.status, await unread.json()]).toMatchObject([400, { code: 'unreadable' }]);
  });
});

describe('the panel and settled', () => {
  it.each(['server', 'browser'] as const)('turns an order paid by an event sent from the %s', async (from) => {
    const sandbox = simulated();
    const reference = `order-${from}`;
    const settled = await startTestApp({ environment: { SETTLED_HOOKS_CORS: sandbox.url } });
    const { webhookUrl, webhookSecret } = await settled.reserve(reference, '149.90');
    const link = await createLink(sandbox, { externalReference: reference, webhookUrl, webhookSecret });
    const tab = await open();
    await tab.goto(link.url);
    if (from === 'browser') await tab.getByLabel('this browser').check();
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

function button(tab: Tab, name: string) {
  return tab.locator('#panel').getByRole('button', { name: new RegExp(`^${name}`) });
}

/** An entry of the log, by what it is about. */
function entry(tab: Tab, what: string) {
  return tab.getByRole('list', { name: 'Log' }).getByRole('listitem').filter({ hasText: what });
}

function panelCall(url: string, action: string, value: string): Promise<Response> {
  return fetch(`${url}/panel/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ value }),
  });
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
