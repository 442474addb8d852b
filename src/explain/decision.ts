import type { Decision, Effect } from '../domain/decision.ts';
import { completedPayments, payments } from '../domain/ledger.ts';
import { shownFlags } from '../domain/notice.ts';
import type { Order } from '../domain/order.ts';
import { inMoney, inNumber, words } from './glossary.ts';

/** What a decision of a person would do, in sentences, before it is made. */

/** One sentence for the state, and one for each effect that a person should know. */
export function explainDecision(before: Order, made: Decision, after: Order): string[] {
  if (made.effects.length === 0) return [`Nothing changes: ${words.rule(made.rule)}.`];
  return [
    stateSentence(before, after),
    ...(shownFlags(after).includes('underpaid') ? [`It is flagged underpaid: ${words.flag('underpaid')}`] : []),
    ...made.effects.flatMap((effect) => effectSentence(effect, before)),
  ];
}

/** What a person should weigh before a decision; null if it only does what it says. */
export function warnOfDecision(before: Order, made: Decision): string | null {
  const pays = made.effects.some((effect) => effect.do === 'settle');
  if (!pays || completedPayments(before).length > 0) return null;
  return (
    `settled has counted no money for order ${before.reference}. If you accept, the order is marked paid all the same, ` +
    "and the shop is told so and may deliver. Accept only if you see the money in the service's panel or at the bank."
  );
}

/** What each decision about a held order means, in words that a command follows. */
export function decisionWords(order: Order): { accept: string; reject: string } {
  const accept =
    payments(order).length > 0
      ? 'Take the money as it came'
      : 'Mark the order paid, although no payment of it was counted';
  return { accept, reject: "cancel the order, and refund its money in the service's panel" };
}

function stateSentence(before: Order, after: Order): string {
  const { reference, state } = after;
  if (before.state === state) return `Order ${reference} stays ${state}.`;
  return `Order ${reference} (${inMoney(before.amount)}) becomes ${state}; it is ${before.state} now.`;
}

function effectSentence(effect: Effect, before: Order): string[] {
  switch (effect.do) {
    case 'end_holds':
      return [`${inNumber(before.holds.length, 'hold')} of it ${before.holds.length === 1 ? 'ends' : 'end'}.`];
    case 'settle':
      return [`It is settled with what was captured: ${capturedWords(before)}. The ledger itself does not change.`];
    case 'entry':
      return [`The ledger gets an entry: ${effect.entry.kind} ${inMoney(effect.entry)}.`];
    case 'flag':
      return [`It is flagged ${effect.flag}: ${words.flag(effect.flag)}`];
    case 'unflag':
      return [`It loses the flag ${effect.flag}.`];
    case 'attention':
      return [`A matter for a person is raised: ${words.attention(effect.kind)} (${effect.kind}).`];
    case 'end_attention':
      return [`The matter ${effect.kind} ends.`];
    case 'notice':
      return [`The shop is told: ${effect.type}.`];
    case 'check':
      return ['settled asks the service about it.'];
    default:
      return [];
  }
}

function capturedWords(order: Order): string {
  const captured = completedPayments(order).map((payment) => inMoney(payment.captured));
  return captured.length === 0 ? 'nothing was captured so far' : captured.join(', ');
}
