import { describe, expect, it } from 'vitest';
import { covers, type LedgerEntry, nextEntry, payments } from '../../src/domain/ledger.ts';
import { balances } from '../support/orders.ts';

const entry = (over: Partial<LedgerEntry>): LedgerEntry => ({
  paymentKey: 'pay_1',
  kind: 'captured',
  occurrence: 1,
  amountMinor: 100,
  currency: 'BRL',
  isAssumed: false,
  customerPaid: null,
  stated: null,
  ...over,
});
const books = (...entries: LedgerEntry[]) => ({ entries, adoptedPaymentId: null });

describe('ledger', () => {
  it('keeps the money of each currency apart', () => {
    const entries = [
      entry({}),
      entry({ paymentKey: 'pay_2', currency: 'USD' }),
      entry({ kind: 'refunded', amountMinor: -40 }),
    ];
    expect(balances(entries)).toEqual([
      { amountMinor: 60, currency: 'BRL' },
      { amountMinor: 100, currency: 'USD' },
    ]);
  });

  it("tells a payment's status by its last entry", () => {
    const taken = entry({ kind: 'disputed', amountMinor: -100 });
    expect(payments(books(entry({}), taken))).toMatchObject([{ status: 'disputed', balance: { amountMinor: 0 } }]);
    expect(payments(books(entry({}), taken, entry({ occurrence: 2 })))).toMatchObject([{ status: 'completed' }]);
  });

  it('keeps what a returned payment had brought', () => {
    const [payment] = payments(books(entry({}), entry({ kind: 'refunded', amountMinor: -100 })));
    expect(payment).toMatchObject({ captured: { amountMinor: 100 }, balance: { amountMinor: 0 } });
  });

  it('counts a correction into what was captured', () => {
    const [payment] = payments(books(entry({}), entry({ occurrence: 2, amountMinor: -10 })));
    expect(payment?.captured).toEqual({ amountMinor: 90, currency: 'BRL' });
  });

  it('gives the unnamed payment the adopted id', () => {
    const unnamed = entry({ paymentKey: 'unnamed' });
    expect(payments({ entries: [unnamed], adoptedPaymentId: 'pay_9' })).toMatchObject([
      { key: 'unnamed', id: 'pay_9' },
    ]);
    expect(payments(books(unnamed))).toMatchObject([{ key: 'unnamed', id: null }]);
  });

  it('numbers entries by payment and kind', () => {
    const before = books(entry({}), entry({ paymentKey: 'pay_2' }), entry({ kind: 'disputed', amountMinor: -100 }));
    const next = nextEntry(before, { paymentKey: 'pay_1', kind: 'captured', amountMinor: 100, currency: 'BRL' });
    expect(next.occurrence).toBe(2);
  });

  it('refuses an amount that is not a whole number of minor units', () => {
    const half = { paymentKey: 'pay_1', kind: 'captured', amountMinor: 0.5, currency: 'BRL' } as const;
    expect(() => nextEntry(books(), half)).toThrow('0.5 is not a ledger amount');
  });
});

describe('ledger: a payment covers the claim', () => {
  const claim = { amount: { amountMinor: 100, currency: 'BRL' }, settlement: null };
  const [payment] = payments(books(entry({})));
  if (payment === undefined) throw new Error('no payment');

  it.each([
    ['if it is worth as much', payment, claim, true],
    ['not if it is worth less', { ...payment, balance: { amountMinor: 99, currency: 'BRL' } }, claim, false],
    ['not in another currency', { ...payment, balance: { amountMinor: 100, currency: 'USD' } }, claim, false],
    ['not once it was returned', { ...payment, status: 'refunded' as const }, claim, false],
    [
      'if the order was paid by it, for less',
      { ...payment, balance: { amountMinor: 1, currency: 'BRL' } },
      { ...claim, settlement: { paymentKey: 'pay_1' } },
      true,
    ],
  ])('%s', (_name, candidate, order, answer) => {
    expect(covers(candidate, order)).toBe(answer);
  });
});
