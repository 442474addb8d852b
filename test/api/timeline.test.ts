import { beforeAll, describe, expect, it } from 'vitest';
import { environmentOf, say } from '../cli/settled.ts';
import { textOf } from '../console/reading.ts';
import { signIn } from '../support/access.ts';
import type { ReservedLink } from '../support/app.ts';
import { type CallbackShop, startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { act, createLink, plan } from '../support/sandbox.ts';
import { freshReference, sharedApp, sharedShop } from '../support/shared.ts';
import { bindLink, pass, passUntil, payLink, quiet, type Shop, sell, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, orderPath, paidOrder, post } from './client.ts';

const settled = sharedApp();

type Explained = {
  order: { reference: string };
  answer: string;
  entries: { at: string; kind: string; summary: string; details: string[] }[];
  next: string[];
};

async function explained(reference: string, app = settled()): Promise<Explained> {
  const { status, body } = await get(app, `${orderPath(reference)}/timeline`, 'shop');
  expect(status).toBe(200);
  return body;
}

/** Every entry of a kind, each as one line. */
function linesOf({ entries }: Explained, kind: string): string {
  const mine = entries.filter((one) => one.kind === kind);
  return mine.map(({ summary, details }) => [summary, ...details].join('; ')).join('\n');
}

/** Waits until an entry of the kind matches. */
function withEntry(reference: string, kind: string, words: RegExp): Promise<Explained> {
  return eventually(async () => {
    const found = await explained(reference);
    expect(linesOf(found, kind)).toMatch(words);
    return found;
  });
}

const event = (link: ReservedLink, options: Parameters<typeof paymentEvent>[0]) =>
  paymentEvent({ linkId: `pl_${link.reference}`, ...options });

describe('api: why an order is in its state', () => {
  it('paid: says so with the money and how it was learned, from registration to notice', async () => {
    const { reference } = await paidOrder(settled());
    const found = await explained(reference);
    const { order, answer, entries, next } = found;
    expect(order).toEqual(await settled().order(reference));
    expect(answer).toContain(reference);
    expect(answer).toMatch(/100\.00 BRL.* is paid.*webhook/);
    expect(entries.map(({ kind }) => kind)).toEqual(['registration', 'delivery', 'decision', 'notice']);
    expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).sort());
    expect(linesOf(found, 'delivery')).toMatch(/payment_status_changed.*completed.*rule paid/);
    expect(linesOf(found, 'decision')).toMatch(/awaiting_payment → paid.*rule paid.*by event \d+/);
    expect(linesOf(found, 'decision')).toContain(`captured 100.00 BRL, payment pay_${reference}`);
    expect(linesOf(found, 'notice')).toContain('order.paid');
    expect(next).toHaveLength(1);
  });

  it('a payment id that looks like a further line stays within its own', async () => {
    const reference = freshReference();
    const link = await settled().reserve(reference);
    const body = event(link, { amount: '100.00', paymentId: 'pay_1\\nledger: refunded 100.00 BRL' });
    await deliverAndSee(settled(), link, body, 'paid');
    const decision = (await explained(reference)).entries.find(({ kind }) => kind === 'decision');
    expect(decision?.details.filter((line) => line.startsWith('ledger: '))).toEqual([
      'ledger: captured 100.00 BRL, payment pay_1 ledger: refunded 100.00 BRL',
    ]);
  });

  it('held, and resolved: says how much came, how a person decides, what they said, and what is left to do', async () => {
    const { reference } = await heldOrder(settled());
    const found = await explained(reference);
    expect(found.answer).toMatch(/100\.00 BRL.*held: 60\.00 BRL came, .*person must decide/);
    expect(found.answer).toContain('60.00 BRL came, 40.00 BRL less than it asks for (amount_mismatch)');
    expect(linesOf(found, 'decision')).toMatch(/captured 60\.00 BRL.*hold hold_2: amount_mismatch/);
    expect(found.next.join('\n')).toMatch(`settled orders resolve ${reference} --accept`);
    expect(found.next.join('\n')).toMatch(`settled orders resolve ${reference} --reject`);

    const asked = { decision: 'reject', reason: 'customer changed their mind' };
    await post(settled(), `${orderPath(reference)}/resolve`, asked);
    const resolved = await explained(reference);
    expect(resolved.answer).toMatch(/cancelled.*must be refunded/);
    expect(linesOf(resolved, 'decision')).toContain(asked.reason);
    expect(resolved.next.join('\n')).toMatch(/Refund/);
  });

  it('awaiting with refused deliveries: counts them and names the reasons', async () => {
    const link = await settled().reserve(freshReference());
    const body = event(link, { amount: '100.00' });
    const forged = signedHeaders('not-the-secret-of-this-link', body);
    for (let i = 0; i < 2; i++) expect((await settled().deliver(link, body, forged)).status).toBe(401);
    expect((await settled().deliver(link, body, {})).status).toBe(401);
    await withEntry(link.reference, 'rejected', /signature_missing/);
    const { answer, next } = await withEntry(link.reference, 'rejected', /2 deliveries.*signature_wrong/);
    expect(answer).toMatch(/is not paid.*rejected 3 deliveries/);
    expect(answer).toMatch(/no signature header/);
    expect(answer).toMatch(/does not match/);
    expect(next.join('\n')).toMatch(/settled verify/);
  });

  it('awaiting with a stale delivery: says when it was signed, and points at the clock', async () => {
    const link = await settled().reserve(freshReference());
    const body = event(link, { id: 'evt_stale', amount: '100.00' });
    const stale = signedHeaders(link.webhookSecret, body, '1700000000000');
    expect((await settled().deliver(link, body, stale)).status).toBe(400);
    const { answer, next } = await withEntry(link.reference, 'stale', /2023-11-14T22:13:20.*evt_stale/);
    expect(answer).toMatch(/is not paid.*clock/);
    expect(next.join('\n')).toMatch(/clock/);
  });

  it('awaiting with an event that cannot be settled: points at it', async () => {
    const link = await settled().reserve(freshReference());
    expect((await settled().deliver(link, 'not JSON')).status).toBe(202);
    const { answer, next } = await withEntry(link.reference, 'delivery', /unreadable_event/);
    expect(answer).toMatch(/is not paid.*could not settle/);
    expect(next.join('\n')).toMatch(/settled events show \d+/);
    // Settling it again would not make it JSON, and there is no API to ask.
    expect(next.join('\n')).not.toMatch(/replay|at once/);
    expect(next.join('\n')).toContain(`let it ask: settled orders check ${link.reference}`);
    expect((await settled().deliver(link, 'not JSON either')).status).toBe(202);
    const both = await eventually(async () => {
      const found = (await explained(link.reference)).next.join('\n');
      expect(found).toMatch(/could not settle 2 events/);
      return found;
    });
    expect(both.match(/events show/g)).toHaveLength(1);
  });

  it('awaiting with events that are understood and about no payment: says what came', async () => {
    const link = await settled().reserve(freshReference());
    for (const [id, fields] of [
      ['1', { type: 'payment_link.created' }],
      ['2', { type: 'payment_link.status_changed', status: 'ACTIVE' }],
      ['3', { type: 'payment_link.status_changed', status: 'INACTIVE' }],
      ['4', { paymentStatus: 'NOT_STARTED' }],
    ] as const) {
      expect((await settled().deliver(link, JSON.stringify({ id, ...fields }))).status).toBe(200);
    }
    const { answer, next, entries } = await eventually(async () => {
      const found = await explained(link.reference);
      expect(linesOf(found, 'delivery').match(/done, says nothing about a payment/g)).toHaveLength(4);
      return found;
    });
    expect(answer).toContain(
      'No delivery so far says that it is. settled received: payment_link.created, payment_link.status_changed (2 times), ' +
        'an event without a type.',
    );
    expect(answer).not.toMatch(/understand/);
    expect(entries.filter(({ kind }) => kind === 'attention')).toEqual([]);
    expect(next.join('\n')).not.toMatch(/events show/);
  });

  it('with events that are not understood: says why, of the last one, and what to do, when the order is paid too', async () => {
    const link = await settled().reserve(freshReference());
    expect((await settled().deliver(link, '[{"id":"a"},{"id":"b"}]')).status).toBe(200);
    const one = await withEntry(link.reference, 'delivery', /not understood.*list of 2/);
    expect(one.answer).toMatch(
      /is not paid\. One delivery came that settled does not understand, so it counted nothing for it\. The reason: It is a list of 2, /,
    );
    expect((await settled().deliver(link, '{"status_of_payment":"done"}')).status).toBe(200);
    const { answer, next, entries } = await withEntry(link.reference, 'delivery', /names no payment status/);
    expect(answer).toMatch(/2 deliveries came .* for them\. The reason for the last one: It names no payment status/);
    expect(answer).not.toMatch(/settled received/);
    const matters = entries.filter(({ kind }) => kind === 'attention');
    expect(matters).toMatchObject([{ summary: expect.stringContaining('event_not_understood') }]);
    const [, key] =
      /does not understand event (\d+)\. Look at it: settled events show \1$/m.exec(next.join('\n')) ?? [];
    expect((await get(settled(), `/v1/events/${key}`)).body.event.fault.code).toBe('event_not_understood');
    // The last webhook may have said that the order is paid, and nothing came of it.
    expect(next.join('\n')).not.toContain('marks the order paid at once');
    expect(next.join('\n')).toContain(`let it ask: settled orders check ${link.reference}`);

    await deliverAndSee(settled(), link, event(link, { amount: '100.00' }), 'paid');
    // They may have been about another payment that no other event names.
    const after = await withEntry(link.reference, 'attention', /event_not_understood.*paid by event/);
    expect(after.answer).toMatch(
      /is paid.*2 deliveries came that settled does not understand.*a payment that settled has not counted/,
    );
    expect(after.next.join('\n')).toMatch(/does not understand event \d+\. Look at it/);
    expect((await settled().deliver(link, '{"refunded":true}')).status).toBe(200);
    await eventually(async () => {
      const last = await explained(link.reference);
      expect(last.answer).toMatch(/is paid.*3 deliveries came that settled does not understand/);
    });
  });

  it('paid twice: stays paid, shows both payments and that a person must see to it', async () => {
    const { reference, link } = await paidOrder(settled());
    await deliverAndSee(settled(), link, event(link, { paymentId: 'pay_second', amount: '100.00' }), 'paid');
    await withEntry(reference, 'attention', /./);
    const found = await withEntry(reference, 'notice', /payment\.duplicate/);
    expect(linesOf(found, 'decision')).toMatch(/stays paid.*rule duplicate_payment.*payment pay_second/);
    expect(found.answer).toMatch(/is paid.*more than once/);
    expect(found.next.join('\n')).toMatch(/Refund .* panel: payment pay_second of 100\.00 BRL\./);
  });

  it('paid by an event that names no money: the doubt about money comes before any other', async () => {
    const link = await settled().reserve(freshReference());
    const body = `{"id":"evt_unnamed","paymentLinkId":"pl_${link.reference}","paymentStatus":"COMPLETED","latestPayment":{"id":"pay_unnamed","status":"COMPLETED"}}`;
    await settled().deliver(link, body, signedHeaders('another-secret-of-24-bytes', body));
    await withEntry(link.reference, 'rejected', /signature_wrong/);
    await deliverAndSee(settled(), link, body, 'paid');
    const { answer, next } = await explained(link.reference);
    expect(answer).toMatch(/reported the payment in .*did not say how much/);
    expect(next.join('\n')).toMatch(/service's panel \(doubtful_money\)/);
    const matterOf = async () => {
      const { attention } = (await get(settled(), '/v1/attention')).body;
      return attention.find(({ reference }: { reference: string }) => reference === link.reference);
    };
    expect(await matterOf()).toMatchObject({
      kind: 'money_unnamed',
      detail: expect.stringMatching(/without naming an amount, and settled has no API to ask\. .* 100\.00 BRL\./),
    });
    // It is over once the money is named.
    const named = event(link, { paymentId: 'pay_unnamed', amount: '100.00' });
    expect((await settled().deliver(link, named)).status).toBe(200);
    await eventually(async () => expect(await matterOf()).toBeUndefined());
    expect((await settled().order(link.reference)).flags).toEqual([]);
  });

  it('paid after a refused delivery: nothing is left to do', async () => {
    const link = await settled().reserve(freshReference());
    const body = event(link, { amount: '100.00' });
    await settled().deliver(link, body, signedHeaders('another-secret-of-24-bytes', body));
    const found = await withEntry(link.reference, 'rejected', /signature_wrong/);
    expect(found.next.join('\n')).toMatch(/service's panel \(rejected\)/);
    await deliverAndSee(settled(), link, body, 'paid');
    expect((await explained(link.reference)).next).toEqual(['Nothing more to do: the order is complete.']);
  });

  it('paid, and then a refund that contradicts itself: the doubt belongs to the first sentence', async () => {
    const { reference, link } = await paidOrder(settled());
    const refund = event(link, { id: 'evt_refund', paymentId: `pay_${reference}`, status: 'REFUNDED' });
    const unclear = refund.replace('"paymentStatus":"REFUNDED"', '"paymentStatus":"PENDING"');
    expect(unclear).not.toBe(refund);
    expect((await settled().deliver(link, unclear)).status).toBe(200);
    const found = await withEntry(reference, 'attention', /status_unclear/);
    const { answer, next } = found;
    // There is no API to ask here, and the matter has its number.
    expect(linesOf(found, 'attention')).toMatch(
      new RegExp(`To ask again: settled orders check ${reference}, once SETTLED_API_URL .*attention end \\d+ --reason`),
    );
    const { attention } = (await get(settled(), '/v1/attention')).body;
    const matter = attention.find((one: { reference: string }) => one.reference === reference);
    expect(matter.detail).toContain(`settled attention end ${matter.id} --reason TEXT`);
    expect(answer).toMatch(/is paid, but what the service said .* is unclear[^.]*\(status_unclear\)\. The service/);
    expect(next.join('\n')).toMatch(/Then end this matter: settled attention end \d+ --reason TEXT/);
  });

  it.each([
    ['paid', 'INACTIVE', ['Nothing more to do: the order is complete.']],
    ['expired', 'EXPIRED', ['Nothing more to do: the order is complete.']],
    ['awaiting_payment', 'INACTIVE', [expect.stringMatching(/Look at the payment.*link_changed/), expect.anything()]],
  ])('%s, and the link turned %s: says what to do', async (state, status, next) => {
    const link = state === 'paid' ? (await paidOrder(settled())).link : await settled().reserve(freshReference());
    const { reference } = link;
    const changed = `{"id":"evt_status","type":"payment_link.status_changed","data":{"paymentLink":{"id":"pl_${reference}","status":"${status}"}}}`;
    await deliverAndSee(settled(), link, changed, state);
    const settledEvent = /link\.status_changed: done/;
    expect(await withEntry(reference, 'delivery', settledEvent)).toMatchObject({ order: { state } });
    const found = await explained(reference);
    expect(found.next).toEqual(next);
  });

  it('an event that names another link: waits for a person, and the order is untouched', async () => {
    const { link } = await paidOrder(settled());
    const before = await settled().order(link.reference);
    const other = event(link, { linkId: 'pl_of_somebody_else', amount: '100.00', paymentId: 'pay_x' });
    expect((await settled().deliver(link, other)).status).toBe(200);
    await withEntry(link.reference, 'attention', /names (another )?link/);
    const found = await withEntry(link.reference, 'delivery', /link_mismatch.*pl_of_somebody_else/);
    const { answer, next, order } = found;
    expect(answer).toMatch(/is paid.*could not settle.*pl_of_somebody_else.*counted nothing/);
    expect(next.join('\n')).toMatch(/settled events replay/);
    expect(order).toEqual(before);
  });
});

describe('api: why an order is in its state, if the service can be asked', () => {
  const anyShop = sharedShop();

  /** An order whose link sends its events to an address without a receiver. settled has asked about it, as it is new. */
  async function unheard(shop: Shop, reference: string) {
    const link = await sell(shop, reference, { webhookUrl: () => 'http://127.0.0.1:9/nobody' });
    // Nothing wakes the check of a registered link: it is made at the next poll, perhaps beside what a test does then.
    await passUntil(shop, async () => linesOf(await explained(reference, shop.settled), 'reading') !== '');
    return link;
  }

  it('unpaid: says when it was asked, what it said, and when it is asked next', async () => {
    const shop = anyShop();
    const reference = freshReference();
    await unheard(shop, reference);
    await quiet(shop);
    expect((await post(shop.settled, `${orderPath(reference)}/check`, {})).status).toBe(200);
    const found = await explained(reference, shop.settled);
    expect(found.answer).toMatch(/settled last asked the service at .*; the service knew of no completed payment/);
    expect(linesOf(found, 'reading')).toMatch(
      /a person asked; it answered: nothing new .*\(rule .*; reading \d+, kept/,
    );
    expect(found.next.join('\n')).toMatch(
      /asks the service at 20.*, in .*, on schedule\..*settled orders check order-\d/,
    );
  });

  it('unpaid, and the service cannot be asked: says so, and when it is asked again', async () => {
    const shop = await startShop();
    await unheard(shop, 'order');
    await pass(shop, 10_000, 10_000);
    await plan(shop.sandbox, { fault: 'server-error', match: { method: 'GET' }, count: null });
    await pass(shop, 150_000, 10_000);
    const found = await explained('order', shop.settled);
    expect(found.answer).toMatch(
      /settled last asked the service at .*Asking the service again has failed (once|\d times) so far\.$/,
    );
    expect(found.next.join('\n')).toMatch(/settled asks the service again (at 20|as soon as)/);
  });

  it('paid by asking: shows the answer, the decision by it and the disagreement, and when it is asked next', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const link = await unheard(shop, reference);
    await quiet(shop);
    await payLink(shop, link);
    await post(shop.settled, `${orderPath(reference)}/check`, {});
    const found = await explained(reference, shop.settled);
    expect(found.answer).toMatch(/is paid\. The service reported 100\.00 BRL when settled asked/);
    expect(linesOf(found, 'reading')).toMatch(/it answered: .* \(rule paid\)/);
    expect(linesOf(found, 'decision')).toMatch(/awaiting_payment → paid.*rule paid.*by reading \d+ of the service/);
    expect(linesOf(found, 'drift')).toMatch(
      /settled had: awaiting_payment.*service had: paid.*100\.00 BRL.*service was right/,
    );
    expect(found.next).toEqual([
      expect.stringMatching(
        /asks the service at 20.*, in .*: the service may send no webhook for refunds, disputes and second/,
      ),
    ]);
  });

  const confirming = sharedShop({ environment: { SETTLED_CONFIRM: 'always' } });

  /** A genuine webhook says that the order is paid, and the service's API knows of no payment. */
  async function claimedPaid(amount = '100.00') {
    const shop = confirming();
    const { settled: app, sandbox } = shop;
    const reference = freshReference();
    const reserved = await app.reserve(reference);
    const { webhookSecret } = reserved;
    const link = await createLink(sandbox, { externalReference: reference, webhookSecret });
    await bindLink(shop, reference, link);
    await quiet(shop);
    const body = paymentEvent({ linkId: link.id, amount });
    await app.deliver(reserved, body, signedHeaders(webhookSecret, body, String(sandbox.clock.nowMs())));
    await quiet(shop);
    return { shop, reference, link };
  }

  it('a webhook that is to be confirmed: waits for the service, and is held when it does not say the same', async () => {
    const { shop, reference } = await claimedPaid('80.00');
    const waiting = await explained(reference, shop.settled);
    expect(waiting.answer).toMatch(
      /is not paid\. A webhook says that 80\.00 BRL was paid, but the order asks for 100\.00 BRL\. .*before it counts anything.*knew of no completed payment/,
    );
    expect(JSON.stringify(waiting)).not.toMatch(/No delivery so far|When the service reports/);
    expect(waiting.next.join('\n')).toMatch(
      /because a webhook reported money that the service must confirm \(doubtful_money\)/,
    );
    expect(JSON.stringify(waiting)).not.toMatch(/left a doubt|leaves a doubt/);
    await pass(shop, 11 * 60_000, 60_000);
    const held = await explained(reference, shop.settled);
    expect(held.answer).toMatch(
      /is held.*\(unconfirmed\)\. A person must decide\. A webhook says that 80\.00 BRL was paid, but the order asks for 100\.00 BRL\. settled has not counted it\./,
    );
    expect(held.next.join('\n')).toMatch(/although settled counted no payment for it: settled orders resolve/);
    expect(linesOf(held, 'decision')).toMatch(/→ held.*rule completion_unconfirmed.*by reading \d+/);
    expect(held.next.join('\n')).toMatch(/did not confirm.*settled orders check order-\d/);
  });

  it.each(['100.005', '"one hundred"', '"30,50.1"'])(
    'a webhook that is to be confirmed, whose amount %s is not readable: says so, and never 0.00',
    async (amount) => {
      const { shop, reference } = await claimedPaid(amount);
      const words = `A webhook says that an amount that is not readable ("${amount.replaceAll('"', '')} BRL") was paid`;
      const { cookie } = await signIn(shop.settled);
      const seen = async () => {
        const page = await fetch(`${shop.settled.apiUrl}/orders/${reference}`, { headers: { cookie } });
        return [(await explained(reference, shop.settled)).answer, textOf(await page.text())];
      };
      const waiting = await seen();
      await pass(shop, 11 * 60_000, 60_000);
      for (const said of [...waiting, ...(await seen())]) {
        expect(said).toContain(words);
        expect(said).not.toMatch(/(?<![0-9])0\.00/);
      }
    },
  );

  it.each([
    ['accept', /is paid\. A person accepted its money;/, ''],
    ['reject', /is cancelled/, ' If it arrived, refund it.'],
  ])(
    'held for money that was not confirmed: its sum is named before a person decides, and after: %s',
    async (decision, first, back) => {
      const { shop, reference } = await claimedPaid('60.00');
      await pass(shop, 11 * 60_000, 60_000);
      const { groups, attention } = (await get(shop.settled, '/v1/attention?reason=unconfirmed&limit=200')).body;
      const matter = attention.find((one: { reference: string }) => one.reference === reference);
      expect(matter.detail).toMatch(
        /\(unconfirmed\)\. The webhook said that 60\.00 BRL was paid\. A person must decide/,
      );
      expect(Number(groups[0].sums[0].reported)).toBeGreaterThanOrEqual(60);
      const { text } = await say(['attention'], environmentOf(shop.settled));
      expect(text).toMatch(/ asked +balance +reported +meaning$/im);
      await post(shop.settled, `${orderPath(reference)}/resolve`, { decision, reason: 'seen in the panel' });
      const { answer } = await explained(reference, shop.settled);
      expect(answer).toMatch(first);
      expect(answer).toContain(
        `A webhook had said that 60.00 BRL was paid. The service did not confirm it, and settled did not count it.${back}`,
      );
    },
  );

  it.each([
    [
      'not found: is not forgotten',
      false,
      /is held.*\(unconfirmed\)/,
      /cancelled → held: .*rule completion_unconfirmed/,
    ],
    [
      'found refunded: needs no person',
      true,
      /^Order order-\d+ \(100\.00 BRL\) is cancelled\. The service says [^.]*PIX, .*Z\.$/,
      /stays cancelled: .*rule return_recorded/,
    ],
  ])('a webhook of an order cancelled meanwhile, whose payment is %s', async (_name, isFound, answer, decision) => {
    const { shop, reference, link } = await claimedPaid();
    expect((await post(shop.settled, `${orderPath(reference)}/cancel`, {})).status).toBe(200);
    if (isFound) {
      await payLink(shop, link);
      await act(shop.sandbox, link, 'refund');
    }
    await pass(shop, 11 * 60_000, 60_000);
    const found = await explained(reference, shop.settled);
    expect(found.answer).toMatch(answer);
    expect(linesOf(found, 'decision')).toMatch(decision);
  });

  it('a link that was switched off: is a matter for a person until the service says otherwise', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const link = await unheard(shop, reference);
    await act(shop.sandbox, link, 'disable');
    await quiet(shop);
    const check = () => post(shop.settled, `${orderPath(reference)}/check`, {});
    await check();
    expect(linesOf(await explained(reference, shop.settled), 'attention')).toMatch(/switched off.*link_disabled/);
    await act(shop.sandbox, link, 'enable');
    await check();
    expect(linesOf(await explained(reference, shop.settled), 'attention')).toBe('');
  });
});

describe('api: whether the shop knows that an order is paid', () => {
  let callback: CallbackShop;
  const environment: Record<string, string> = {};
  beforeAll(async () => {
    let close = () => {};
    callback = await startCallback({
      atEnd: (end) => {
        close = end;
      },
    });
    Object.assign(environment, callback.environment);
    return () => close();
  });
  const told = sharedApp({ environment });

  it('no longer sent: says so, and the command that it shows sends it', async () => {
    callback.answerWith(410);
    const app = told();
    const { reference } = await paidOrder(app);
    const tried = (words: RegExp) =>
      eventually(async () => {
        const found = await explained(reference, app);
        expect(linesOf(found, 'notice')).toMatch(words);
        return found;
      });
    const { answer, next } = await tried(/settled gave up: .* 410/);
    expect(answer).toMatch(
      / is paid\. .* was not told that the order is paid, and settled no longer tries to tell it: .* 410/,
    );
    const [, id] = /settled notices resend (msg_\S+)$/.exec(next.join('\n')) ?? [];
    callback.answerWith(204);
    expect((await post(app, `/v1/notices/${id}/resend`, {})).status).toBe(202);
    expect((await tried(/the shop accepted it/)).answer).toMatch(/settled told the shop/);
  });
});
