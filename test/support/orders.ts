import { apply, type Decision, type Effect, type Rule, type SettlementPolicy } from '../../src/domain/decision.ts';
import type { Authority, FactKind, PaymentFact } from '../../src/domain/fact.ts';
import type { LedgerEntry } from '../../src/domain/ledger.ts';
import type { Money, StatedMoney } from '../../src/domain/money.ts';
import type { Order, OrderState } from '../../src/domain/order.ts';
import { decide } from '../../src/domain/settlement.ts';

/** Policies: settled can ask the service's API, cannot, or asks about each completion. */
export const API: SettlementPolicy = { asks: 'in-doubt' };
export const NO_API: SettlementPolicy = { asks: 'never' };
export const ALWAYS: SettlementPolicy = { asks: 'always' };

export const EVENT: Authority = { by: 'event' };
export const PERSON: Authority = { by: 'person' };
export function reading(number: number): Authority {
  return { by: 'reading', number };
}

const REFERENCE = 'order-1';

/** An unpaid order for 100.00 BRL. */
export function anOrder(over: Partial<Order> = {}): Order {
  return {
    reference: REFERENCE,
    amount: { amountMinor: 10_000, currency: 'BRL' },
    state: 'awaiting_payment',
    flags: [],
    version: 1,
    createdAtMs: 1_700_000_000_000,
    settlement: null,
    entries: [],
    adoptedPaymentId: null,
    holds: [],
    resolution: null,
    lastReading: null,
    link: null,
    title: null,
    metadata: null,
    customer: null,
    details: [],
    ...over,
  };
}

export function stated(amount: string, currency: string | null = 'BRL'): StatedMoney {
  return { amount, currency };
}

/** An event's fact about the payment `pay_1`; default 100.00 BRL. */
export function aFact(kind: FactKind, over: Partial<PaymentFact> = {}): PaymentFact {
  return {
    kind,
    authority: EVENT,
    paymentId: 'pay_1',
    linkMoney: stated('100.00'),
    quoteMoney: null,
    reference: REFERENCE,
    ...over,
  };
}

/** The same about another payment. */
export function second(kind: FactKind = 'completed', over: Partial<PaymentFact> = {}): PaymentFact {
  return aFact(kind, { paymentId: 'pay_2', ...over });
}

/** The same as an answer of the service. */
export function read(kind: FactKind, over: Partial<PaymentFact> = {}): PaymentFact {
  return aFact(kind, { authority: reading(2), ...over });
}

/** What the document of a payment has in places of what the service did not say. */
export const UNSAID = {
  stated: null,
  method: null,
  installments: null,
  totalBRL: null,
  customer: null,
  createdAt: null,
  completedAt: null,
  availableAt: null,
} as const;

/** A person's instruction. */
export function instruction(kind: 'cancel' | 'accept' | 'reject'): PaymentFact {
  return { ...aFact(kind), authority: PERSON, paymentId: null, linkMoney: null, reference: null };
}

/** A first payment of less than the order asks. */
const TOO_LITTLE = aFact('completed', { linkMoney: stated('60.00') });

export type Step = { made: Decision; order: Order };

/** Decides one fact and applies the decision like a store, which raises the reading's number last. */
export function step(order: Order, fact: PaymentFact, policy = NO_API, atMs = 1_700_000_001_000): Step {
  const made = decide(order, fact, policy);
  const after = apply(order, made, atMs);
  if (fact.authority.by !== 'reading') return { made, order: after };
  return { made, order: { ...after, lastReading: Math.max(order.lastReading ?? 0, fact.authority.number) } };
}

/** The order after these facts, without an API. */
export function orderAfter(order: Order, ...facts: PaymentFact[]): Order {
  return facts.reduce((before, fact) => step(before, fact).order, order);
}

/** An order that reached a state by the shortest real way. */
export function orderIn(state: OrderState): Order {
  const ways: Record<OrderState, PaymentFact[]> = {
    awaiting_payment: [],
    payment_pending: [aFact('pending')],
    paid: [aFact('completed')],
    held: [TOO_LITTLE],
    expired: [aFact('expired')],
    cancelled: [instruction('cancel')],
    refunded: [aFact('completed'), aFact('refunded')],
    disputed: [aFact('completed'), aFact('disputed')],
  };
  return orderAfter(anOrder(), ...ways[state]);
}

/** The flags, attentions and notices that a decision raises, in words: `flag late`, `notice order.paid`, … */
export function deeds({ effects }: Decision): string[] {
  return effects.map(deed);
}

function deed(effect: Effect): string {
  switch (effect.do) {
    case 'entry': {
      const { kind, amountMinor, paymentKey } = effect.entry;
      return `${kind} ${amountMinor} of ${paymentKey}`;
    }
    case 'settle':
      return `settle by ${effect.paymentKey}`;
    case 'adopt_payment_id':
      return `adopt ${effect.paymentId}`;
    case 'hold':
      return `hold ${effect.hold.reason}`;
    case 'end_holds':
      return `end holds: ${effect.resolution}`;
    case 'flag':
    case 'unflag':
      return `${effect.do} ${effect.flag}`;
    case 'attention':
    case 'end_attention':
      return `${effect.do} ${effect.kind}`;
    case 'notice':
      return `notice ${effect.type}`;
    case 'check':
      return 'check';
  }
}

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
  aFact('completed', { authority: reading(2), quoteMoney: stated('90') }),
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

/** The order's balance per currency. */
export function balances(entries: readonly LedgerEntry[]): Money[] {
  const sums = new Map<string, number>();
  for (const entry of entries) sums.set(entry.currency, (sums.get(entry.currency) ?? 0) + entry.amountMinor);
  return [...sums].map(([currency, amountMinor]) => ({ amountMinor, currency }));
}
