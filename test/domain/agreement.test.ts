import { describe, expect, it } from 'vitest';
import { quoteAgrees } from '../../src/domain/agreement.ts';
import type { StatedMoney } from '../../src/domain/money.ts';
import { aFact, anOrder, stated } from '../support/orders.ts';

const of = (linkMoney: StatedMoney | null, quoteMoney: StatedMoney | null) =>
  quoteAgrees(anOrder(), aFact('completed', { linkMoney, quoteMoney }));

describe("agreement: a quote on a link whose own money is the order's", () => {
  it.each([
    ['the same', stated('100.00')],
    ['the same, written otherwise', stated('1e2')],
    ['the same, in the currency of the link', stated('100', null)],
  ])('agrees where it names %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBe(true);
  });

  it.each([
    ['less', stated('99.99')],
    ['more', stated('100.01')],
    ['another currency', stated('100', 'USD')],
    ['another currency and no amount', { amount: null, currency: 'USD' }],
    ['an amount that cannot be read', stated('NaN')],
  ])('differs where it names %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBe(false);
  });

  it.each([
    ['is not there', null],
    ["names only the order's currency", { amount: null, currency: 'BRL' }],
    ['names nothing', { amount: null, currency: null }],
  ])('says nothing where it %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBeNull();
  });
});

describe("agreement: a quote on a link whose own money is not known to be the order's", () => {
  it.each([
    ['less', stated('60')],
    ['more', stated('140')],
    ['another currency', stated('100', 'USD')],
    ['an amount that cannot be read', stated('1e999')],
    ['nothing', null],
    ['only a currency', { amount: null, currency: 'BRL' }],
  ])('is no evidence where the link names %s', (_name, link) => {
    expect(of(link, stated('100'))).toBeNull();
    expect(of(link, stated('99'))).toBeNull();
  });
});
