import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { EVENT_KINDS } from '../../sandbox/model.ts';
import { testFolder } from '../support/app.ts';
import { plainBrowser } from '../support/plain_browser.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { createLink, details, POLICY, panelCall, sharedSandbox } from './page-order.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe('what the page says', () => {
  const textOf = async (url: string) => (await fetch(url)).text();

  it('offers 1 to 12 instalments, each with its amount and the total', async () => {
    const text = await textOf((await createLink(production(), { amount: 100 })).url);
    const [, select = ''] = /<select [^>]*id="installments"[^>]*>(.*?)<\/select>/s.exec(text) ?? [];
    const words = [...select.matchAll(/<option[^>]*>([^<]*)/g)].map(([, word]) =>
      word?.replaceAll('\u00a0', ' ').trim(),
    );
    expect(words).toHaveLength(12);
    expect([words[0], words[1], words[11]]).toEqual([
      '1 × R$ 100.00 · no interest',
      '2 × R$ 51.00 · R$ 101.99 in total',
      '12 × R$ 10.16 · R$ 121.89 in total',
    ]);
  });

  it.each([
    ['refund', 'has been refunded'],
    ['dispute', 'is now disputed'],
  ])('names a %s of its payment', async (action, words) => {
    const sandbox = production();
    const link = await createLink(sandbox);
    await sandbox.control(`/links/${link.id}/pay`, { body: {} });
    await sandbox.control(`/links/${link.id}/${action}`, { body: {} });
    const text = await textOf(link.url);
    expect(text).toContain('This link is already paid');
    expect(text).toContain(words);
  });

  it('answers 404 with its own page to an unknown link, and leads from the short address to the page', async () => {
    const sandbox = production();
    for (const path of ['/pay/pl_nobody', '/s/nobody', '/pay/%3Cb%3E', '/', '/pay/pl_nobody/state']) {
      expect([path, (await fetch(`${sandbox.url}${path}`)).status]).toEqual([path, 404]);
    }
    const unknown = await textOf(`${sandbox.url}/pay/pl_nobody`);
    for (const words of ['Not found', 'No money is real']) expect(unknown).toContain(words);
    const link = await createLink(sandbox);
    const opened = await fetch(link.shortUrl);
    expect([opened.url, await opened.text()]).toEqual([link.url, expect.stringContaining('Two tickets')]);
  });

  it.each([
    ['method=CASH', 'method is one of PIX, CREDIT_CARD'],
    ['method=CREDIT_CARD&installments=13', 'installments must be a whole number from 1 to 12'],
    ['method=CREDIT_CARD&installments=1.5', 'installments must be a whole number from 1 to 12'],
    ['', 'method is one of PIX, CREDIT_CARD'],
  ])('answers 400 to the form "%s", and shows it again with what is wrong', async (form, problem) => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const answer = await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams(form) });
    expect(answer.status).toBe(400);
    const text = await answer.text();
    expect(text).toContain(problem);
    expect(text).toContain('How would you like to pay?');
  });

  it('answers 404 to completing a payment that is not of this link', async () => {
    const sandbox = production();
    const [link, other] = [await createLink(sandbox), await createLink(sandbox)];
    const started = await fetch(`${other.url}/payments`, {
      method: 'POST',
      body: new URLSearchParams({ method: 'PIX' }),
      redirect: 'manual',
    });
    const payment = started.headers.get('location')?.split('payment=')[1] as string;
    const answer = await fetch(`${link.url}/complete`, { method: 'POST', body: new URLSearchParams({ payment }) });
    expect(answer.status).toBe(404);
    expect((await details(sandbox, other)).paymentStatus).toBe('PENDING');
  });
});

describe('a payment by forms alone', () => {
  const visit = async (link: { url: string }) => {
    const page = plainBrowser(link.url);
    await page.open('');
    return page;
  };

  it.each([
    ['PIX', 'Get the PIX code', { name: 'Ana' }, 'Waiting for your bank', 'I have paid', 1, 149.9],
    ['CREDIT_CARD', 'Pay R$', { name: 'Ana', installments: '12' }, 'Checking with the bank', 'Continue', 12, 182.71],
  ] as const)('by %s is pending until the bank confirms, then complete, with a receipt, and paid', async (...row) => {
    const [paymentMethod, button, typed, waiting, confirm, installments, totalBRL] = row;
    const sandbox = production();
    const link = await createLink(sandbox, {
      description: 'Row F',
      callbackUrl: 'https://shop.example/thanks?order=7',
    });
    const page = await visit(link);
    for (const words of ['Two tickets', 'R$ 149.90', 'Row F', 'Sandbox Merchant', 'no time limit'])
      expect(page.text('.order').replaceAll('\u00a0', ' ')).toContain(words);
    await page.press(button, typed);
    expect(page.text('.pay')).toContain(waiting);
    expect(page.field('pix-code').includes('NOT-A-PIX-CODE')).toBe(paymentMethod === 'PIX');
    expect(await details(sandbox, link)).toMatchObject({ status: 'ACTIVE', paymentStatus: 'PENDING' });
    await page.press(confirm);
    expect(page.text('h2')).toBe('Payment complete');
    expect(page.markup()).toContain('href="https://shop.example/thanks?order=7"');
    const quote = { amount: 149.9, paymentMethod, installments, totalBRL };
    expect(await details(sandbox, link)).toMatchObject({
      ...{ status: 'INACTIVE', paymentStatus: 'COMPLETED' },
      payments: [{ status: 'COMPLETED', customer: { name: 'Ana', email: null }, quote }],
    });
    await page.open('');
    expect(page.text('h2')).toBe('This link is already paid');
  });

  it('completes that of its own visit, and no other', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const [one, other] = [await visit(link), await visit(link)];
    for (const page of [one, other]) await page.press('Get the PIX code');
    await one.press('I have paid');
    expect(one.text('h2')).toBe('Payment complete');
    await other.press('I have paid');
    expect(other.text('h2')).toBe('This link is already paid');
    const again = await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams({ method: 'PIX' }) });
    expect(await again.text()).toContain('already paid');
    const { payments } = await details(sandbox, link);
    expect(payments.map(({ status }: { status: string }) => status)).toEqual(['COMPLETED', 'PENDING']);
  });

  it('is none once the link has expired', async () => {
    const sandbox = await startTestSandbox();
    const link = await createLink(sandbox, { expiresAt: new Date(sandbox.clock.nowMs() + 3_600_000).toISOString() });
    const page = await visit(link);
    await sandbox.clock.advance(3_600_000);
    await page.press('Get the PIX code');
    expect(page.text('h2')).toBe('This link has expired');
    expect((await details(sandbox, link)).payments).toEqual([]);
  });
});

describe('the Sandbox panel', () => {
  it('simulates each link status', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox);
    for (const [status, heading] of [
      ['EXPIRED', 'This link has expired'],
      ['INACTIVE', 'This link is closed'],
      ['ACTIVE', 'How would you like'],
    ] as const) {
      await panelCall(link.url, 'status', status);
      const shown = await (await fetch(link.url)).text();
      for (const words of [heading, `value="${status}" aria-pressed="true"`]) expect(shown).toContain(words);
      expect((await details(sandbox, link)).status).toBe(status);
    }
  });

  it.each([
    ['asked', 100, 100, 'BRL', ['PENDING', 'COMPLETED', 'DISPUTED'], 'The payment is now disputed.'],
    ['less', 100, 60, 'BRL', ['COMPLETED', 'REFUNDED'], 'The payment has been refunded.'],
    ['more', 120, 120, 'BRL', ['PENDING', 'COMPLETED'], 'already paid'],
    ['interest', 100, 121.89, 'BRL', ['COMPLETED'], 'already paid'],
    ['other-currency', 100, 18, 'USD', ['COMPLETED'], 'already paid'],
  ] as const)(
    'simulates a payment of the chosen money: %s',
    async (money, ofLink, amount, currency, statuses, words) => {
      const sandbox = simulated();
      const link = await createLink(sandbox, { amount: 100 });
      const refused = await panelCall(link.url, 'payment', 'REFUNDED');
      expect(await refused.text()).toContain('has no payment that is COMPLETED');
      let shown = '';
      for (const status of statuses) {
        await panelCall(link.url, 'payment', status, { money });
        expect((await details(sandbox, link)).payments).toMatchObject([{ status, quote: { amount, currency } }]);
        shown = await (await fetch(link.url)).text();
        expect(shown).toContain(`value="${status}" aria-pressed="true"`);
      }
      expect(shown).toContain(words);
      expect(await details(sandbox, link)).toMatchObject({ amount: ofLink, currency: 'BRL' });
    },
  );

  it('exists in the environment sandbox only, which disables paying', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox);
    const shown = await (await fetch(link.url)).text();
    expect(shown).toContain('Payments are disabled');
    expect(shown).toMatch(/<fieldset class="choice" disabled>.*Get the PIX code.*<\/fieldset>/s);
    for (const action of ['payments', 'complete']) {
      const body = new URLSearchParams({ method: 'PIX' });
      const answer = await fetch(`${link.url}/${action}`, { method: 'POST', body });
      expect([action, answer.status]).toEqual([action, 403]);
      expect(await answer.text()).toContain('Payments are disabled');
    }
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');

    const payable = await createLink(production());
    expect(await (await fetch(payable.url)).text()).not.toContain('Sandbox panel');
    const answer = await panelCall(payable.url, 'status', 'EXPIRED');
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'no_panel' }]);
    expect((await details(production(), payable)).status).toBe('ACTIVE');
  });

  it('refuses unknown names, and lists the known ones', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { webhookUrl: 'http://127.0.0.1:9/' });
    const known = {
      status: 'ACTIVE, INACTIVE, EXPIRED',
      payment: 'PENDING, COMPLETED, DISPUTED, REFUNDED',
      send: EVENT_KINDS.join(', '),
      sign: EVENT_KINDS.join(', '),
    };
    for (const [action, names] of Object.entries(known)) {
      const answer = await panelCall(link.url, action, 'BOGUS');
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining(names) });
    }
    const money = await panelCall(link.url, 'payment', 'COMPLETED', { money: 'none' });
    expect([money.status, await money.json()]).toMatchObject([
      400,
      { message: expect.stringContaining('known: asked') },
    ]);
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
    const unread = await fetch(`${link.url}/panel/status`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"value":',
    });
    expect([unread.status, await unread.json()]).toMatchObject([400, { code: 'unreadable' }]);
  });
});

describe('a request that the page cannot take', () => {
  it.each(['status', 'payment', 'send', 'sign'])('is refused by the panel: %s', async (action) => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { webhookUrl: 'http://127.0.0.1:9/hook' });
    const bodies: [string, number, string][] = [
      ['{"value":{"toString":1}}', 400, '"object" is no'],
      [`{"value":${'['.repeat(2_000)}${']'.repeat(2_000)}}`, 400, '"object" is no'],
      [`{"value":${'['.repeat(32_000)}${']'.repeat(32_000)}}`, 413, 'too large'],
      ['{"value":null}', 400, '"object" is no'],
      ['{}', 400, '"undefined" is no'],
      ['[]', 400, '"undefined" is no'],
      ['null', 400, 'cannot be read'],
    ];
    for (const [body, status, message] of bodies) {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${link.url}/panel/${action}`, { method: 'POST', headers, body });
      expect([body.slice(0, 30), answer.status]).toEqual([body.slice(0, 30), status]);
      expect(answer.headers.get('content-type')).toContain('application/json');
      expect(answer.headers.get('content-security-policy')).toBe(POLICY);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining(message) });
    }
    expect((await details(sandbox, link)).payments).toEqual([]);
  });

  it.each([
    ['an address that is no text', '/pay/%zz/payments', FORM, 404],
    ['a packed form to no link', '/pay/nosuch/payments', { ...FORM, 'content-encoding': 'gzip' }, 404],
    ['a packed form', '/pay/{id}/payments', { ...FORM, 'content-encoding': 'gzip' }, 400],
    ['a form of another packing', '/pay/{id}/payments', { ...FORM, 'content-encoding': 'x' }, 415],
    ['another address that is no text', '/pay/%zz/complete', FORM, 400],
    ['a form that is too long', '/pay/{id}/payments', FORM, 413],
  ])('is answered by a page: %s', async (name, path, headers: Record<string, string>, status) => {
    const sandbox = production();
    const { id } = await createLink(sandbox);
    const body = name.endsWith('too long') ? `method=PIX&name=${'x'.repeat(5_000)}` : 'method=PIX';
    const answer = await fetch(`${sandbox.url}${path.replace('{id}', id)}`, { method: 'POST', headers, body });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    const text = await answer.text();
    expect(text).toContain('No money is real');
    expect(text).not.toMatch(/node_modules|\n +at /);
    expect((await details(sandbox, { id })).payments).toEqual([]);
  });

  it('is a form with a field given twice, or longer than it may be: nothing is cut', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const refused = {
      [`method=PIX&name=${'x'.repeat(199)}${encodeURIComponent('😀')}`]: 'name must be a text of at most 200',
      [`method=PIX&email=${'x'.repeat(201)}`]: 'email must be a text of at most 200',
      [`method=CREDIT_CARD${'&installments=1'.repeat(200)}`]: 'installments must be a whole number',
    };
    for (const [body, problem] of Object.entries(refused)) {
      const answer = await fetch(`${link.url}/payments`, { method: 'POST', headers: FORM, body });
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(problem)]);
    }
    expect((await details(sandbox, link)).payments).toEqual([]);
    const name = `${'x'.repeat(198)}😀`;
    await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams({ method: 'PIX', name }) });
    expect((await details(sandbox, link)).payments).toMatchObject([{ customer: { name } }]);
  });
});

it('an unexpected failure goes to stderr, and the page shows nothing of it', async () => {
  const data = join(testFolder(), 'sandbox.db');
  const before = await startTestSandbox({ data });
  const { id } = await createLink(before, { metadata: { a: 1 } });
  await before.stop();
  const db = new Database(data);
  db.prepare("UPDATE link SET metadata = '{broken'").run();
  db.close();
  const sandbox = await startTestSandbox({ data });
  const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => told.mockRestore());
  for (const [path, shape] of [
    ['', 'text/html'],
    ['/state', 'application/json'],
  ] as const) {
    told.mockClear();
    const answer = await fetch(`${sandbox.url}/pay/${id}${path}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([500, `${shape}; charset=utf-8`]);
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    const text = await answer.text();
    expect(text).toContain('its stderr says why');
    expect(text).not.toMatch(/JSON|node_modules|\n +at /);
    expect(told.mock.calls.join()).toMatch(/SyntaxError.*\n +at /s);
    expect(told).toHaveBeenCalledTimes(1);
  }
});
