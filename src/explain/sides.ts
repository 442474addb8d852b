import { agreement, statedSum, unreadable } from '../domain/comparison.ts';
import { MONEY_CAME, type SaidFact } from '../domain/fact.ts';
import { isReadable, payments } from '../domain/ledger.ts';
import { amountIn, inMoney, isSameMoney } from '../domain/money.ts';
import type { Order } from '../domain/order.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import { FACT_WORDS } from '../vocabulary.ts';
import { matterWords } from './attention_sentences.ts';
import { capturedWords, words } from './glossary.ts';
import { isHeldUnconfirmed, isUnsettled, OF_DIFFERENCE } from './next_steps.ts';
import { whatShopKnows } from './shop_status.ts';

/** What the service says about an order, and where the service, settled and the shop differ. */

/** The newest word of the service: an event, or an answer of its API. `facts`: null if its bytes were dropped. */
export type LastWord = { event: EventSummary; facts: readonly SaidFact[] | null };

/** The event or answer that last said something of the order's payment; undefined if none has. */
export function lastSaid({ events }: Timeline): EventSummary | undefined {
  return events.findLast(({ status, rule }) => status === 'done' && rule !== null && rule !== 'older_reading');
}

/** Each thing that the service said last, in words. */
export function whatServiceSays(order: Order, { event, facts }: LastWord): string[] {
  if (facts === null || facts.length === 0) return [words.rule(event.rule ?? '')];
  const said = facts.map((fact) => {
    const which = fact.paymentId === null ? '' : ` (${fact.paymentId})`;
    const hasMoney = speaksOfMoney(fact) && (fact.quoteMoney ?? fact.linkMoney) !== null;
    return `${FACT_WORDS[fact.kind]}${which}${hasMoney ? `: ${moneyWords(order, fact)}` : ''}`;
  });
  if (!isHeldUnconfirmed(order)) return said;
  return [...said.map((words) => `a webhook says: ${words}`), 'the service did not confirm it when settled asked'];
}

function moneyWords(order: Order, fact: SaidFact): string {
  const { captured } = agreement(order, fact);
  const isBack = fact.kind === 'refunded' || fact.kind === 'disputed';
  const sum = isBack && isReadable(captured) ? statedSum(order, fact) : null;
  return sum === null ? capturedWords({ captured, stated: unreadable(order, fact) }) : amountIn(sum);
}

function speaksOfMoney({ kind }: SaidFact): boolean {
  return MONEY_CAME.has(kind) || kind === 'unclear';
}

/** Where service, settled and shop differ; empty if they agree. */
export function differences(timeline: Timeline, last: LastWord | null, { canTell }: { canTell: boolean }): string[] {
  return [
    ...unsettledWords(timeline),
    ...(last?.facts ? otherPayments(timeline.order, last.facts) : []),
    ...disagreements(timeline),
    ...(canTell ? notTold(timeline) : []),
  ];
}

/** Events that settled has not counted, or not yet. */
function unsettledWords(timeline: Timeline): string[] {
  const waiting = timeline.events.filter(({ status }) => status === 'pending' || status === 'leased');
  const dead = timeline.events.filter((event) => isUnsettled(event, timeline));
  return [
    ...waiting.map(({ key }) => `settled has not settled event ${key} yet.`),
    ...dead.map(({ key }) => `settled could not settle event ${key}, and counted nothing for it.`),
  ];
}

/** Payments of the last word that differ from the ledger or from what the order asks for. */
function otherPayments(order: Order, facts: readonly SaidFact[]): string[] {
  return facts.filter(speaksOfMoney).flatMap((fact) => differenceOf(order, fact) ?? []);
}

/** Whether a person has decided about the money. It then counts as no difference that the order asks for another amount. */
function isDecided({ state, resolution }: Order): boolean {
  return resolution !== null && state !== 'held';
}

function differenceOf(order: Order, fact: SaidFact): string | null {
  const { kind, paymentId } = fact;
  const counted = payments(order);
  const name = paymentId ?? 'the payment';
  const own = paymentId === null ? counted[0] : counted.find(({ id }) => id === paymentId);
  if (kind === 'unclear') {
    if (own !== undefined || isDecided(order)) return null;
    return `The service contradicts itself about ${name}; settled counted nothing for it.`;
  }
  if (own === undefined) {
    const says = isHeldUnconfirmed(order) ? 'A webhook' : 'The service';
    return `${says} says that ${name} is ${kind}, but settled counted nothing for it.`;
  }
  if (own.status !== kind) return `The service says that ${name} is ${kind}, but settled counted it as ${own.status}.`;
  const { captured } = agreement(order, fact);
  if (unreadable(order, fact) !== null) {
    const ours = isReadable(own.captured) ? inMoney(own.captured) : 'no money';
    return `The service names ${moneyWords(order, fact)}, for ${name}; settled counted ${ours} for it.`;
  }
  if (!isSameMoney(own.captured, captured) || own.stated !== null) {
    return `The service says that ${name} is ${moneyWords(order, fact)}, but settled counted ${capturedWords(own)}.`;
  }
  if (kind !== 'completed' || isSameMoney(captured, order.amount) || isDecided(order)) return null;
  return `The service says that ${name} is ${moneyWords(order, fact)}, but the order asks for ${inMoney(order.amount)}.`;
}

function disagreements({ attention }: Timeline): string[] {
  return attention
    .filter(({ kind }) => OF_DIFFERENCE.has(kind))
    .map(({ kind }) => `A person must look: ${matterWords(kind)}.`);
}

/** What the shop was not told, in the words of the answer. */
function notTold(timeline: Timeline): string[] {
  const isOwed = timeline.notices.some(({ status }) => status !== 'done');
  return isOwed ? whatShopKnows(timeline).filter((sentence) => sentence.includes(' not ')) : [];
}
