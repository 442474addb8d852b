import { namesOf, OUTCOME_WORDS, PAST_RULE_WORDS, RULE_WORDS } from '../vocabulary.ts';
import { type Agreement, unreadable } from './comparison.ts';
import type { Authority, PaymentFact } from './fact.ts';
import { type Books, isWorth, type LedgerEntry, type NewEntry, nextEntry, UNNAMED } from './ledger.ts';
import type { DecidedAttention, SaidReturn } from './matter.ts';
import type { NoticeType } from './notice.ts';
import {
  assertTransition,
  type Flag,
  type Hold,
  type HoldReason,
  type LearnedBy,
  type Order,
  type OrderState,
} from './order.ts';

/** One thing that a decision does besides changing the order's state. */
export type Effect =
  | { readonly do: 'entry'; readonly entry: LedgerEntry }
  | { readonly do: 'settle'; readonly paymentKey: string | null; readonly learnedBy: LearnedBy }
  | { readonly do: 'adopt_payment_id'; readonly paymentId: string }
  | { readonly do: 'hold'; readonly hold: Hold }
  | { readonly do: 'end_holds'; readonly resolution: 'accept' | 'reject' }
  | { readonly do: 'flag' | 'unflag'; readonly flag: Flag }
  | { readonly do: 'attention'; readonly kind: DecidedAttention; readonly said?: SaidReturn }
  | { readonly do: 'end_attention'; readonly kind: DecidedAttention }
  | { readonly do: 'notice'; readonly type: NoticeType }
  | { readonly do: 'check' };

export type Outcome = keyof typeof OUTCOME_WORDS;
export const OUTCOMES = namesOf(OUTCOME_WORDS);

/** The result of `decide`: what became of the fact, the rule that decided, the new state, and the effects in order. */
export type Decision = {
  readonly outcome: Outcome;
  readonly rule: Rule;
  readonly state: OrderState;
  readonly effects: readonly Effect[];
};

/** A fact and the decision about it; `order` is the order before. */
export type Decided = { readonly order: Order; readonly fact: PaymentFact; readonly made: Decision };

/** The state that an order left, and the rule that changed it. */
export type StateChange = { from: OrderState; rule: Rule };

export type Rule = keyof typeof RULE_WORDS;
export const RULES = namesOf(RULE_WORDS);
export const PAST_RULES = namesOf(PAST_RULE_WORDS);

/** What a decision depends on besides the order and the fact. */
export type SettlementPolicy = {
  /**
   * When settled asks the service about an event's completion before it marks an open order paid. On any other order a
   * completion marks nothing paid, and settled counts it at once. `never`: there is no API to ask, so settled holds
   * doubtful money for a person.
   */
  readonly asks: 'never' | 'in-doubt' | 'always';
};

/** One cell of the settlement table: what a kind of fact means in one state. */
export type Cell = (order: Order, fact: PaymentFact, policy: SettlementPolicy) => Decision;

/** Builds a decision. Without `state` the order keeps its own. */
export function decision(
  order: Order,
  outcome: Outcome,
  rule: Rule,
  { state = order.state, effects = [] }: { state?: OrderState; effects?: readonly Effect[] } = {},
): Decision {
  return { outcome, rule, state, effects };
}

/** The decision to ask the service's API before deciding. */
export function ask(order: Order): Decision {
  return decision(order, 'ask', 'asks_before_deciding', { effects: [{ do: 'check' }] });
}

/** Whether a reading can resolve a doubt. A reading is that answer already, and asking again would never end. */
export function canBeAsked({ authority }: PaymentFact, { asks }: SettlementPolicy): boolean {
  return asks !== 'never' && authority.by === 'event';
}

/** A flag that an order has while the matter of the same name is open. */
type FlaggedMatter = Flag & DecidedAttention;

/** The effects that flag an order and raise the matter. */
export function raise(matter: FlaggedMatter): Effect[] {
  return [
    { do: 'flag', flag: matter },
    { do: 'attention', kind: matter },
  ];
}

/** The effects that remove the flag and end the matter. */
export function clear(matter: FlaggedMatter): Effect[] {
  return [
    { do: 'unflag', flag: matter },
    { do: 'end_attention', kind: matter },
  ];
}

/** Applies a decision. Nothing else changes an order. Throws if the transition table does not allow the move. */
export function apply(order: Order, made: Decision, atMs: number): Order {
  assertTransition(order.state, made.state);
  const after = made.effects.reduce((before, effect) => applyEffect(before, effect, atMs), order);
  // A shop ignores a notice whose version is not above the one before, so each notice of a decision needs its own.
  const versions = changesOrder(order, made) ? Math.max(1, noticesOf(made).length) : 0;
  return { ...after, state: made.state, version: order.version + versions };
}

/** The notices of a decision, in order. */
export function noticesOf({ effects }: Decision): NoticeType[] {
  return effects.flatMap((effect) => (effect.do === 'notice' ? [effect.type] : []));
}

/** How settled learned that the order is paid, if this decision marks it paid for the first time; otherwise null. */
export function paidNow({ effects }: Decision): LearnedBy | null {
  return effects.find((effect) => effect.do === 'settle')?.learnedBy ?? null;
}

const BESIDE_THE_ORDER: ReadonlySet<Effect['do']> = new Set(['attention', 'end_attention', 'notice', 'check']);

/** Whether the decision changes what a shop can see of the order. */
export function changesOrder(order: Order, made: Decision): boolean {
  return made.state !== order.state || made.effects.some((effect) => !BESIDE_THE_ORDER.has(effect.do));
}

function applyEffect(order: Order, effect: Effect, atMs: number): Order {
  switch (effect.do) {
    case 'entry':
      return { ...order, entries: [...order.entries, effect.entry] };
    case 'settle': {
      if (order.settlement !== null) throw new Error(`order ${order.reference} is already settled`);
      const { paymentKey, learnedBy } = effect;
      return { ...order, settlement: { paidAtMs: atMs, paymentKey, learnedBy } };
    }
    case 'adopt_payment_id':
      return { ...order, adoptedPaymentId: effect.paymentId };
    case 'hold':
      return { ...order, holds: [...order.holds, effect.hold] };
    case 'end_holds':
      return { ...order, holds: [], resolution: effect.resolution };
    case 'flag':
      return order.flags.includes(effect.flag) ? order : { ...order, flags: [...order.flags, effect.flag] };
    case 'unflag':
      return { ...order, flags: order.flags.filter((flag) => flag !== effect.flag) };
    default:
      return order;
  }
}

/** The key under which the ledger counts a fact's payment. */
export function paymentKey(fact: PaymentFact): string {
  return fact.paymentId ?? UNNAMED;
}

/** The effect that counts the captured money of a completion. */
export function capture(
  order: Order,
  fact: PaymentFact,
  { captured, customerPaid }: Pick<Agreement, 'captured' | 'customerPaid'>,
  isAssumed: boolean,
): Effect {
  const said = customerPaid === null || isWorth(captured, customerPaid) ? null : customerPaid;
  const of = { paymentKey: paymentKey(fact), kind: 'captured', ...captured } as const;
  return enter(order, { ...of, isAssumed, customerPaid: said, stated: unreadable(order, fact) });
}

/** The effect that adds an entry to the ledger. */
export function enter(books: Books, entry: NewEntry): Effect {
  return { do: 'entry', entry: nextEntry(books, entry) };
}

/** The effects that open a hold. Its id is the number of the order version that it makes, so it never repeats. */
export function openHold(order: Order, reason: HoldReason): Effect[] {
  return [
    { do: 'hold', hold: { id: `hold_${order.version + 1}`, reason } },
    { do: 'notice', type: 'order.held' },
  ];
}

/** The decision to hold an order for a person, after `effects`. */
export function hold(order: Order, rule: Rule, reason: HoldReason, effects: readonly Effect[] = []): Decision {
  return decision(order, 'held', rule, { state: 'held', effects: [...effects, ...openHold(order, reason)] });
}

/** The decision that the service contradicts what was counted, so that a person must look, after `effects`. */
export function disagree(order: Order, effects: readonly Effect[] = []): Decision {
  const attention: Effect = { do: 'attention', kind: 'service_disagrees' };
  return decision(order, 'ignored', 'service_disagrees', { effects: [...effects, attention] });
}

/** The effect of entering `paid` for the first time; empty if the order has been paid before. */
export function settleOnce(order: Order, { by }: Authority, key: string | null): Effect[] {
  if (order.settlement !== null) return [];
  const learnedBy = by === 'event' ? 'webhook' : by === 'reading' ? 'reconciliation' : 'person';
  return [{ do: 'settle', paymentKey: key, learnedBy }];
}
