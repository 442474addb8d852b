import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { holdTime, overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { sharedSandbox } from './page-order.ts';

const WIDTHS = [360, 1280] as const;
/** A folder for pictures of what is tested; without it none are taken. */
const SHOTS = process.env.SETTLED_SHOTS;

const open = useBrowser();
const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe.each(WIDTHS)('the hosted page at %i px', (width) => {
  it('shows the quote, PIX and the receipt without scrolling sideways', async () => {
    const sandbox = production();
    const tab = await open({ width });
    await tab.goto(await order(sandbox));
    await shows(tab, 'quote');
    await tab.getByRole('button', { name: 'Get the PIX code' }).click();
    await tab.getByText('Waiting for your bank').waitFor();
    await shows(tab, 'pix');
    await tab.getByRole('button', { name: 'I have paid' }).click();
    await tab.getByRole('heading', { name: 'Payment complete' }).waitFor();
    await shows(tab, 'receipt');
    await tab.goto(tab.url().replace(/\?.*/, ''));
    await shows(tab, 'paid');
  });

  it('shows the card without scrolling sideways', async () => {
    const sandbox = production();
    const tab = await open({ width });
    await holdTime(tab);
    await tab.goto(await order(sandbox));
    await tab.getByText('Credit card').click();
    await tab.getByRole('button', { name: 'Fill in a test card' }).click();
    await tab.getByLabel('Instalments', { exact: true }).selectOption('3');
    await shows(tab, 'card', { isHeld: true });
    await tab.getByRole('button', { name: 'Pay' }).click();
    await tab.getByRole('heading', { name: 'Checking with the bank' }).waitFor();
    await shows(tab, 'card-pending', { isHeld: true });
  });

  it('shows an expired and an unknown link without scrolling sideways', async () => {
    const sandbox = await startTestSandbox();
    const url = await order(sandbox);
    await sandbox.clock.advance(3 * 86_400_000);
    const tab = await open({ width });
    await tab.goto(url);
    await shows(tab, 'expired');
    await tab.goto(`${sandbox.url}/pay/unknown`);
    await shows(tab, 'unknown');
  });

  it('shows the panel without scrolling sideways', async () => {
    const sandbox = simulated();
    const tab = await open({ width });
    await tab.goto(await order(sandbox, { webhookUrl: `${sandbox.url}/nobody/listens/here` }));
    await tab.getByLabel('more, as interest').check();
    await shows(tab, 'panel-quote');
    await tab.getByRole('button', { name: 'COMPLETED' }).click();
    await tab.getByText('payment status: COMPLETED, money: interest').first().waitFor();
    await tab.getByRole('button', { name: 'payment_link.created' }).click();
    await tab.getByRole('listitem').getByText('404', { exact: true }).waitFor();
    await shows(tab, 'panel');
  });

  it('holds words without a gap, large amounts and long addresses', async () => {
    const sandbox = simulated();
    const long = 'W'.repeat(400);
    const tab = await open({ width });
    await tab.goto(
      await order(sandbox, {
        title: long,
        description: long,
        amount: 999_999_999_999.99,
        externalReference: `${long.slice(4)}${width}`,
        webhookUrl: `${sandbox.url}/${long}`,
        metadata: { [long]: long },
      }),
    );
    await tab.getByText('The link’s data').click();
    await shows(tab, 'long');
  });
});

async function order(sandbox: TestSandbox, more: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await sandbox.call('/payment-links', {
    body: {
      title: 'Two tickets for the open-air concert',
      description: 'Saturday, 20:00, Parque da Cidade.\nSeats 14 and 15 in row F.',
      amount: 149.9,
      externalReference: `order-${Math.random().toString(36).slice(2, 8)}`,
      expiresAt: new Date(sandbox.clock.nowMs() + 2 * 86_400_000).toISOString(),
      ...more,
    },
  });
  expect(status).toBe(201);
  return body.paymentLink.url;
}

/** Looks at the page in the dark if it is narrow, in the light if it is wide. `isHeld`: its time is, without which axe cannot look. */
async function shows(tab: Tab, name: string, { isHeld = false } = {}): Promise<void> {
  const { width } = tab.viewportSize() as { width: number };
  expect(await overflowOf(tab)).toBe(0);
  await tab.emulateMedia({ colorScheme: width < 600 ? 'dark' : 'light' });
  if (!isHeld) expect(await violationsIn(tab)).toEqual([]);
  expect(tab.wrongs).toEqual([]);
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await tab.screenshot({ path: join(SHOTS, `${name}-${width}.png`), fullPage: true });
}
