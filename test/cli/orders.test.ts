import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SETTLED } from '../../src/cli/commands.ts';
import { helpOn } from '../../src/terminal/help.ts';
import { shownLines } from '../../src/terminal/output.ts';
import { testFolder } from '../support/app.ts';
import { runSettled } from '../support/process.ts';
import { act, createLink, plan } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import { openOrder, passUntil, startShop } from '../support/shop.ts';
import { environmentOf, failing, misunderstood, say } from './settled.ts';

const shared = sharedShop();

describe('settled orders open', () => {
  it('opens a link with all that was given, and shows its address', async () => {
    const { sandbox, settled } = shared();
    const reference = freshReference();
    const metadata = join(testFolder(), 'metadata.json');
    writeFileSync(metadata, '{"cart": [1, 2]}');
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const args = ['orders', 'open', reference, '--title', 'A chair', '--amount', '100.50', '--currency', 'BRL'];
    args.push('--description', 'of oak', '--expires-at', expiresAt, '--metadata-file', metadata);
    args.push('--callback-url', 'https://shop.example.com/thanks');
    args.push('--customer-name', 'Ana Souza', '--customer-email', 'ana@example.com');
    // Once for a person and once for a machine: the second finds what the first opened.
    const { text, data } = await say(args, environmentOf(settled));
    const { link } = data.order;
    expect(text).toContain(link.url);
    expect(text).toMatch(/amount +100\.50 BRL/);
    expect(text).toMatch(/customer \(the shop\) +Ana Souza, ana@example\.com/);
    const listed = await say(['orders', 'list', '--q', `souza ${reference}`], environmentOf(settled));
    expect(listed.text).toMatch(/customer.*\n.*ana@example\.com/i);
    const { paymentLink } = (await sandbox.call(`/payment-links/${link.id}`)).body;
    expect(paymentLink).toMatchObject({
      externalReference: reference,
      title: 'A chair',
      amount: 100.5,
      description: 'of oak',
      metadata: { cart: [1, 2] },
      callbackUrl: 'https://shop.example.com/thanks',
      expiresAt,
    });
  });

  it('ends with 75 if the link is not there in time', async () => {
    const shop = await startShop();
    const match = { method: 'POST', path: '/api/v1/payment-links' };
    await plan(shop.sandbox, { fault: 'server-error', match, count: null });
    const args = ['orders', 'open', 'order-1', '--title', 'A chair', '--amount', '100'];
    const said = say(args, environmentOf(shop.settled), 75);
    let ended = false;
    void said.finally(() => {
      ended = true;
    });
    await passUntil(shop, () => ended);
    const { text, data } = await said;
    expect(data.order.link).toBeNull();
    expect(text).toMatch(/not there yet\. .*(next tries|is trying).*\n.*settled why order-1/);
  });

  it.each([
    [['orders', 'open', 'a', '--title', 'A', '--amount', '1'], '--amount must be more than 25: the service makes '],
    [['orders', 'list', '--amount-from', 'x'], '--amount-from must be an amount in digits, like 100.50'],
    [['orders', 'list', '--currency', 'usd'], '--currency must be an ISO 4217 code in capitals, like BRL, '],
    [['orders', 'list', '--since', '2026-02-30T00:00:00Z'], '--since must be a time in ISO 8601 with its offset'],
    [['bulk', 'check', '--paid-until', '2026-11-31T00:00:00Z', '--dry-run'], '--paid-until must be a time in '],
    [['orders', 'open', 'a', '--title', 'A', '--amount', '30', '--customer-email', 'a'], '--customer-email must be '],
    [['tokens', 'add', 'a,b', '--role', 'viewer'], 'NAME must be letters and digits, '],
  ])('%j is refused by the server in the words of the command', async (args, says) => {
    const { message, exit } = await failing(args, environmentOf(shared().settled));
    expect([message.slice(0, says.length), exit]).toEqual([says, 1]);
  });

  it('ends with the exit code of the problem', async () => {
    const environment = environmentOf(shared().settled);
    const open = (...more: string[]) =>
      failing(['orders', 'open', freshReference(), '--title', 'A', ...more], environment);
    expect(await open('--amount', '25')).toMatchObject({ code: 'invalid_request', exit: 1 });
    expect(await open('--amount', '100', '--currency', 'USD')).toMatchObject({ code: 'link_withheld', exit: 1 });
    const withoutApi = await startShop({ api: false });
    expect(
      await failing(['orders', 'open', 'o', '--title', 'A', '--amount', '30'], environmentOf(withoutApi.settled)),
    ).toMatchObject({
      code: 'api_not_configured',
      exit: 78,
      message: expect.stringContaining('settled links reserve'),
    });
  });
});

describe('settled orders adopt, check and cancel', () => {
  it.each(['open', 'check', 'cancel', 'adopt'])('help of %s says how it ends', (command) => {
    const { lines } = helpOn(SETTLED, ['orders', command]);
    expect(shownLines(lines).join('\n')).toMatch(/It ends with .*\b75\b.*\b78\b/s);
  });

  it('adopts a link that settled did not make', async () => {
    const { sandbox, settled } = shared();
    const reference = freshReference();
    const link = await createLink(sandbox, { amount: 100, externalReference: reference });
    const environment = environmentOf(settled);
    const open = ['orders', 'open', reference, '--title', 'A', '--amount', '100'];
    const taken = await failing(open, environment);
    expect(taken).toMatchObject({ code: 'reference_taken', exit: 1 });
    expect(taken.message).toContain(`settled orders adopt ${reference} --id ${link.id}`);
    expect(await failing(['orders', 'adopt', reference, '--id', 'pl_other'], environment)).toMatchObject({
      code: 'not_adoptable',
      exit: 1,
    });
    const end = await runSettled(['orders', 'adopt', reference, '--id', link.id], environment);
    expect(end).toMatchObject({ code: 0, stderr: '' });
    expect(end.stdout).toMatch(/^The signing secret of this link is not ours/);
    expect(end.stdout).toMatch(new RegExp(`link +${link.id}`));
  });

  it('asks the service about an order, and shows its answer', async () => {
    const shop = shared();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference);
    const { link } = body.order;
    const match = { link: link.id };
    await plan(shop.sandbox, { fault: 'drop', count: null, match, with: { forGood: true } });
    await act(shop.sandbox, link, 'pay');
    const { text, data } = await say(['orders', 'check', reference], environmentOf(shop.settled));
    expect(data.order).toMatchObject({ state: 'paid', learnedBy: 'reconciliation' });
    expect(text).toMatch(/^The service says: the link is INACTIVE, its paymentStatus COMPLETED\./);
    expect(text).toMatch(/state +paid/);
    expect(await failing(['orders', 'cancel', reference], environmentOf(shop.settled))).toMatchObject({
      code: 'not_cancellable',
      exit: 1,
    });
  });

  it('shows who paid and how, in the order, the list and the explanation', async () => {
    const shop = shared();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference, { metadata: { cart: 'c-17' } });
    const customer = { name: 'Ana \u202eSouza', email: 'ana@example.com' };
    await act(shop.sandbox, body.order.link, 'pay', { method: 'CREDIT_CARD', installments: 6, customer });
    await passUntil(shop, async () => (await shop.settled.order(reference)).state === 'paid');
    const environment = environmentOf(shop.settled);
    const { text, data } = await say(['orders', 'show', reference], environment);
    expect(data.order.payment.customer).toEqual({ name: 'Ana Souza', email: 'ana@example.com' });
    expect(text).toMatch(/^title +A chair\nmetadata +\{"cart":"c-17"\}$/m);
    expect(text).toMatch(
      /^payment +pay_\w+: completed, 100\.00 BRL; by Ana Souza, ana@example\.com; CREDIT_CARD; 6 instalments; 109\.95 BRL with any interest; begun 20\S+; completed 20\S+; available 20/m,
    );
    expect(text).toMatch(/^link expires +20\S+Z$/m);
    const list = await say(['orders', 'list', '--q', reference], environment);
    expect(list.text).toMatch(/ CUSTOMER\n.* ana@example\.com\n/);
    const why = await say(['why', reference], environment);
    expect(why.text).toMatch(
      /The service says that Ana Souza <ana@example\.com> paid with CREDIT_CARD in 6 instalments/,
    );
  });

  it('shows what was paid by PIX in one line, and calls no total without interest one with interest', async () => {
    const shop = shared();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference);
    await act(shop.sandbox, body.order.link, 'pay');
    await passUntil(shop, async () => (await shop.settled.order(reference)).state === 'paid');
    const { text, data } = await say(['orders', 'show', reference], environmentOf(shop.settled));
    expect(data.order.payment.totalBRL).toBe('100.00');
    expect(text.match(/^payment /gm)).toHaveLength(1);
    expect(text).toMatch(/^payment +pay_\w+: completed, 100\.00 BRL; PIX; begun /m);
  });

  it('cancels an unpaid order', async () => {
    const shop = shared();
    const reference = freshReference();
    await openOrder(shop, reference);
    const { text, data } = await say(['orders', 'cancel', reference], environmentOf(shop.settled));
    expect(data.order.state).toBe('cancelled');
    expect(text).toMatch(/^The link stays payable .* until it expires: money that is paid on it is held/);
    expect(text).toMatch(/state +cancelled/);
    const why = await runSettled(['why', reference], environmentOf(shop.settled));
    expect(why).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('by operator') });
    expect(why.stdout).not.toContain('reason given');
    const again = ['orders', 'open', reference, '--title', 'A chair', '--amount', '100'];
    expect(await failing(again, environmentOf(shop.settled))).toMatchObject({ code: 'order_cancelled', exit: 1 });
  });
});

describe('settled orders list --csv', () => {
  it('prints all orders that the filters let through, for a spreadsheet', async () => {
    const { settled } = shared();
    const reference = `csv/${freshReference()}`;
    await settled.reserve(reference);
    const end = await runSettled(['orders', 'list', '--csv', '--q', reference], environmentOf(settled));
    expect(end).toMatchObject({ code: 0, stderr: '' });
    expect(end.stdout.split('\r\n')).toEqual([
      expect.stringMatching(/^reference,state,flags,amount,currency,/),
      expect.stringContaining(`${reference},awaiting_payment,,100.00,BRL,`),
      '',
    ]);
    expect(await misunderstood(['orders', 'list', '--csv', '--limit', '3'])).toMatch(/^--csv prints all orders/);
  });
});
