import { describe, expect, it } from 'vitest';
import { agreement, quoteAgrees } from '../../src/domain/comparison.ts';
import type { StatedMoney } from '../../src/domain/money.ts';
import { aFact, anOrder, stated } from '../support/orders.ts';

const of = (linkMoney: StatedMoney | null, quoteMoney: StatedMoney | null) =>
  quoteAgrees(anOrder(), aFact('completed', { linkMoney, quoteMoney }));

describe("comparison: a quote on a link whose own money is the order's", () => {
  it.each([
    ['the same', stated('100.00')],
    ['the same, written otherwise', stated('1e2')],
    ['the same, in the currency of the link', stated('100', null)],
  ])('agrees if it names %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBe(true);
  });

  it.each([
    ['less', stated('99.99')],
    ['an amount that cannot be read', stated('NaN')],
    ['an amount of another currency that cannot be read', stated('NaN', 'USD')],
    ['what is no currency', stated('100', 'R$')],
  ])('differs if it names %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBe(false);
  });

  it.each([
    ['is not there', null],
    ["names only the order's currency", { amount: null, currency: 'BRL' }],
    ['names nothing', { amount: null, currency: null }],
    ['names more, which may be interest', stated('100.01')],
    ['names another currency, into which the service converted', stated('100', 'USD')],
    ['names another currency and no amount', { amount: null, currency: 'USD' }],
  ])('says nothing if it %s', (_name, quote) => {
    expect(of(stated('100'), quote)).toBeNull();
  });
});

describe("comparison: a quote on a link whose own money is not known to be the order's", () => {
  it.each([
    ['less', stated('60')],
    ['more', stated('140')],
    ['another currency', stated('100', 'USD')],
    ['an amount that cannot be read', stated('1e999')],
    ['nothing', null],
    ['only a currency', { amount: null, currency: 'BRL' }],
  ])('is no evidence if the link names %s', (_name, link) => {
    expect(of(link, stated('100'))).toBeNull();
    expect(of(link, stated('99'))).toBeNull();
  });
});

describe('comparison: what was captured, and what the customer paid', () => {
  const NONE = null;
  const own = stated('100');
  it.each([
    // link, quote → verdict, captured, what the customer paid
    ['only the link', own, NONE, 'equal', '10000 BRL', NONE],
    ['the same in both', own, own, 'equal', '10000 BRL', '100.00 BRL'],
    ['interest in the quote', own, stated('112.4'), 'equal', '10000 BRL', '112.40 BRL'],
    ["interest without a currency: the link's", own, stated('112.4', NONE), 'equal', '10000 BRL', '112.40 BRL'],
    ['another currency in the quote', own, stated('18.2', 'USD'), 'equal', '10000 BRL', '18.20 USD'],
    ['more of another currency', own, stated('9000', 'JPY'), 'equal', '10000 BRL', '9000 JPY'],
    [
      'more decimals than its other currency has',
      own,
      stated('18.123456', 'USD'),
      'equal',
      '10000 BRL',
      '18.123456 USD',
    ],
    ['a word for a currency', own, stated('50', 'R$'), 'currency_mismatch', '5000 R$', NONE],
    ['no word for a currency', own, stated('50', ''), 'currency_mismatch', '5000 ', NONE],
    ["a currency's number", own, stated('50', '986'), 'currency_mismatch', '5000 986', NONE],
    ['an object for a currency', own, stated('50', 'OBJECT'), 'currency_mismatch', '5000 OBJECT', NONE],
    ['more of an unknown currency', own, stated('150', 'R$'), 'currency_mismatch', '15000 R$', NONE],
    [
      'a link without a currency beside interest in one',
      stated('100', NONE),
      stated('150'),
      'amount_mismatch',
      '15000 BRL',
      NONE,
    ],
    ['only another currency', own, { amount: NONE, currency: 'USD' }, 'equal', '10000 BRL', NONE],
    ['a quote that is less', own, stated('60'), 'amount_mismatch', '6000 BRL', NONE],
    ['a quote that cannot be read', own, stated('NaN'), 'amount_mismatch', '0 BRL', NONE],
    ['one of another currency that cannot', own, stated('NaN', 'USD'), 'amount_mismatch', '0 USD', NONE],
    ['a link for more', stated('120'), NONE, 'amount_mismatch', '12000 BRL', NONE],
    ['a link for more, a quote that agrees', stated('120'), own, 'amount_mismatch', '10000 BRL', NONE],
    ['a link and a quote for more', stated('120'), stated('130'), 'amount_mismatch', '13000 BRL', NONE],
    ['a link read in another unit', stated('10000'), stated('5000'), 'amount_mismatch', '500000 BRL', NONE],
    ['a link in another currency', stated('100', 'USD'), own, 'currency_mismatch', '10000 BRL', NONE],
    [
      'a link without a currency beside a foreign quote',
      stated('100', NONE),
      stated('18', 'USD'),
      'currency_mismatch',
      '1800 USD',
      NONE,
    ],
    ['a link for more without a currency', stated('120', NONE), NONE, 'amount_mismatch', '12000 BRL', NONE],
    ['only a quote that agrees', NONE, own, 'equal', '10000 BRL', NONE],
    ['only a quote for more', NONE, stated('112.4'), 'amount_mismatch', '11240 BRL', NONE],
    ['only a quote in another currency', NONE, stated('100', 'USD'), 'currency_mismatch', '10000 USD', NONE],
    ["only the order's amount", NONE, stated('100', NONE), 'unnamed', '10000 BRL', NONE],
    ['nothing', NONE, NONE, 'unnamed', '10000 BRL', NONE],
    ['interest in no currency at all', stated('100', NONE), stated('112.4', NONE), 'unnamed', '10000 BRL', NONE],
  ])('is so if it names %s', (_name, linkMoney, quoteMoney, verdict, captured, paid) => {
    const said = agreement(anOrder(), aFact('completed', { linkMoney, quoteMoney }));
    expect(said.verdict).toBe(verdict);
    expect(`${said.captured.amountMinor} ${said.captured.currency}`).toBe(captured);
    const { customerPaid } = said;
    expect(customerPaid && `${customerPaid.amount} ${customerPaid.currency}`).toBe(paid);
  });

  it.each([
    ['the same', own, own, true],
    ['nothing', NONE, NONE, false],
    ["the order's amount in no currency", NONE, stated('100', NONE), false],
    ['what cannot be read', NONE, stated('1e999'), false],
  ])('is named or not if it names %s', (_name, linkMoney, quoteMoney, isNamed) => {
    expect(agreement(anOrder(), aFact('completed', { linkMoney, quoteMoney })).isNamed).toBe(isNamed);
  });
});
