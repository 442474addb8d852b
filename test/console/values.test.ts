import express from 'express';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { consoleAddress } from '../../src/access/browser.ts';
import {
  age,
  badge,
  clockTime,
  count,
  duration,
  lasting,
  money,
  moneyText,
  prose,
  stateBadge,
  time,
  timeAndAge,
  whole,
} from '../../src/console/values.ts';
import { hrefOf, idOf, localeOf, orderPath } from '../../src/console/view.ts';
import { ORDER_STATES } from '../../src/domain/order.ts';
import { textOf } from './reading.ts';
import { NOW_MS, viewOf } from './sample.ts';

const NO_BREAK = '\u00a0';

describe('console: money', () => {
  it.each([
    ['pt-BR', '48.00', 'BRL', `R$${NO_BREAK}48,00`],
    ['pt-BR', '1234567.80', 'BRL', `R$${NO_BREAK}1.234.567,80`],
    ['en', '48.00', 'BRL', 'R$48.00'],
    ['en', '-12.50', 'USD', '-$12.50'],
    ['en', '12000', 'JPY', '¥12,000'],
    ['en', '1.2345', 'CLF', `CLF${NO_BREAK}1.2345`],
    ['de', '1234.50', 'EUR', `1.234,50${NO_BREAK}€`],
    ['ar-EG', '48.00', 'BRL', expect.stringContaining('48')],
  ])('is written in the way of %s: %s %s', (locale, amount, currency, expected) => {
    expect(moneyText(locale, amount, currency)).toEqual(expected);
  });

  it.each([
    ['1e2', 'BRL', '1e2 BRL'],
    ['', 'BRL', ' BRL'],
    ['48,00', 'BRL', '48,00 BRL'],
    ['NaN', 'BRL', 'NaN BRL'],
    ['0x10', 'BRL', '0x10 BRL'],
    ['9'.repeat(41), 'BRL', `${'9'.repeat(41)} BRL`],
    ['48.00', 'USDT', '48.00 USDT'],
    ['48.00', 'R$', '48.00 "R$"'],
    ['48.00', '986', '48.00 "986"'],
    ['48.00', 'reais', '48.00 "reais"'],
    ['48.00', '', '48.00 ""'],
  ])('is left as it is if it is no decimal of a currency: %j %j', (amount, currency, expected) => {
    expect(moneyText('en', amount, currency)).toBe(expected);
  });

  it('keeps every digit, whatever the size, the currency and the locale', () => {
    const amounts = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 38n }), fc.integer({ min: 0, max: 6 }), fc.boolean());
    const locales = fc.constantFrom('en', 'pt-BR', 'de-CH', 'fr', 'en-IN', 'hi', 'ja', 'ar');
    const currencies = fc.constantFrom('BRL', 'USD', 'JPY', 'KWD', 'CLF', 'XXX', 'ZZZ');
    fc.assert(
      fc.property(amounts, locales, currencies, ([minor, digits, isNegative], locale, currency) => {
        const figures = String(minor).padStart(digits + 1, '0');
        const fraction = figures.slice(figures.length - digits);
        const amount = `${isNegative ? '-' : ''}${figures.slice(0, figures.length - digits)}${digits === 0 ? '' : `.${fraction}`}`;
        const text = moneyText(locale, amount, currency);
        expect(text.replace(/\D/g, '')).toBe(figures);
        expect(/[-−]/.test(text)).toBe(isNegative);
        const [last = ''] = /[.,]\d+(?=\D*$)/.exec(text) ?? [];
        if (digits > 0 && digits !== 3) expect(last.slice(1)).toBe(fraction);
      }),
    );
  });

  it('keeps the exact text beside it', () => {
    expect(money({ locale: 'pt-BR' }, '48.00', 'BRL').markup).toBe(
      `<data class="money" value="BRL 48.00">R$${NO_BREAK}48,00</data>`,
    );
  });
});

describe('console: times', () => {
  const UTC = { zone: 'UTC' };

  it('are in the zone of the pages, with UTC as their title', () => {
    const recife = { zone: 'America/Recife' };
    expect(time(recife, NOW_MS).markup).toBe(
      '<time datetime="2026-11-23T08:03:55.000Z" title="2026-11-23 08:03:55 UTC">2026-11-23 05:03:55 GMT-3</time>',
    );
    expect(clockTime(recife, NOW_MS).markup).toContain('>05:03:55 GMT-3<');
    expect(clockTime(UTC, NOW_MS).markup).toContain('>08:03:55 UTC<');
    const far = Date.UTC(10_000, 0, 31, 8, 3, 55);
    expect(time(UTC, far).markup).toContain('>10000-01-31 08:03:55 UTC<');
    expect(clockTime(UTC, far).markup).toContain('>08:03:55 UTC<');
    expect(age({ nowMs: NOW_MS }, far).markup).toContain('title="+010000-01-31 08:03:55 UTC"');
  });

  it.each([
    [0, '0 s ago'],
    [42_900, '42 s ago'],
    [7_800_000, '2 h 10 min ago'],
    [-90_000, 'in 90 s'],
  ])('%i ms before now are %s', (sinceMs, expected) => {
    expect(age({ nowMs: NOW_MS }, NOW_MS - sinceMs).markup).toMatch(new RegExp(`data-age="ago".*>${expected}</time>$`));
  });

  it('say how long something lasts', () => {
    expect(lasting({ nowMs: NOW_MS }, NOW_MS - 7_800_000).markup).toMatch(/data-age="lasting".*>2 h 10 min<\/time>$/);
    expect(timeAndAge({ nowMs: NOW_MS, ...UTC }, NOW_MS)?.markup).toMatch(/UTC<\/time> .*\(<time .*>0 s ago<\/time>\)/);
    expect(duration(-5)).toBe('0 s');
  });
});

describe('console: sentences of the API', () => {
  it.each([
    ['1', 'Order 1 (100.00 BRL) is held: paid: BRL 160.00.', 'Order 1 ( R$100.00 ) is held: paid: R$160.00.'],
    ['BRL 5', 'Order BRL 5 (5.00 BRL) is paid.', 'Order BRL 5 ( R$5.00 ) is paid.'],
    ['a', 'It is not readable ("9.999 BRL"), 5.00 "R$".', 'It is not readable ("9.999 BRL"), 5.00 "R$".'],
    ['a.b', 'Order a.b is paid; order axb is not.', 'Order a.b is paid; order axb is not.'],
  ])('show money as pages do, and the name of an order as it is: %s', (name, sentence, shown) => {
    expect(textOf(`<main>${prose(viewOf(), sentence, name).markup}`).trim()).toBe(shown);
  });
});

describe('console: counts and states', () => {
  it('writes counts with spaces that do not break, and agrees in number', () => {
    const noun = { one: 'order', many: 'orders' };
    expect(count(1, noun)).toBe('1 order');
    expect(count(0, noun)).toBe('0 orders');
    expect(count({ n: 1_000, isMore: true }, noun)).toBe(`more than 1${NO_BREAK}000 orders`);
    expect(count({ n: 1, isMore: true }, noun)).toBe('at least 1 orders');
    expect(whole(12_345_678)).toBe(`12${NO_BREAK}345${NO_BREAK}678`);
  });

  it('shows every state of an order in words', () => {
    for (const state of ORDER_STATES) expect(stateBadge(state).markup).toContain(`>${state.replaceAll('_', ' ')}<`);
    expect(stateBadge('held')).toEqual(badge('held', 'bad'));
    expect(stateBadge('constructor')).toEqual(badge('constructor', 'quiet'));
  });
});

describe('console: addresses and locales', () => {
  it('stand below the prefix and leave out what is empty', () => {
    expect(hrefOf({ prefix: '' }, '/')).toBe('/');
    expect(hrefOf({ prefix: '/ops/pay' }, '/orders', { state: 'held', q: 'a&b', since: null, until: '' })).toBe(
      '/ops/pay/orders?state=held&q=a%26b',
    );
    expect(consoleAddress('https://example.com/ops/pay/')?.path).toBe('/ops/pay');
    expect(consoleAddress('https://example.com')?.path).toBe('');
  });

  it('name an order by its reference, whatever is in it', () => {
    expect(orderPath('a/b?c#"\ud800')).toBe('/orders/a%2Fb%3Fc%23%22%EF%BF%BD');
    expect(idOf('row', '"]<x>\\')).toBe('row-%22%5D%3Cx%3E%5C');
  });

  it.each([
    [undefined, 'en'],
    ['', 'en'],
    ['*', 'en'],
    ['pt-BR,pt;q=0.9,en;q=0.8', 'pt-BR'],
    ['en;q=0.5, de-CH', 'de-CH'],
    ['fr;q=0, de;q=0.1', 'de'],
    ['xx-not-there', 'en'],
    ['pt-BR-u-nu-arab', 'en'],
    ['"><script>, pt', 'pt'],
    [`${'a,'.repeat(5_000)}pt`, 'en'],
    ['de;q=high', 'en'],
  ])('the locale of %j is %s', (header, locale) => {
    const request = Object.assign(Object.create(express.request), { headers: { 'accept-language': header } });
    expect(localeOf(request)).toBe(locale);
  });
});
