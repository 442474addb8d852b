import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noticeBody, orderDocument, withoutCustomers } from '../../src/domain/notice.ts';
import {
  type KnownDetails,
  learnDetails,
  NO_DETAILS,
  type SaidDetails,
  searchWords,
} from '../../src/domain/payment_details.ts';
import { aFact, anOrder, orderAfter } from '../support/orders.ts';
import { times } from '../support/timing.ts';

const said = (over: Partial<SaidDetails>): SaidDetails => ({ ...NO_DETAILS, paymentId: 'pay_1', ...over });
const known = (over: Partial<KnownDetails>): KnownDetails => ({
  ...NO_DETAILS,
  key: 'pay_1',
  saidAtMs: 100,
  isForgotten: false,
  ...over,
});

describe('learning details of a payment', () => {
  it('takes the newer word, and keeps what it leaves out', () => {
    const before = known({ method: 'PIX', customerName: 'Ana' });
    expect(learnDetails([before], said({ method: 'CREDIT_CARD', installments: 2 }), 200)).toEqual(
      known({ method: 'CREDIT_CARD', installments: 2, customerName: 'Ana', saidAtMs: 200 }),
    );
  });

  it('fills gaps by an older word, which overrules nothing', () => {
    const before = known({ method: 'PIX' });
    expect(learnDetails([before], said({ method: 'CREDIT_CARD', installments: 2 }), 99)).toEqual(
      known({ method: 'PIX', installments: 2 }),
    );
  });

  it('has nothing to write if nothing is new', () => {
    const before = known({ method: 'PIX', installments: 2 });
    expect(learnDetails([before], said({ method: 'PIX' }), 200)).toBeNull();
    expect(learnDetails([before], said({ method: 'CREDIT_CARD' }), 99)).toBeNull();
    expect(learnDetails([], said({}), 200)).toBeNull();
  });

  it('does not learn again who a forgotten customer is', () => {
    const before = known({ isForgotten: true });
    const ana = { customerName: 'Ana', customerEmail: 'ana@example.com' };
    expect(learnDetails([before], said(ana), 200)).toBeNull();
    expect(learnDetails([before], said({ ...ana, method: 'PIX' }), 200)).toEqual(
      known({ isForgotten: true, method: 'PIX', saidAtMs: 200 }),
    );
  });

  it('comes to the same in any order of two words, if the same moment said each', () => {
    const word = fc.record({
      method: fc.constantFrom(null, 'PIX', 'CREDIT_CARD'),
      installments: fc.constantFrom(null, 1, 2),
      customerName: fc.constantFrom(null, 'Ana', 'Bia'),
      completedAtMs: fc.constantFrom(null, 1, 2),
    });
    const learnt = (words: readonly (readonly [Partial<SaidDetails>, number])[]) =>
      words.reduce<KnownDetails[]>((before, [one, atMs]) => {
        const after = learnDetails(before, said(one), atMs);
        return after === null ? before : [after];
      }, []);
    const shown = (all: readonly KnownDetails[]) => all.map(({ saidAtMs: _, ...rest }) => rest);
    fc.assert(
      fc.property(word, word, (one, other) => {
        const [first, second] = [[one, 100] as const, [other, 200] as const];
        expect(shown(learnt([second, first]))).toEqual(shown(learnt([first, second])));
        expect(shown(learnt([first, second, first, second]))).toEqual(shown(learnt([first, second])));
      }),
      { numRuns: times(200, 5_000) },
    );
  });
});

describe('the words of a search', () => {
  it.each([
    ['José ÁVILA', 'jose avila'],
    ['Ｊｏｓｅ', 'jose'],
    ['ANA@Example.com', 'ana@example.com'],
    ['Łukasz', 'łukasz'],
    ['', ''],
  ])('of %j are %j', (text, words) => {
    expect(searchWords(text)).toBe(words);
  });
});

describe('a notice without customers', () => {
  const paid = orderAfter(anOrder(), aFact('completed'), aFact('completed', { paymentId: 'pay_2' }));
  const details = [
    known({ customerName: 'Ana', customerEmail: 'ana@example.com', method: 'PIX' }),
    known({ key: 'pay_2', customerName: 'Bia "customer":{' }),
  ];
  const body = noticeBody('order.paid', { ...paid, details, metadata: { ['__proto__']: 1, n: 1e21, '10': [null] } }, 0);

  it('is the same but for those, byte for byte', () => {
    const forgotten = [known({ method: 'PIX' }), details[1] as KnownDetails];
    const without = noticeBody(
      'order.paid',
      { ...paid, details: forgotten, metadata: { ['__proto__']: 1, n: 1e21, '10': [null] } },
      0,
    );
    expect(withoutCustomers(body, new Set(['pay_1']))).toBe(without);
    expect(withoutCustomers(without, new Set(['pay_1']))).toBeNull();
    expect(withoutCustomers(without, new Set(['pay_2']))).not.toContain('Bia');
  });

  it('needs no change if it names none of them', () => {
    expect(withoutCustomers(body, new Set(['pay_3', null]))).toBeNull();
    expect(withoutCustomers(noticeBody('order.expired', anOrder(), 0), new Set(['pay_1', null]))).toBeNull();
  });

  it('may be of before there were customers', () => {
    const { payment: _payment, payments: _payments, ...order } = orderDocument(paid);
    const old = JSON.stringify({
      type: 'order.paid',
      data: { order: { ...order, payment: null, payments: [{ id: 'pay_1' }] } },
    });
    expect(withoutCustomers(old, new Set(['pay_1']))).toBeNull();
    expect(withoutCustomers(`${old.slice(0, -1)},"customer":{}}`, new Set(['pay_1']))).toBeNull();
  });
});
