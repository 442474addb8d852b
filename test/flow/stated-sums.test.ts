import { describe, expect, it } from 'vitest';
import { deliverAndSee, get, paidOrder } from '../api/client.ts';
import { environmentOf, say } from '../cli/settled.ts';
import { textOf } from '../console/reading.ts';
import { signIn } from '../support/access.ts';
import { startTestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { act } from '../support/sandbox.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { openOrder, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

/** Sums that the service names and the ledger cannot say: every surface shows them. */

const settled = sharedApp();
const brl = (amount: string) => ({ amount, currency: 'BRL' });

type Matter = { kind: string; reference: string; detail: string };
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

/** What a page says to a person. */
async function pageOf(app: ReturnType<typeof settled>, path: string): Promise<string> {
  const { cookie } = await signIn(app);
  const page = await fetch(`${app.apiUrl}${path}`, { headers: { cookie, 'accept-language': 'en' } });
  return textOf(await page.text());
}

/** What the surfaces say of one order: its document, notices, matters, and in words the page and the commands. */
async function everywhere(app: ReturnType<typeof settled>, reference: string) {
  const { body } = await get(app, `/v1/orders/${reference}`);
  const { notices } = (await get(app, `/v1/notices?reference=${reference}&limit=50`)).body;
  const told = await Promise.all(
    notices.map(async ({ id }: Json) => (await get(app, `/v1/notices/${id}`)).body.notice.body as Json),
  );
  const { attention } = (await get(app, '/v1/attention?limit=200')).body;
  return {
    order: body.order as Json,
    told,
    matters: (attention as Matter[]).filter((one) => one.reference === reference),
    csv: (await get(app, `/v1/orders.csv?q=${reference}`)).text,
    page: await pageOf(app, `/orders/${reference}`),
    answer: (await get(app, `/v1/orders/${reference}/timeline`)).body.answer as string,
    why: (await say(['why', reference], environmentOf(app))).text.replace(/\s+/g, ' '),
    shown: (await say(['orders', 'show', reference], environmentOf(app))).text,
    listed: (await say(['orders', 'list', '--q', reference], environmentOf(app))).text,
  };
}

const statedOf = ({ payments }: Json) => payments.map(({ id, amount, stated }: Json) => [id, amount, stated]);

describe.each(['REFUNDED', 'DISPUTED'] as const)('a payment that is %s', (status) => {
  const kind = status.toLowerCase();
  const word = status === 'REFUNDED' ? 'order.refunded' : 'order.disputed';

  /** A paid order whose payment went back; `quote` is the sum that the service names of it. */
  async function goneOrder(quote?: string) {
    const { reference, link } = await paidOrder(settled());
    const gone = { linkId: `pl_${reference}`, amount: '100.00', paymentId: `pay_${reference}`, status };
    await deliverAndSee(settled(), link, paymentEvent(quote === undefined ? gone : { ...gone, quote }), kind);
    return { reference, link, gone };
  }

  it.each([
    ['30.50', '30.50 BRL', 'settled cannot know what is left: probably 69.50 BRL.'],
    ['150.00', '150.00 BRL', null],
    ['"30,50.1"', 'something not readable ("30,50.1 BRL")', 'settled cannot know what is left.'],
  ])('with a sum of %s, not of what was captured, shows that sum on every surface', async (quote, named, left) => {
    const { reference } = await goneOrder(quote);
    const { order, told, matters, csv, page, answer, why, shown } = await everywhere(settled(), reference);
    const amount = quote.replaceAll('"', '');
    const expected = [[`pay_${reference}`, '100.00', brl(amount)]];
    expect(statedOf(order)).toEqual(expected);
    expect(order.payment).toEqual(order.payments[0]);
    expect(order.paymentsTotal.sums).toEqual([{ currency: 'BRL', captured: '100.00', balance: '0.00' }]);
    const before = told.find(({ type }) => type === 'order.paid');
    expect(statedOf(before.data.order)).toEqual([[`pay_${reference}`, '100.00', null]]);
    expect(statedOf(told.find(({ type }) => type === word).data.order)).toEqual(expected);
    const part = ` of 100.00 BRL as ${kind}, because the service has no word for a part. ${left}`;
    const sentence =
      `The service names ${named} of payment pay_${reference} as ${kind}; settled counted the whole payment` +
      (left === null ? '' : part);
    expect(matters).toMatchObject([{ kind: 'amount_mismatch', detail: expect.stringContaining(sentence) }]);
    for (const words of [answer, why]) expect(words).toContain(sentence);
    expect(page).not.toContain('Nothing more to do');
    expect(shown).toContain(`${kind}, 100.00 BRL (the service names ${named})`);
    if (amount === quote) {
      expect(page).toMatch(new RegExp(`Service names.*${kind} R\\$100\\.00\\s+R\\$${amount}`, 's'));
      expect(page).toContain(`is R$${amount}, but settled counted R$100.00.`);
      expect(csv).toMatch(new RegExp(`,stated\\r\\n${reference},${kind},.*,${amount} BRL\\r\\n$`));
    } else expect(page).toMatch(/(?:refunded|disputed) R\$100\.00 not readable \("30,50\.1 BRL"\)/);
    if (left === null) return;
    const advice = 'A part cannot be entered in settled, so the order keeps its state and balance.';
    const { next } = (await get(settled(), `/v1/orders/${reference}/timeline`)).body as Json;
    for (const words of [next.join(' '), why, page, matters[0]?.detail]) expect(words).toContain(advice);
    expect(matters[0]?.detail).not.toMatch(/refund the rest|collect/);
  });

  it('shows a sum that is named only after it was counted, and tells a person once', async () => {
    const { reference, link, gone } = await goneOrder();
    const before = await everywhere(settled(), reference);
    expect([statedOf(before.order)[0][2], before.matters]).toEqual([null, []]);
    for (const id of ['first', 'again']) {
      const event = paymentEvent({ ...gone, id: `evt_${id}_${reference}`, quote: '30.00' });
      expect((await settled().deliver(link, event)).status).toBe(200);
    }
    await eventually(async () => {
      const { entries } = (await get(settled(), `/v1/orders/${reference}/timeline`)).body;
      expect(JSON.stringify(entries)).toContain('return_already_counted');
    });
    const after = await everywhere(settled(), reference);
    expect(statedOf(after.order)).toEqual([[`pay_${reference}`, '100.00', brl('30.00')]]);
    expect(after.matters).toMatchObject([{ kind: 'amount_mismatch', count: 1 }]);
    expect([after.order.version, after.told.length]).toEqual([before.order.version + 1, before.told.length]);
    expect(after.why).toContain('names another sum of a payment that went back');
  });

  it.each([
    ['less', '30.00', '30.00', null],
    ['more', '150.00', '100.00', brl('150.00')],
  ])('as a payment of its own, of %s than the order asks, is a matter', async (name, quote, counted, paid) => {
    const { reference, link } = await paidOrder(settled());
    const beside = { linkId: `pl_${reference}`, amount: '100.00', paymentId: `pay_b_${reference}`, status, quote };
    expect((await settled().deliver(link, paymentEvent(beside))).status).toBe(200);
    await eventually(async () => expect((await settled().order(reference)).payments).toHaveLength(2));
    const { order, matters, answer, why } = await everywhere(settled(), reference);
    const [, other] = order.payments;
    expect([order.state, other.status, other.amount, other.customerPaid]).toEqual(['paid', kind, counted, paid]);
    const sentence = `The service names ${quote} BRL of payment pay_b_${reference} as ${kind}`;
    const detail = expect.stringContaining(sentence);
    expect(matters).toContainEqual(expect.objectContaining({ kind: 'amount_mismatch', detail }));
    expect(why).toContain(sentence);
    const isPart = name === 'less';
    const doubt = 'lists that beside another payment of the order. It is a second payment that went back, or a part of';
    for (const words of [answer, matters.at(-1)?.detail]) expect(words?.includes(doubt)).toBe(isPart);
    expect(answer.includes(`about payment pay_b_${reference} that the customer paid`)).toBe(false);
  });
});

describe.each([
  ['refund_due', '60.00', '29.50'],
  ['duplicate_payment', '100.00', '69.50'],
] as const)('%s', (debt, amount, left) => {
  /** An order of which `amount` is owed back, of one payment. */
  async function owing() {
    const link = await settled().reserve(freshReference(), '100.00');
    const { reference } = link;
    const deliver = async (event: Parameters<typeof paymentEvent>[0]) => {
      const paid = { linkId: `pl_${reference}`, amount, ...event };
      expect((await settled().deliver(link, paymentEvent(paid))).status).toBe(200);
    };
    const owed = `pay_o_${reference}`;
    if (debt === 'duplicate_payment') await deliver({ paymentId: `pay_${reference}` });
    await deliver({ paymentId: owed });
    const isHeld = debt === 'refund_due';
    await eventually(async () => {
      const { state, flags } = await settled().order(reference);
      expect(isHeld ? state : flags).toEqual(isHeld ? 'held' : [debt]);
    });
    const decision = { decision: 'reject', reason: 'no' };
    if (isHeld) expect((await settled().api(`/v1/orders/${reference}/resolve`, { body: decision })).status).toBe(200);
    return { reference, owed, deliver };
  }

  it.each(['in place', 'beside'])('stays until a person ends it if a part is refunded %s', async (shape) => {
    const { reference, owed, deliver } = await owing();
    const paymentId = shape === 'beside' ? `pay_9_${reference}` : owed;
    await deliver({ paymentId, status: 'REFUNDED', quote: '30.50' });
    await eventually(async () =>
      expect(JSON.stringify((await settled().order(reference)).payments)).toContain('refunded'),
    );
    const { order, matters, why, page, csv, told } = await everywhere(settled(), reference);
    expect(order.flags).toEqual([debt]);
    const sentence =
      shape === 'beside'
        ? `payment ${owed} of ${amount} BRL. The service also lists payment ${paymentId} of 30.50 BRL, refunded. If that is a part of what is owed, ${left} BRL may still be owed.`
        : `Of payment ${owed}, ${amount} BRL was owed, and the service names 30.50 BRL as refunded: ${left} BRL may still be owed.`;
    const matter = matters.find(({ kind }) => kind === debt) as Json;
    for (const words of [matter.detail, why]) expect(words).toContain(sentence);
    expect(page).toContain(sentence.replaceAll(/([\d.]+\d) BRL/g, 'R$$$1'));
    expect(matter.detail).toContain(`nothing is owed any more, end the matter: settled attention end ${matter.id}`);
    expect(csv).toContain(debt);
    const notices = debt === 'refund_due' ? ['order.cancelled', 'order.held'] : ['order.paid', 'payment.duplicate'];
    expect(told.map(({ type }) => type).toSorted()).toEqual(notices);
    expect(
      (await settled().api(`/v1/attention/${matter.id}/end`, { body: { reason: 'all of it went back' } })).status,
    ).toBe(200);
    expect((await settled().order(reference)).flags).toEqual([]);
  });

  it('ends when all of it is refunded', async () => {
    const { reference, owed, deliver } = await owing();
    await deliver({ paymentId: owed, status: 'REFUNDED', quote: amount });
    await eventually(async () => expect((await settled().order(reference)).flags).toEqual([]));
    expect((await everywhere(settled(), reference)).matters).toEqual([]);
  });
});

it('the sum of a refund that an answer of the API names is shown, in both shapes', async () => {
  const { sandbox, settled: asking } = await startShop();
  for (const shape of ['in-place', 'beside']) {
    await sandbox.control('/silences', { body: { 'partial-refund': shape } });
    await openOrder({ sandbox, settled: asking }, shape);
    await sandbox.control(`/links/${shape}/pay`, { method: 'POST' });
    await eventually(async () => expect((await asking.order(shape)).state).toBe('paid'));
    await act(sandbox, { id: shape }, 'refund', { amount: 30 });
    expect((await asking.api(`/v1/orders/${shape}/check`, { body: {} })).status).toBe(200);
    const { order, matters } = await everywhere(asking, shape);
    const amounts = order.payments.map(({ amount, stated }: Json) => [amount, stated]);
    expect(amounts).toEqual(
      shape === 'in-place'
        ? [[order.amount, brl('30.00')]]
        : [
            [order.amount, null],
            ['30.00', null],
          ],
    );
    expect(matters).toMatchObject([{ kind: 'amount_mismatch', detail: expect.stringContaining('names 30.00 BRL of') }]);
    const { answer, entries } = (await get(asking, `/v1/orders/${shape}/timeline`)).body as Json;
    expect(answer.split('that the customer paid with')).toHaveLength(2);
    const drift = entries.find((one: Json) => one.kind === 'drift' && one.summary.includes('refunded')) as Json;
    expect(drift.summary).toMatch(
      /The service had: refunded, 30\.00 BRL, payment \S+\. A person must find out which is right$/,
    );
  }
});

describe('an amount that is not readable', () => {
  it('is no balance of 0.00 where all that needs attention is summed', async () => {
    const app = await startTestApp();
    const link = await app.reserve('unread-1', '100.00');
    await deliverAndSee(app, link, paymentEvent({ linkId: 'pl_1', amount: '100.00', quote: '256.1699' }), 'held');
    const { summary, groups } = (await get(app, '/v1/attention')).body;
    const sums = [{ currency: 'BRL', asked: '100.00', balance: null }];
    expect([summary.money, groups[0].sums]).toMatchObject([{ sums, hasUnreadable: true }, sums]);
    const listed = (await say(['attention'], environmentOf(app))).text;
    for (const said of [await pageOf(app, '/'), listed]) {
      expect(said).toContain('not readable');
      expect(said).not.toMatch(/(?<![0-9])0\.00/);
    }
    expect(summary.sentence).toMatch(/ Money: 1 order of 100\.00 BRL, with a balance that is not readable\.$/);
  });

  it.each([
    ['a number with too many decimals', '256.1699', '256.1699'],
    ['a longer one', `1.${'0123456789'.repeat(5)}`, `1.${'0123456789'.repeat(4).slice(0, 38)}…`],
    ['a text', '"<b>\\u202e\\u001b[1m=1"', '?b????1m?1'],
  ])('%s is shown where a person looks, and never as 0.00', async (_name, quote, text) => {
    const link = await settled().reserve(freshReference(), '100.00');
    const { reference } = link;
    const paid = { linkId: `pl_${reference}`, amount: '100.00', paymentId: `pay_${reference}`, quote };
    await deliverAndSee(settled(), link, paymentEvent(paid), 'held');
    const { order, told, matters, csv, page, why, shown, listed } = await everywhere(settled(), reference);
    const expected = [[`pay_${reference}`, null, brl(text)]];
    expect(statedOf(order)).toEqual(expected);
    expect(told.map(({ type, data }: Json) => [type, statedOf(data.order)])).toEqual([['order.held', expected]]);
    expect(csv.endsWith(`,${text} BRL\r\n`)).toBe(true);
    const words = `not readable ("${text} BRL")`;
    for (const said of [page, why, shown, listed, matters[0]?.detail]) {
      expect(said).toContain(words);
      expect(said).not.toMatch(/(?<![0-9])0\.00/);
    }
    const undone = { ...paid, id: `evt_back_${reference}`, status: 'REFUNDED' };
    expect((await settled().deliver(link, paymentEvent(undone))).status).toBe(200);
    await eventually(async () =>
      expect(((await settled().order(reference)).payments as Json)[0]?.status).toBe('refunded'),
    );
    const gone = await everywhere(settled(), reference);
    expect(statedOf(gone.order)).toEqual(expected);
    expect(gone.matters.map(({ kind }) => kind)).toEqual(['hold']);
    for (const said of [gone.page, gone.why, gone.shown]) expect(said).not.toMatch(/(?<![0-9])0\.00/);
  });
});

it('an amount that is not readable, and that a person accepted, leaves a difference and no order that is complete', async () => {
  const link = await settled().reserve(freshReference(), '100.00');
  const { reference } = link;
  await deliverAndSee(settled(), link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.005' }), 'held');
  await settled().api(`/v1/orders/${reference}/resolve`, { body: { decision: 'accept', reason: 'seen in the panel' } });
  const { order, page, why } = await everywhere(settled(), reference);
  expect(order.state).toBe('paid');
  expect(page).toMatch(/There is a difference\..*not readable \("100\.005 BRL"\)/);
  for (const said of [page, why]) {
    expect(said).toContain('do not agree about this order');
    expect(said).not.toContain('Nothing more to do');
  }
});

it.each(['R$', '986', '€'])(
  'a currency that is written %s is quoted, not taken for the one it resembles',
  async (currency) => {
    const link = await settled().reserve(freshReference(), '100.00');
    const { reference } = link;
    const paid = { linkId: `pl_${reference}`, amount: '100.00', currency, paymentId: `pay_${reference}` };
    await deliverAndSee(settled(), link, paymentEvent(paid), 'held');
    const { order, matters, csv, page, answer, why, shown, listed } = await everywhere(settled(), reference);
    expect(order.payments).toMatchObject([{ amount: '100.00', currency }]);
    const all = [await pageOf(settled(), '/'), await pageOf(settled(), `/orders?q=${reference}`)];
    const list = (await say(['attention'], environmentOf(settled()))).text;
    const quoted = `100.00 "${currency}"`;
    const words = [page, answer, why, shown, listed, list, matters[0]?.detail, csv.replaceAll('""', '"'), ...all];
    for (const said of words) {
      expect(said).toContain(quoted);
      expect(said).not.toContain(`100.00 ${currency}`);
      expect(said).not.toContain(`${currency} 100.00`);
    }
  },
);
