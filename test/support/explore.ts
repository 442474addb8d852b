import type { Rule } from '../../src/domain/decision.ts';
import type { Order, OrderState } from '../../src/domain/order.ts';
import { API, aFact, anOrder, instruction, NO_API, reading, stated, step } from './orders.ts';

/** A change of an order's state, and every rule that made it. */
export type Move = { from: OrderState; to: OrderState; rules: Set<Rule> };

const EVENTS = ['pending', 'completed', 'unclear', 'refunded', 'disputed', 'expired', 'unpaid'] as const;
const FACTS = [
  ...EVENTS.map((kind) => aFact(kind)),
  ...(['completed', 'refunded', 'disputed'] as const).map((kind) =>
    aFact(kind, { paymentId: 'pay_2', linkMoney: stated('80') }),
  ),
  aFact('completed', { linkMoney: stated('120') }),
  aFact('completed', { linkMoney: null }),
  aFact('completed', { quoteMoney: stated('90') }),
  aFact('completed', { quoteMoney: stated('120') }),
  aFact('completed', { paymentId: null }),
  aFact('refunded', { paymentId: null }),
  aFact('completed', { authority: reading(1) }),
  aFact('completed', { authority: reading(2), paymentId: 'pay_2' }),
  aFact('disabled', { authority: reading(1) }),
  aFact('unconfirmed', { authority: reading(1) }),
  ...(['cancel', 'accept', 'reject'] as const).map(instruction),
];

/** Walks every order that four facts can make. Returns the moves and rules that it met. */
export function explore(): { moves: Map<string, Move>; rules: Set<Rule> } {
  const moves = new Map<string, Move>();
  const rules = new Set<Rule>();
  const seen = new Set<string>();
  const walk = (order: Order, depth: number) => {
    const id = `${depth} ${JSON.stringify({ ...order, version: 0 })}`;
    if (seen.has(id)) return;
    seen.add(id);
    for (const [fact, policy] of FACTS.flatMap((each) => [[each, API] as const, [each, NO_API] as const])) {
      const { made, order: then } = step(order, fact, policy);
      rules.add(made.rule);
      if (then.state !== order.state) {
        const name = `${order.state} → ${then.state}`;
        const move = moves.get(name) ?? { from: order.state, to: then.state, rules: new Set() };
        moves.set(name, { ...move, rules: move.rules.add(made.rule) });
      }
      if (depth > 1) walk(then, depth - 1);
    }
  };
  walk(anOrder(), 4);
  return { moves, rules };
}
