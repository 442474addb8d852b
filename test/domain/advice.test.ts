import { describe, expect, it } from 'vitest';
import { attentionSentence } from '../../src/domain/advice.ts';
import type { DecidedAttention } from '../../src/domain/order.ts';
import { aFact, instruction, orderAfter, orderIn, reading, stated } from '../support/orders.ts';

const second = (kind: 'completed' | 'refunded' = 'completed') => aFact(kind, { paymentId: 'pay_2' });
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
    const sentence = attentionSentence('duplicate_payment', order);
    expect(sentence).toMatch(
      new RegExp(`Refund in the service's panel: payment ${owed} of \\d+\\.00 BRL\\. Keep payment ${kept} `),
    );
  });

  it('keeps none of them if the money of the order counts as gone', () => {
    const order = { ...orderAfter(orderIn('paid'), second()), state: 'refunded' as const };
    const sentence = attentionSentence('duplicate_payment', order);
    expect(sentence).toContain('panel: payment pay_1 of 100.00 BRL; payment pay_2 of 100.00 BRL. This ends');
  });

  it('names all that is owed back of a cancelled order, and nothing that went back', () => {
    const held = orderAfter(orderIn('held'), second(), aFact('refunded'));
    const sentence = attentionSentence('refund_due', orderAfter(held, instruction('reject')));
    expect(sentence).toContain("Refund it in the service's panel: payment pay_2 of 100.00 BRL. This ends");
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
    const sentence = attentionSentence(kind, order);
    expect(sentence).toMatch(/^(?:.*\b)?[Oo]rder the 7th\b/);
    expect(sentence).toContain("in the service's panel");
    expect(sentence).toMatch(/settled (?:orders check|orders cancel|why) 'the 7th'/);
  });

  it('of many payments names the newest 20, with the count and the sum of all', () => {
    const facts = Array.from({ length: 70 }, (_, n) => aFact('completed', { paymentId: `pay_${n + 2}` }));
    const paid = attentionSentence('duplicate_payment', orderAfter(orderIn('paid'), ...facts));
    expect(paid).toContain('panel: 70 payments of 7000.00 BRL in all, the newest of them payment pay_52 of 100.00');
    expect(paid).toContain('Keep payment pay_1 of 100.00 BRL, which pays the order.');
    expect(paid.match(/payment pay_/g)).toHaveLength(21);
    const held = attentionSentence('duplicate_payment', orderAfter(orderIn('held'), ...facts));
    expect(held).toContain('decide first (settled orders resolve order-1 --accept, or --reject, with --reason TEXT)');
    expect(held).toContain('71 payments of 7060.00 BRL in all');
    expect(held).not.toContain('which pays the order');
  });

  it('says of a payment without an id what is known of it', () => {
    const paid = orderAfter(
      orderIn('awaiting_payment'),
      aFact('completed', { paymentId: null, linkMoney: stated('100') }),
    );
    expect(attentionSentence('service_disagrees', paid)).toContain('(the payment without an id of 100.00 BRL)');
  });
});
