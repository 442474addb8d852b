import type { Reported } from '../domain/comparison.ts';
import type { Decision, Effect } from '../domain/decision.ts';
import {
  completedPayments,
  hasCounted,
  hasNothingLeft,
  inSum,
  PAYMENTS_LISTED_MAX,
  payments,
} from '../domain/ledger.ts';
import { inMoney } from '../domain/money.ts';
import { shownFlags } from '../domain/notice.ts';
import type { Order } from '../domain/order.ts';
import { matterWords } from './attention_sentences.ts';
import { capturedWords, shellWord, words } from './glossary.ts';

/** What a decision of a person would do, in sentences, before it is made. */

/** One sentence for the state, and one for each effect that a person should know. */
export function explainDecision(before: Order, made: Decision, after: Order): string[] {
  if (made.effects.length === 0) return [`Nothing changes: ${words.rule(made.rule)}.`];
  return [
    stateSentence(before, after),
    ...(shownFlags(after).includes('underpaid') ? [`It gets the flag underpaid: ${words.flag('underpaid')}`] : []),
    ...made.effects.flatMap((effect) => effectSentence(effect, before)),
  ];
}

/** What a person should weigh before a decision; null if it only does what it says. */
export function warnOfDecision(before: Order, made: Decision): string | null {
  const pays = made.effects.some((effect) => effect.do === 'settle');
  if (!pays || hasCounted(before)) return null;
  return (
    `settled has counted no money for order ${before.reference}. If you accept, settled still marks the order paid and ` +
    "tells the shop, which may deliver. Accept only if you see the money in the service's panel or at the bank."
  );
}

/** What a person can do about a held order, each in words that end with its command. */
export function decisionAdvice(order: Order): string[] {
  const resolve = `settled orders resolve ${shellWord(order.reference)}`;
  const accept =
    payments(order).length > 0
      ? 'To accept the money and mark the order paid'
      : 'To mark the order paid, although settled counted no payment for it';
  return [
    ...(hasNothingLeft(order) ? [] : [`${accept}: ${resolve} --accept --reason TEXT`]),
    `To cancel the order, and refund any money in the service's panel: ${resolve} --reject --reason TEXT`,
  ];
}

function stateSentence(before: Order, after: Order): string {
  const { reference, state } = after;
  if (before.state === state) return `Order ${reference} stays ${state}.`;
  return `Order ${reference} (${inMoney(before.amount)}) changes from ${before.state} to ${state}.`;
}

function effectSentence(effect: Effect, before: Order): string[] {
  switch (effect.do) {
    case 'end_holds':
      return [`${before.holds.length === 1 ? 'Its hold ends' : `Its ${before.holds.length} holds end`}.`];
    case 'settle':
      return [`settled settles it with what was captured: ${whatWasCaptured(before)}. The ledger does not change.`];
    case 'entry':
      return [`The ledger gets an entry: ${effect.entry.kind} ${inMoney(effect.entry)}.`];
    case 'flag':
      return [`It gets the flag ${effect.flag}: ${words.flag(effect.flag)}`];
    case 'unflag':
      return [`It loses the flag ${effect.flag}.`];
    case 'attention':
      return [`settled raises a matter: ${matterWords(effect.kind)} (${effect.kind}).`];
    case 'end_attention':
      return [`The matter ${effect.kind} ends.`];
    case 'notice':
      return [`settled tells the shop: ${effect.type}.`];
    case 'check':
      return ['settled asks the service about it.'];
    default:
      return [];
  }
}

function whatWasCaptured(order: Order): string {
  const captured = completedPayments(order).map(capturedWords);
  return captured.length === 0 ? 'nothing so far' : captured.join(', ');
}

const GONE = { completed: '', refunded: ' (refunded since)', disputed: ' (disputed since)' } as const;

/** Why an order is held, and what the service reported as paid. `reported`: what a webhook said that it did not confirm. */
export function explainHold(order: Order, reported: Reported | null = null): string {
  const mismatch = mismatchWords(order);
  const reasons = new Set(
    order.holds.map(({ reason }) => (reason === 'amount_mismatch' && mismatch) || words.hold(reason)),
  );
  const counted = payments(order);
  const captured =
    counted.length > PAYMENTS_LISTED_MAX
      ? inSum(counted)
      : counted.map((payment) => `${capturedWords(payment)}${GONE[payment.status]}`).join(' and ');
  const isNamed = counted.length === 0 || (counted.length === 1 && mismatch !== null && reasons.has(mismatch));
  const came = isNamed ? '' : ` Reported as paid: ${captured}.`;
  const said = reported === null ? '' : ` The webhook said that ${capturedWords(reported)} was paid.`;
  const held = `Order ${order.reference} (${inMoney(order.amount)}) is held`;
  return `${held}: ${[...reasons].join('; and ')}.${said}${came} A person must decide.`;
}

/** The amounts of the payment and of the order, if exactly one payment differs, in the order's currency; otherwise null. */
function mismatchWords(order: Order): string | null {
  const { amountMinor, currency } = order.amount;
  const others = payments(order).filter(
    ({ captured, isAssumed }) => !isAssumed && captured.currency === currency && captured.amountMinor !== amountMinor,
  );
  const [other] = others;
  if (other === undefined || others.length > 1) return null;
  const difference = other.captured.amountMinor - amountMinor;
  const which = `${inMoney({ amountMinor: Math.abs(difference), currency })} ${difference < 0 ? 'less' : 'more'}`;
  return `${inMoney(other.captured)} came${GONE[other.status]}, ${which} than it asks for (amount_mismatch)`;
}
