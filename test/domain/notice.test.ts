import { describe, expect, it } from 'vitest';
import { noticeBody, orderDocument } from '../../src/domain/notice.ts';
import { aFact, anOrder, NO_API, orderAfter, orderIn, stated, step } from '../support/orders.ts';

describe('notice: the order as the shop sees it', () => {
  it('of a paid order names its money, its time and its payment', () => {
    const { order } = step(anOrder(), aFact('completed'), NO_API, Date.UTC(2026, 0, 2, 3, 4, 5, 6));
    expect(orderDocument(order)).toEqual({
      reference: 'order-1',
      state: 'paid',
      flags: [],
      amount: '100.00',
      currency: 'BRL',
      createdAt: '2023-11-14T22:13:20.000Z',
      paidAt: '2026-01-02T03:04:05.006Z',
      learnedBy: 'webhook',
      payment: { id: 'pay_1', status: 'completed', amount: '100.00', currency: 'BRL' },
      payments: [{ id: 'pay_1', status: 'completed', amount: '100.00', currency: 'BRL' }],
      holds: [],
      hold: null,
      link: null,
      version: 2,
    });
  });

  it('of an unpaid order has null for what is not there', () => {
    const { paidAt, learnedBy, payment, payments, hold } = orderDocument(anOrder());
    expect([paidAt, learnedBy, payment, payments, hold]).toEqual([null, null, null, [], null]);
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

  it('shows what a returned payment had brought', () => {
    expect(orderDocument(orderIn('refunded')).payment).toEqual({
      id: 'pay_1',
      status: 'refunded',
      amount: '100.00',
      currency: 'BRL',
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
