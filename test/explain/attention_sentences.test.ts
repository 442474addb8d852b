import { describe, expect, it } from 'vitest';
import { decidedParams } from '../../src/domain/decided_matter.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../../src/domain/matter.ts';
import type { DecidedAttention, Order } from '../../src/domain/order.ts';
import { attentionSentence, explainAttention } from '../../src/explain/attention_sentences.ts';
import { troubleSentence } from '../../src/explain/service_status.ts';
import { SAMPLE_MATTERS } from '../support/matters.ts';
import { aFact, instruction, orderAfter, orderIn, reading, second, stated } from '../support/orders.ts';

/** What a person reads of a matter that a decision raised. */
function decided(kind: DecidedAttention, order: Order): string {
  return attentionSentence(kind, order.reference, decidedParams(kind, order), { key: 7, canAsk: true });
}

const lost = orderAfter(orderIn('paid'), second(), aFact('disputed'));

describe('what settled advises about a matter that a decision raised', () => {
  it.each([
    ['the later of two payments', orderAfter(orderIn('paid'), second()), 'pay_2', 'pay_1'],
    ['the one that pays no order', orderAfter(lost, aFact('completed', { authority: reading(1) })), 'pay_2', 'pay_1'],
    [
      'the later of two that a person accepted',
      orderAfter(orderIn('held'), second(), instruction('accept')),
      'pay_2',
      'pay_1',
    ],
  ])('names %s to refund if an order was paid more than once', (_name, order, owed, kept) => {
    expect(order.flags).toContain('duplicate_payment');
    const sentence = decided('duplicate_payment', order);
    expect(sentence).toMatch(
      new RegExp(`Refund in the service's panel: payment ${owed} of \\d+\\.00 BRL\\. Keep payment ${kept} `),
    );
  });

  it('keeps none of them if the money of the order counts as gone', () => {
    const order = { ...orderAfter(orderIn('paid'), second()), state: 'refunded' as const };
    const sentence = decided('duplicate_payment', order);
    expect(sentence).toContain('panel: payment pay_1 of 100.00 BRL; payment pay_2 of 100.00 BRL. This matter ends');
  });

  it('names all that is owed back of a cancelled order, and nothing that went back', () => {
    const held = orderAfter(orderIn('held'), second(), aFact('refunded'));
    const sentence = decided('refund_due', orderAfter(held, instruction('reject')));
    expect(sentence).toContain("Refund in the service's panel: payment pay_2 of 100.00 BRL. This matter ends");
    expect(sentence).not.toContain('pay_1');
  });

  it.each<DecidedAttention>([
    'amount_mismatch',
    'duplicate_payment',
    'link_disabled',
    'money_unnamed',
    'refund_due',
    'service_disagrees',
    'status_unclear',
  ])('says of %s which order, where to look and what to run', (kind) => {
    const order = { ...orderAfter(orderIn('paid'), second()), reference: 'the 7th' };
    const sentence = decided(kind, order);
    expect(sentence).toMatch(/^(?:.*\b)?[Oo]rder the 7th\b/);
    expect(sentence).toContain("in the service's panel");
    expect(sentence).toMatch(/settled (?:orders check|orders cancel|why) 'the 7th'/);
  });

  it('of many payments names the newest 20, with the count and the sum of all', () => {
    const facts = Array.from({ length: 70 }, (_, n) => aFact('completed', { paymentId: `pay_${n + 2}` }));
    const paid = decided('duplicate_payment', orderAfter(orderIn('paid'), ...facts));
    expect(paid).toContain('panel: 70 payments with a total of 7000.00 BRL; the newest: payment pay_52 of 100.00');
    expect(paid).toContain('Keep payment pay_1 of 100.00 BRL, which pays the order.');
    expect(paid.match(/payment pay_/g)).toHaveLength(21);
    const held = decided('duplicate_payment', orderAfter(orderIn('held'), ...facts));
    expect(held).toContain('decide first (settled orders resolve order-1 --accept, or --reject, with --reason TEXT)');
    expect(held).toContain('71 payments with a total of 7060.00 BRL');
    expect(held).not.toContain('which pays the order');
  });

  it('says of a payment without an id what is known of it', () => {
    const paid = orderAfter(
      orderIn('awaiting_payment'),
      aFact('completed', { paymentId: null, linkMoney: stated('100') }),
    );
    expect(decided('service_disagrees', paid)).toContain('(the payment without an id of 100.00 BRL)');
  });
});

/** What the sentence of each sample must name of it. */
const NAMES: { [K in AttentionKind]: RegExp } = {
  amount_mismatch: /order a b .*payment pay_1 of 100\.00 BRL.*settled why 'a b'.*attention end 7/,
  api_key_refused: /SETTLED_API_KEY/,
  deliveries_refused: /body_too_large.*has 5 bytes/,
  duplicate_payment: /resolve 'a b' --accept.*too much\. The payments: payment pay_1 of 100\.00 BRL/,
  event_conflict: /evt_1.*show 3.*show 4.*attention end 7/,
  event_dead: /event 4 \(bug\): It went wrong\. .*replay 4.*attention end 7/,
  event_not_understood:
    /Event 4 .*: it is a list\. .*got no answer that says more\. .*by event 5.*show 4.*attention end 7 --reason TEXT$/,
  link_disabled: /order a b .*settled orders cancel 'a b'$/,
  link_mismatch: /event 4 \(bug\)/,
  link_missing: /order a b /,
  link_not_known: /reserve 'a b' --amount 10 --currency BRL && .* --id 'pl 9'/,
  link_not_opened: /order a b .*adopt 'a b' --id ID\. .*settled why 'a b'/,
  link_withheld: /pl_9 of order a b .*It is in USD\./,
  merchant_inactive: /\(403\)/,
  money_unnamed: /12\.34 BRL.*attention end 7/,
  money_untold: /money of order order-1: .* since 1970-/,
  notices_dead: /notice n-1: It is gone\. /,
  quote_reading_doubtful: /quotes of 3 payments(?!.* bulk ).* amount or a currency .*decide about that order alone/,
  reference_taken: /settled orders adopt 'a b' --id 'pl 9' /,
  refund_due: /panel: payment pay_1 of 100\.00 BRL/,
  secret_unusable: /order a b,.*: it is short\. .*end 7/,
  service_disagrees: /payment pay_1 of 100\.00 BRL.*attention end 7/,
  service_unanswered:
    /not answered since 1970.*5 unpaid orders may have been paid\. .*3 requests in a row.*It answered 503\./,
  shop_refuses_notices: /3 attempts in a row.*500 oh no\. /,
  status_unclear: /payment pay_1 of 100\.00 BRL.*attention end 7/,
  webhook_address_changed: /order a b it says https:\/\/x\.example\/hooks\/…\//,
};

it.each([
  [0, 'Z. No link waits for a payment.'],
  [1, 'Z. 1 unpaid order may have been paid.'],
  [1_000, 'Z. 1000 unpaid orders may have been paid.'],
  [1_001, 'Z. More than 1000 unpaid orders may have been paid.'],
])('the sentence of a silent service counts 1 000 unpaid orders at most: of %d', (unpaid, words) => {
  const [subject, params] = SAMPLE_MATTERS.service_unanswered;
  const sentence = attentionSentence('service_unanswered', subject, { ...params, unpaid }, { key: 7, canAsk: true });
  expect(sentence).toContain(words);
});

describe('the sentence of a matter', () => {
  it.each(ATTENTION_KINDS)('says of %s what its row keeps, as JSON brings it back', (kind) => {
    const [subject, params] = SAMPLE_MATTERS[kind];
    const kept = JSON.parse(JSON.stringify(params));
    expect(kept).toEqual(params);
    const sentence = attentionSentence(kind, subject, kept, { key: 7, canAsk: true });
    expect(sentence).toMatch(NAMES[kind]);
    expect(sentence).not.toMatch(/undefined|null|NaN|\[object| ID --reason/);
  });

  it.each(['refunded', 'disputed'] as const)('says both sums of a payment that is %s for another one', (kind) => {
    const [, params] = SAMPLE_MATTERS.amount_mismatch;
    const kept = { ...params, said: { kind, paymentId: 'pay_1', amount: '30.00', currency: 'BRL' } };
    const sentence = attentionSentence('amount_mismatch', 'a', kept, { key: 7, canAsk: true });
    expect(sentence).toMatch(/pay_1 of 100\.00 BRL.* names 30\.00 BRL of payment pay_1 as /);
    expect(sentence).toContain(`settled counted the whole payment as ${kind}, because`);
    expect(sentence).toContain('settled cannot know what is left.');
  });

  it('says of a list that cannot be read why, and since when links are looked for', () => {
    const kept = { restoredFromMs: 0, why: 'it has no list' };
    const sentence = attentionSentence('link_not_known', 'since', kept, { key: 7, canAsk: true });
    expect(sentence).toMatch(/a copy of 1970-01-01.* cannot read that list: it has no list\. /);
  });

  it.each<AttentionKind>(['duplicate_payment', 'link_disabled', 'refund_due', 'service_disagrees', 'status_unclear'])(
    'says of %s what a check needs if there is no API to ask',
    (kind) => {
      const [subject, params] = SAMPLE_MATTERS[kind];
      const sentence = attentionSentence(kind, subject, params as never, { key: 7, canAsk: false });
      expect(sentence).toContain("settled orders check 'a b', once SETTLED_API_URL and SETTLED_API_KEY are set");
    },
  );

  it('says of a kind of a later version that it is one', () => {
    const matter = { kind: 'of_a_later_version', subject: 'x', params: { some: 'thing' }, detail: '' };
    expect(explainAttention(matter, { key: 7, canAsk: true })).toContain('of_a_later_version');
  });

  it('is the stored one of an older version, with its number, and with what a check needs', () => {
    const detail = "Run settled orders check 'a b'. Then: settled attention end ID --reason TEXT";
    const matter = { kind: 'status_unclear', subject: 'a b', params: null, detail };
    expect(explainAttention(matter, { key: 7, canAsk: false })).toBe(
      "Run settled orders check 'a b', once SETTLED_API_URL and SETTLED_API_KEY are set. Then: settled attention end 7 --reason TEXT",
    );
  });
});

it.each([
  ['money_untold', 1_000],
  ['shop_refuses_notices', 1_000],
  ['api_key_refused', undefined],
] as const)('says since when %s has lasted, not since when it is a matter', (kind, sinceMs) => {
  const trouble = { key: 1, subject: 'shop', detail: '', openedAtMs: 9_000, kind, params: { sinceMs } };
  expect(troubleSentence(trouble)).toContain(`(since ${new Date(sinceMs ?? 9_000).toISOString()}).`);
});
