import { describe, expect, it } from 'vitest';
import { holdTime, type Tab, useBrowser } from '../support/browser.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { createLink, details, saying, sharedSandbox, startSite } from './page-order.ts';

const open = useBrowser();
const production = sharedSandbox('production');

describe('paying on the hosted page', () => {
  it('pays by PIX: pending until the bank confirms, then complete, with a receipt', async () => {
    const sandbox = production();
    const link = await createLink(sandbox, { externalReference: 'order-7', description: 'Row F' });
    const tab = await open();
    await tab.goto(link.url);
    const order = tab.getByRole('region', { name: 'Your order' });
    for (const text of ['Two tickets', 'R$ 149.90', 'Row F', 'order-7', 'Sandbox Merchant', 'no time limit']) {
      await order.getByText(text).first().waitFor();
    }
    await tab.getByLabel('Name optional').fill('Ana');
    await tab.getByRole('button', { name: 'Get the PIX code' }).click();
    await tab.getByText('Waiting for your bank').waitFor();
    expect(await tab.getByLabel('PIX code').inputValue()).toContain('NOT-A-PIX-CODE');
    expect(await details(sandbox, link)).toMatchObject({ status: 'ACTIVE', paymentStatus: 'PENDING' });

    await tab.getByRole('button', { name: 'I have paid' }).click();
    await heading(tab, 'Payment complete');
    expect(await details(sandbox, link)).toMatchObject({
      status: 'INACTIVE',
      paymentStatus: 'COMPLETED',
      payments: [
        {
          status: 'COMPLETED',
          customer: { name: 'Ana', email: null },
          quote: { amount: 149.9, paymentMethod: 'PIX', installments: 1, totalBRL: 149.9 },
        },
      ],
    });
    expect(tab.wrongs).toEqual([]);
  });

  it('pays by card in 3 instalments, with interest, and sends nothing of the card', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open();
    const sent: string[] = [];
    tab.on('request', (request) => sent.push(request.postData() ?? ''));
    await holdTime(tab);
    await tab.goto(link.url);
    await fillCard(tab, { installments: '3' });
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
    expect(tab.wrongs).toEqual([]);
  });

  it('offers 1 to 12 instalments, each with its amount and the total', async () => {
    const sandbox = production();
    const tab = await open();
    await tab.goto((await createLink(sandbox, { amount: 100 })).url);
    const options = await tab.locator('#installments option').allTextContents();
    const words = options.map((option) => option.replaceAll('\u00a0', ' '));
    expect(words).toHaveLength(12);
    expect([words[0], words[1], words[11]]).toEqual([
      '1 × R$ 100.00 · no interest',
      '2 × R$ 51.00 · R$ 101.99 in total',
      '12 × R$ 10.16 · R$ 121.89 in total',
    ]);
  });

  it('sends the customer on to the callbackUrl after a visible moment', async () => {
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

  it('opens by its short address', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.shortUrl);
    expect(tab.url()).toBe(link.url);
    await heading(tab, 'Two tickets');
  });

  it('pays with the keyboard alone', async () => {
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

  it('pays without JavaScript', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open({ javaScriptEnabled: false });
    await tab.goto(link.url);
    await fillCard(tab, { installments: '12' });
    await tab.getByRole('button', { name: 'Pay' }).click();
    await tab.getByRole('button', { name: 'Continue' }).click();
    await heading(tab, 'Payment complete');
    expect((await details(sandbox, link)).payments[0].quote.installments).toBe(12);
  });

  it('does not take a card that is not filled in', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const tab = await open();
    await tab.goto(link.url);
    await tab.getByText('Credit card').click();
    await tab.getByRole('button', { name: 'Pay' }).click();
    expect(await focused(tab)).toBe('card-number');
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
  });
});

describe('a link that cannot be paid', () => {
  it('says that it was paid in another tab, and does not pay again', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const [one, other] = [await open(), await open()];
    await one.goto(link.url);
    await one.getByRole('button', { name: 'Get the PIX code' }).click();
    await one.getByText('Waiting for your bank').waitFor();
    await other.goto(link.url);
    await other.getByRole('button', { name: 'Get the PIX code' }).click();
    const address = one.url();
    await other.getByRole('button', { name: 'I have paid' }).click();
    await heading(other, 'Payment complete');
    await heading(one, 'This link is already paid');

    const payment = new URL(address).searchParams.get('payment') as string;
    const late = await fetch(`${link.url}/complete`, { method: 'POST', body: new URLSearchParams({ payment }) });
    expect(await late.text()).toContain('already paid');
    const again = await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams({ method: 'PIX' }) });
    expect(await again.text()).toContain('already paid');
    const { payments } = await details(sandbox, link);
    expect(payments.map(({ status }: { status: string }) => status)).toEqual(['PENDING', 'COMPLETED']);
  });

  it('completes the payment of this visit, although another was started later', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const [one, other] = [await open(), await open()];
    for (const tab of [one, other]) {
      await tab.goto(link.url);
      await tab.getByRole('button', { name: 'Get the PIX code' }).click();
      await tab.getByText('Waiting for your bank').waitFor();
    }
    await one.getByRole('button', { name: 'I have paid' }).click();
    await heading(one, 'Payment complete');
    const { payments } = await details(sandbox, link);
    expect(payments.map(({ status }: { status: string }) => status)).toEqual(['COMPLETED', 'PENDING']);
  });

  it('says that it has expired, also to a page that was open at the time', async () => {
    const sandbox = await startTestSandbox();
    const expiresAt = new Date(sandbox.clock.nowMs() + 3_600_000).toISOString();
    const link = await createLink(sandbox, { expiresAt });
    const tab = await open();
    await tab.goto(link.url);
    await heading(tab, 'How would you like to pay?');
    await sandbox.clock.advance(3_600_000);
    await heading(tab, 'This link has expired');
    const late = await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams({ method: 'PIX' }) });
    expect(await late.text()).toContain('This link has expired');
    expect((await details(sandbox, link)).payments).toEqual([]);
  });

  it.each([
    ['REFUNDED', 'refund', 'refunded'],
    ['DISPUTED', 'dispute', 'disputed'],
  ])('says that its payment was %s', async (_status, action, word) => {
    const sandbox = production();
    const link = await createLink(sandbox);
    await sandbox.control(`/links/${link.id}/pay`, { body: {} });
    await sandbox.control(`/links/${link.id}/${action}`, { body: {} });
    const tab = await open();
    await tab.goto(link.url);
    await heading(tab, 'This link is already paid');
    await tab
      .getByText(`is now ${word}`)
      .or(tab.getByText(`has been ${word}`))
      .waitFor();
  });

  it('answers 404 with its own page for an unknown link', async () => {
    const sandbox = production();
    const tab = await open();
    for (const path of ['/pay/pl_nobody', '/s/nobody', '/pay/%3Cb%3E', '/', '/pay/pl_nobody/state']) {
      const answer = await tab.goto(`${sandbox.url}${path}`);
      expect([path, answer?.status()]).toEqual([path, 404]);
    }
    await tab.goto(`${sandbox.url}/pay/pl_nobody`);
    await heading(tab, 'Not found');
    await tab.getByText('No money is real').waitFor();
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
