import { describe, expect, it } from 'vitest';
import { inSum, payments } from '../../src/domain/ledger.ts';
import { listPayments } from '../../src/domain/matter.ts';
import { noticeBody, orderDocument, shownFlags } from '../../src/domain/notice.ts';
import { aFact, anOrder, NO_API, orderAfter, orderIn, stated, step, UNSAID } from '../support/orders.ts';

describe('notice: the order as the shop sees it', () => {
  it('of a paid order names its money, its time and its payment', () => {
    const { order } = step(anOrder(), aFact('completed'), NO_API, Date.UTC(2026, 0, 2, 3, 4, 5, 6));
    expect(orderDocument(order)).toEqual({
      reference: 'order-1',
      state: 'paid',
      flags: [],
      amount: '100.00',
      currency: 'BRL',
      title: null,
      metadata: null,
      customer: null,
      createdAt: '2023-11-14T22:13:20.000Z',
      paidAt: '2026-01-02T03:04:05.006Z',
      learnedBy: 'webhook',
      payment: { id: 'pay_1', status: 'completed', amount: '100.00', currency: 'BRL', customerPaid: null, ...UNSAID },
      payments: [
        { id: 'pay_1', status: 'completed', amount: '100.00', currency: 'BRL', customerPaid: null, ...UNSAID },
      ],
      paymentsTotal: { count: 1, sums: [{ currency: 'BRL', captured: '100.00', balance: '100.00' }] },
      holds: [],
      hold: null,
      link: null,
      version: 2,
    });
  });

  it('of an unpaid order has null for what is not there', () => {
    const { paidAt, learnedBy, payment, payments, paymentsTotal, hold } = orderDocument(anOrder());
    expect([paidAt, learnedBy, payment, payments, hold]).toEqual([null, null, null, [], null]);
    expect(paymentsTotal).toEqual({ count: 0, sums: [] });
  });

  it('of a held order names the oldest hold and every other', () => {
    const held = orderAfter(orderIn('held'), aFact('completed', { paymentId: 'pay_2' }));
    expect(orderDocument(held)).toMatchObject({
      hold: { reason: 'amount_mismatch' },
      holds: [
        { id: 'hold_2', reason: 'amount_mismatch' },
        { id: 'hold_3', reason: 'further_payment' },
      ],
      payment: { id: 'pay_1', amount: '60.00' },
    });
  });

  it('names the payment by which the order was paid, not the first that was counted', () => {
    const twice = orderAfter(anOrder(), aFact('completed'), aFact('completed', { paymentId: 'pay_2' }));
    const settlement = { paidAtMs: 0, paymentKey: 'pay_2', learnedBy: 'person' } as const;
    expect(orderDocument({ ...twice, settlement }).payment?.id).toBe('pay_2');
  });

  it('has sums of twenty currencies at most, and what needs a person of five; its own comes first', () => {
    const paid = orderAfter(anOrder(), aFact('completed'));
    const [counted] = paid.entries;
    const inMany = (currencies: number): typeof paid => {
      // As many payments as are summed for a person, the order's own currency last.
      const of = Array.from({ length: Math.max(currencies, 21) }, (_, n) => {
        const at = Math.min(n + 1, currencies - 1);
        const currency = n === 20 ? 'BRL' : `Q${String.fromCharCode(65 + (at % 20))}${Math.floor(at / 20)}`;
        return { ...counted, paymentKey: `pay_${n}`, paymentId: `pay_${n}`, currency } as NonNullable<typeof counted>;
      });
      return { ...paid, entries: of };
    };
    const told = (currencies: number) => orderDocument(inMany(currencies)).paymentsTotal.sums;
    expect([19, 20, 21].map((currencies) => told(currencies).length)).toEqual([19, 20, 20]);
    for (const currencies of [2, 21]) expect(told(currencies)[0]?.currency).toBe('BRL');
    const listed = (currencies: number) => listPayments(payments(inMany(currencies)));
    expect([4, 5, 6].map((currencies) => listed(currencies).sums.length)).toEqual([4, 5, 5]);
    const summed = (currencies: number) => inSum(payments(inMany(currencies)));
    expect(summed(5)).toMatch(/^21 payments of( and)?( ?[\d.]+ Q\w0 and){4} [\d.]+ BRL in all$/);
    expect(summed(6)).toMatch(/^21 payments of [^L]+ and others in all$/);
    expect([listed(6).count, listed(6).named.length]).toEqual([21, 20]);
  });

  const paidWith = (...entries: { amountMinor: number; currency: string }[]) => {
    const paid = orderAfter(anOrder(), aFact('completed'));
    const [counted] = paid.entries;
    const of = entries.map((entry, n) => ({ ...counted, ...entry, occurrence: n + 1 }) as typeof counted);
    return shownFlags({ ...paid, entries: of as typeof paid.entries });
  };

  it('is flagged underpaid if it is paid with less than it asks', () => {
    expect(paidWith({ amountMinor: 9_999, currency: 'BRL' })).toEqual(['underpaid']);
    expect(paidWith({ amountMinor: 10_000, currency: 'BRL' })).toEqual([]);
  });

  it('is flagged underpaid if money in another currency was accepted in place of its own', () => {
    expect(paidWith({ amountMinor: 5, currency: 'USD' })).toEqual(['underpaid']);
    const both = paidWith({ amountMinor: 5, currency: 'BRL' }, { amountMinor: 5, currency: 'USD' });
    expect(both).toEqual(['underpaid']);
  });

  it('is flagged underpaid no matter what came in another currency and went back', () => {
    const [came, went] = [5, -5].map((amountMinor) => ({ amountMinor, currency: 'USD' }));
    expect(paidWith({ amountMinor: 5, currency: 'BRL' }, came as never, went as never)).toEqual(['underpaid']);
  });

  const paidTimes = (count: number, money = stated('100.00')) =>
    orderAfter(
      anOrder(),
      aFact('completed'),
      ...Array.from({ length: count - 1 }, (_, n) =>
        aFact('completed', { paymentId: `pay_${n + 2}`, linkMoney: money }),
      ),
    );
  const listedIds = (order: Parameters<typeof orderDocument>[0]) => orderDocument(order).payments.map(({ id }) => id);
  const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => `pay_${first + n}`);

  it('lists 20 payments, and of more the one that paid the order and the newest 19', () => {
    expect(listedIds(paidTimes(20))).toEqual(from(1, 20));
    expect(listedIds(paidTimes(21))).toEqual(['pay_1', ...from(3, 21)]);
    expect(listedIds(paidTimes(70))).toEqual(['pay_1', ...from(52, 70)]);
    const settlement = { paidAtMs: 0, paymentKey: 'pay_68', learnedBy: 'person' } as const;
    expect(listedIds({ ...paidTimes(70), settlement })).toEqual(from(51, 70));
  });

  it('counts and sums all payments exactly, listed or not, in each currency', () => {
    const order = orderAfter(paidTimes(70), aFact('refunded', { paymentId: 'pay_30' }));
    const dollars = aFact('completed', { paymentId: 'pay_usd', linkMoney: stated('7.50', 'USD') });
    expect(orderDocument(orderAfter(order, dollars)).paymentsTotal).toEqual({
      count: 71,
      sums: [
        { currency: 'BRL', captured: '7000.00', balance: '6900.00' },
        { currency: 'USD', captured: '7.50', balance: '7.50' },
      ],
    });
  });

  it('sums more than a JavaScript number holds exactly', () => {
    const { sums } = orderDocument(paidTimes(100, stated('9999999999999.99'))).paymentsTotal;
    expect(sums).toEqual([{ currency: 'BRL', captured: '990000000000099.01', balance: '990000000000099.01' }]);
  });

  it('shows what a returned payment had brought', () => {
    expect(orderDocument(orderIn('refunded')).payment).toEqual({
      id: 'pay_1',
      status: 'refunded',
      amount: '100.00',
      currency: 'BRL',
      customerPaid: null,
      ...UNSAID,
    });
  });

  it.each([
    ['with interest', stated('112.4'), { amount: '112.40', currency: 'BRL' }],
    ['in another currency', stated('18.2', 'USD'), { amount: '18.20', currency: 'USD' }],
  ])('says what the customer paid %s beside what counts', (_name, quoteMoney, customerPaid) => {
    const paid = orderAfter(anOrder(), aFact('completed', { quoteMoney }));
    expect(orderDocument(paid)).toMatchObject({
      state: 'paid',
      flags: [],
      payment: { amount: '100.00', currency: 'BRL', customerPaid },
      payments: [{ amount: '100.00', customerPaid }],
    });
  });

  it("writes the digits of the order's currency", () => {
    const yen = anOrder({ amount: { amountMinor: 500, currency: 'JPY' } });
    const paid = orderAfter(yen, aFact('completed', { linkMoney: stated('500', 'JPY') }));
    expect(orderDocument(paid)).toMatchObject({ amount: '500', payment: { amount: '500', currency: 'JPY' } });
  });
});

describe('notice: its body', () => {
  it('says what happened, when, and the order as it stood', () => {
    const order = orderIn('paid');
    expect(JSON.parse(noticeBody('order.paid', order, 0))).toEqual({
      type: 'order.paid',
      timestamp: '1970-01-01T00:00:00.000Z',
      data: { order: orderDocument(order), version: 2 },
    });
  });
});
