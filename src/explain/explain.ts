import { listed, payments, type Stated } from '../domain/ledger.ts';
import { listPayments } from '../domain/matter.ts';
import { amountIn, inDecimal, inMoney, isSameMoney } from '../domain/money.ts';
import { shownFlags } from '../domain/notice.ts';
import { isOpen, type Order, type OrderState } from '../domain/order.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import { bringId, explainAttention } from './attention_sentences.ts';
import { chronicle, type Entry, isNotUnderstood } from './chronicle.ts';
import { explainHold } from './decision.ts';
import { capturedWords, inDeliveries, inPanel, inTimes, iso, sentence, total, words } from './glossary.ts';
import {
  isHeldUnconfirmed,
  isInDoubt,
  isUnconfirmed,
  isUnsettled,
  linkHasEnded,
  type Means,
  whatFollows,
} from './next_steps.ts';
import { whoBuys, whoPaid } from './payers.ts';
import { explainRefusedDeliveries, isAdopted } from './refused_deliveries.ts';
import { returnWords } from './returns.ts';
import { whatShopKnows } from './shop_status.ts';

export type Explanation = {
  /** A few sentences for a worried person: whether the order is paid, and why or why not. */
  answer: string;
  entries: Entry[];
  /** What settled does from here on, and what a person should do. */
  next: string[];
};

/** Explains an order's state: how it got there and what happens next. */
export function explain(timeline: Timeline, means: Means): Explanation {
  const { order } = timeline;
  const flags = shownFlags(order).map(words.flag);
  const said = [...otherSums(order), ...whoPaid(order), ...whoBuys(order)];
  const told = means.canTell ? whatShopKnows(timeline) : [];
  const why = [...doubt(timeline), ...ended(timeline, means), ...obstacles(timeline, means)];
  return {
    answer: [firstOf(timeline), ...said, ...why, ...flags, ...told].join(' '),
    entries: chronicle(timeline, means),
    next: whatFollows(timeline, means),
  };
}

/** The order's state, and for a paid order whether the service's last word about it is unclear. */
function firstOf({ order, attention }: Timeline): string {
  const first = STATES[order.state](order);
  if (order.state !== 'paid' || !attention.some(({ kind }) => kind === 'status_unclear')) return first;
  const doubt = 'but what the service said later is unclear: look at the payment in its panel (status_unclear)';
  return `${named(order)} is paid, ${doubt}. ${paidWords(order)}`;
}

const STATES: Readonly<Record<OrderState, (order: Order) => string>> = {
  awaiting_payment: (order) => `${named(order)} is not paid.`,
  payment_pending: ({ reference, amount }) =>
    `Order ${reference} is not paid yet. The customer has begun to pay ${inMoney(amount)}, but the service has not said ` +
    'that the payment is completed.',
  paid: (order) => `${named(order)} is paid. ${paidWords(order)}`,
  held: explainHold,
  expired: (order) =>
    `${named(order)} is not paid: its payment link has expired. A payment that still arrives will pay it.`,
  cancelled: (order) =>
    `${named(order)} is cancelled${order.resolution === 'reject' ? `: a person rejected its money (${counted(order)})` : ''}.`,
  refunded: (order) => `${named(order)} was paid, but its payment was refunded. ${paidWords(order)}`,
  disputed: (order) =>
    `${named(order)} was paid, but its payment is disputed: the customer's bank took it back, and may return it. ` +
    paidWords(order),
};

function counted(order: Order): string {
  return inPanel(listPayments(payments(order)));
}

function named({ reference, amount }: Order): string {
  return `Order ${reference} (${inMoney(amount)})`;
}

function paidWords(order: Order): string {
  const { settlement } = order;
  if (settlement === null) return '';
  const counted = payments(order).find(({ key }) => key === settlement.paymentKey);
  const isNamed = counted !== undefined && !order.flags.includes('money_unnamed');
  const sum = isNamed ? capturedWords(counted) : 'the payment';
  const paid = counted?.customerPaid ?? null;
  const beside =
    paid === null ? '' : ` The service says that the customer paid ${amountIn(paid)}: ${meaning(order, paid)}.`;
  const learned = {
    webhook: `The service reported ${sum} in an authentic webhook`,
    reconciliation: `The service reported ${sum} when settled asked`,
    person: `A person accepted ${isNamed ? sum : 'its money'}`,
  };
  return `${learned[settlement.learnedBy]}; settled marked it paid at ${iso(settlement.paidAtMs)}.${beside}`;
}

/** The sums that refunds and disputes name if they are not what was counted: no status says how much went back. */
function otherSums(order: Order): string[] {
  return listed(payments(order)).flatMap(({ id: paymentId, status: kind, captured: counted, stated, isBeside }) => {
    const sum = stated ?? (isBeside ? inDecimal(counted) : null);
    return kind === 'completed' || sum === null ? [] : [returnWords({ kind, paymentId, ...sum, counted, isBeside })];
  });
}

/** Why the customer paid something else than settled counted. The difference is not owed back. */
function meaning({ amount }: Order, paid: Stated): string {
  return paid.currency === amount.currency
    ? 'the rest is instalment interest'
    : "the service converts that to the link's amount";
}

/** What a webhook says that the service has not confirmed; also after a person decided without it. */
function doubt(timeline: Timeline): string[] {
  const { order, reported } = timeline;
  if (!isUnconfirmed(timeline)) return decidedInDoubt(timeline);
  const { amount } = order;
  const asked = isHeldUnconfirmed(order)
    ? 'settled has not counted it.'
    : 'settled asks the service before it counts anything.';
  if (reported === null) return [`A webhook says that the payment is completed. ${asked}`];
  const isEqual = isSameMoney(reported.captured, amount);
  const of = isEqual ? '' : `, but the order asks for ${inMoney(amount)}`;
  return [`A webhook says that ${capturedWords(reported)} was paid${of}. ${asked}`];
}

/** What was reported for an order about which a person decided although settled counted no payment. */
function decidedInDoubt({ order, reported }: Timeline): string[] {
  if (reported === null || order.resolution === null || payments(order).length > 0) return [];
  const back = order.resolution === 'reject' ? ' If it arrived, refund it.' : '';
  return [
    `A webhook had said that ${capturedWords(reported)} was paid. The service did not confirm it, and settled did not ` +
      `count it.${back}`,
  ];
}

/** Says that the link has ended. The state `expired` says it already. */
function ended(timeline: Timeline, { nowMs }: Means): string[] {
  const { order, linkExpiresAtMs } = timeline;
  if (!linkHasEnded(timeline, nowMs)) return [];
  const at = linkExpiresAtMs === null ? '' : ` at ${iso(linkExpiresAtMs)}`;
  const begun = order.state === 'payment_pending' ? ', and the payment that was begun may never be completed' : '';
  return [`Its payment link has expired${at}: no new payment can begin there${begun}.`];
}

/** What may keep an unpaid order from becoming paid, the nearest cause first. */
function obstacles(timeline: Timeline, means: Means): string[] {
  const { order, events, hints, rejections } = timeline;
  if (!isOpen(order.state)) {
    return [...notSettled(timeline, means), ...(waitsForAPerson(timeline) ? notUnderstood(timeline) : [])];
  }
  const deliveries = events.filter(({ reading }) => reading === null);
  const waiting = deliveries.filter(({ status }) => status === 'pending' || status === 'leased').length;
  const dead = deliveries.filter((event) => isUnsettled(event, timeline)).length;
  const stale = total(hints);
  const found = ofOpening(timeline);
  if (waiting > 0) found.push(`${inDeliveries(waiting)} came, but settled has not settled ${them(waiting)} yet.`);
  if (dead > 0) found.push(`${inDeliveries(dead)} came that settled could not settle: a person must look.`);
  found.push(...notUnderstood(timeline));
  if (stale > 0) {
    found.push(
      `${inDeliveries(stale)} came with a stale timestamp, too far from settled's clock. settled did not settle ${them(stale)}.`,
    );
  }
  if (rejections.length > 0) found.push(...explainRefusedDeliveries(timeline, means));
  found.push(...ofSecret(timeline, deliveries.length + stale > 0));
  if (found.length === 0 && order.state === 'awaiting_payment' && !isInDoubt(timeline)) {
    found.push(
      deliveries.length === 0
        ? 'The service has reported nothing: settled has received no authentic delivery so far.'
        : `No delivery so far says that it is. settled received: ${whatCame(deliveries)}.`,
    );
  }
  return [...found, ...ofReadings(timeline)];
}

/** What could not be settled for an order that has its money, until a person has seen to it. */
function notSettled({ attention }: Timeline, { canAsk }: Means): string[] {
  const matters = attention.filter(({ kind }) => kind === 'event_dead' || kind === 'link_mismatch');
  const last = matters.at(-1);
  if (last === undefined) return [];
  const about = sentence(explainAttention(last, { key: last.key, canAsk }));
  return [matters.length === 1 ? about : `settled could not settle ${matters.length} events. The last one: ${about}`];
}

function them(count: number): string {
  return count === 1 ? 'it' : 'them';
}

function waitsForAPerson({ attention }: Timeline): boolean {
  return attention.some(({ kind }) => kind === 'event_not_understood');
}

/** The deliveries that settled does not understand, with the reason for the last one. */
function notUnderstood({ order, events }: Timeline): string[] {
  const unread = events.filter(isNotUnderstood);
  const last = unread.at(-1);
  if (last === undefined) return [];
  const { length } = unread;
  const which = length === 1 ? 'The reason' : 'The reason for the last one';
  const other = `${length === 1 ? 'It' : 'They'} may have reported a payment that settled has not counted.`;
  return [
    `${inDeliveries(length)} came that settled does not understand, so it counted nothing for ${them(length)}. ` +
      `${which}: ${sentence(last.fault?.message ?? '')}`,
    ...(isOpen(order.state) ? [] : [other]),
  ];
}

/** Types that the answer names; the entries show every delivery. */
const TYPES_MAX = 5;

/** The types of the deliveries, each with how often it came. */
function whatCame(deliveries: readonly EventSummary[]): string {
  const counts = new Map<string, number>();
  for (const { type } of deliveries) {
    const name = type ?? 'an event without a type';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const named = [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${inTimes(count)})`));
  return [...named.slice(0, TYPES_MAX), ...(named.length > TYPES_MAX ? ['others'] : [])].join(', ');
}

/** Why the customer has no link to pay at. */
function ofOpening({ order, opening }: Timeline): string[] {
  if (opening === null) return [];
  const { status, withheld, fault, needsId } = opening;
  if (withheld !== null)
    return [`settled does not show its payment link to the shop: ${sentence(withheld).replace(/^The /, 'the ')}`];
  if (status === 'done') return [];
  if (status === 'taken') {
    return [`settled did not open its payment link: ${sentence(fault?.message ?? 'the reference is taken')}`];
  }
  if (fault === null) return ['settled is opening its payment link.'];
  const found = `Its payment link is not open yet (${fault.code}): ${sentence(fault.message)}`;
  return needsId ? [found, bringId(order.reference)] : [found];
}

/** Says that the service may sign with a secret that settled never saw, unless a delivery has verified. */
function ofSecret(timeline: Timeline, isVerified: boolean): string[] {
  const { opening } = timeline;
  if (opening?.secretUnseen !== true || isVerified) return [];
  if (isAdopted(timeline)) {
    return [
      'A person gave this link to the order. Unless settled created it, settled does not know the secret that the service ' +
        'signs its webhooks with: settled rejects them, and learns of the payment by asking.',
    ];
  }
  return [
    "settled did not receive the service's answer when it created the link. If the answer named another signing secret, and " +
      'the service signs with it, settled rejects the webhooks and learns of the payment by asking.',
  ];
}

/** What the service said when settled last asked. */
function ofReadings(timeline: Timeline): string[] {
  const { events, checkFailures } = timeline;
  const read = events.filter(
    ({ reading, status, rule }) => reading !== null && status === 'done' && rule !== 'older_reading',
  );
  const last = read.toSorted((one, other) => one.receivedAtMs - other.receivedAtMs).at(-1);
  const dead = timeline.events.some((event) => event.reading !== null && isUnsettled(event, timeline));
  return [
    ...(dead ? ['settled could not settle an answer of the service: a person must look.'] : []),
    ...(last === undefined
      ? []
      : [`settled last asked the service at ${iso(last.receivedAtMs)}; the service knew of no completed payment.`]),
    ...(checkFailures === 0
      ? []
      : [`Asking the service ${last === undefined ? '' : 'again '}has failed ${inTimes(checkFailures)} so far.`]),
  ];
}
