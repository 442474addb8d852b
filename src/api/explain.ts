import { payments } from '../domain/ledger.ts';
import { formatAmount, type Money } from '../domain/money.ts';
import type { Order, OrderState } from '../domain/order.ts';
import type { Timeline } from '../store/queries.ts';
import { inWords } from '../work/clock.ts';
import { chronicle, type Entry, firstLine, inDeliveries } from './chronicle.ts';
import { words } from './words.ts';

export type Explanation = {
  /** A few sentences for a worried person: whether the order is paid, and why or why not. */
  answer: string;
  /** Everything known of the order, in order of time. */
  entries: Entry[];
  /** What happens by itself from here on, and what a person should do. */
  next: string[];
};

/** Says why an order stands where it stands, in plain words. */
export function explain(timeline: Timeline, nowMs: number): Explanation {
  const { order } = timeline;
  const flags = order.flags.map(words.flag);
  const sentences = [STATES[order.state](order), ...obstacles(timeline), ...flags];
  return { answer: sentences.join(' '), entries: chronicle(timeline), next: next(timeline, nowMs) };
}

const STATES: Readonly<Record<OrderState, (order: Order) => string>> = {
  awaiting_payment: (order) => `${named(order)} is not paid.`,
  payment_pending: ({ reference, amount }) =>
    `Order ${reference} is not paid yet: the customer has begun to pay ${money(amount)}, and the service has not said ` +
    'that the payment is completed.',
  paid: (order) => `${named(order)} is paid. ${paidWords(order)}`,
  held: heldWords,
  expired: (order) =>
    `${named(order)} is not paid: its payment link has expired. A payment that comes all the same still pays it.`,
  cancelled: (order) =>
    `${named(order)} is cancelled${order.resolution === 'reject' ? ': a person rejected its money' : ''}.`,
  refunded: (order) => `${named(order)} was paid, and its payment was refunded. ${paidWords(order)}`,
  disputed: (order) =>
    `${named(order)} was paid, and its payment is disputed: the customer's bank took it back, and may return it. ` +
    paidWords(order),
};

function named({ reference, amount }: Order): string {
  return `Order ${reference} (${money(amount)})`;
}

function paidWords(order: Order): string {
  const { settlement } = order;
  if (settlement === null) return '';
  const counted = payments(order).find(({ key }) => key === settlement.paymentKey);
  const isNamed = counted !== undefined && !order.flags.includes('money_unnamed');
  const sum = isNamed ? money(counted.captured) : 'the payment';
  const learned = {
    webhook: `The service reported ${sum} in an authentic webhook`,
    reconciliation: `The service reported ${sum} when it was asked`,
    person: `A person accepted ${isNamed ? sum : 'its money'}`,
  };
  return `${learned[settlement.learnedBy]}; settled marked it paid at ${iso(settlement.paidAtMs)}.`;
}

function heldWords(order: Order): string {
  const reasons = order.holds.map(({ reason }) => words.hold(reason));
  const captured = payments(order).map((payment) => money(payment.captured));
  const came = captured.length === 0 ? '' : ` Reported as paid: ${captured.join(' and ')}.`;
  return `${named(order)} is held: a person must decide about its money, because ${reasons.join('; and ')}.${came}`;
}

const UNPAID: readonly OrderState[] = ['awaiting_payment', 'payment_pending', 'expired'];

/** What may keep an unpaid order from becoming paid, the nearest cause first. */
function obstacles({ order, events, hints, rejections }: Timeline): string[] {
  if (!UNPAID.includes(order.state)) return [];
  const waiting = events.filter(({ status }) => status === 'pending' || status === 'leased').length;
  const dead = events.filter(({ status }) => status === 'dead').length;
  const stale = hints.reduce((sum, { count }) => sum + count, 0);
  const refused = rejections.reduce((sum, { count }) => sum + count, 0);
  const found: string[] = [];
  if (waiting > 0) found.push(`${inDeliveries(waiting)} came and ${were(waiting)} not settled yet.`);
  if (dead > 0) found.push(`${inDeliveries(dead)} came and could not be settled: a person must look.`);
  if (stale > 0) {
    found.push(
      `${inDeliveries(stale)} came with a stale timestamp, too far from our clock, and ${were(stale)} not believed.`,
    );
  }
  if (refused > 0) {
    const reasons = rejections.map(({ reason }) => `${words.rejection(reason)} (${reason})`);
    found.push(
      `${inDeliveries(refused)} came and ${were(refused)} refused as not authentic: ${reasons.join('; ')}.`,
    );
  }
  if (found.length === 0 && order.state === 'awaiting_payment') {
    found.push(
      events.length === 0
        ? 'The service has reported nothing: no authentic delivery has come so far.'
        : 'No delivery so far says that it is.',
    );
  }
  return found;
}

function were(n: number): string {
  return n === 1 ? 'was' : 'were';
}

function next(timeline: Timeline, nowMs: number): string[] {
  const lines = [
    ...nextOfEvents(timeline, nowMs),
    ...nextOfRefused(timeline),
    ...nextOfDoubt(timeline),
    ...nextOfOrder(timeline.order),
  ];
  return lines.length === 0 ? ['Nothing: the order is done.'] : lines;
}

function nextOfEvents({ events }: Timeline, nowMs: number): string[] {
  return events.flatMap(({ key, status, dueAtMs, attempt, fault }) => {
    const wait = inWords(Math.max(0, dueAtMs - nowMs));
    if (status === 'leased') return [`Event ${key} is being settled now.`];
    if (status === 'pending' && fault === null) return [`Event ${key} is settled by itself, in ${wait}.`];
    if (status === 'pending') {
      return [
        `Event ${key} is tried again by itself in ${wait}; attempt ${attempt} failed: ${firstLine(fault?.message ?? '')}`,
      ];
    }
    if (status !== 'dead') return [];
    return [
      `Event ${key} waits for a person. Look at it: settled events show ${key}. Settle it again: settled events replay ${key}`,
    ];
  });
}

function nextOfRefused({ order, hints, rejections }: Timeline): string[] {
  if (!UNPAID.includes(order.state) || hints.length + rejections.length === 0) return [];
  return [
    'The service sends a refused delivery again after 1 min, 5 min, 15 min, 1 h, 4 h and 12 h.',
    ...(hints.length === 0 ? [] : ["Compare this machine's clock with the right time."]),
    ...(rejections.length === 0
      ? []
      : [
          'Save a refused delivery and find its cause: settled verify. Correct a wrong secret: ' +
            `settled links add ${shellWord(order.reference)} --amount ${formatAmount(order.amount)} --currency ` +
            `${order.amount.currency} --id ${order.link?.id === null || order.link === null ? 'ID' : shellWord(order.link.id)} --secret-file FILE`,
        ]),
  ];
}

function nextOfDoubt({ order, check }: Timeline): string[] {
  if (check === null || check.reason === 'registered') return [];
  // A delivery that was not believed says nothing of an order that a later one has paid.
  const isOver = !UNPAID.includes(order.state);
  if (isOver && (check.reason === 'stale' || check.reason === 'rejected')) return [];
  // A link changes its status when it is paid, and when it expires: that agrees with such an order.
  if (check.reason === 'link_changed' && (isOver || order.state === 'expired')) return [];
  return [
    `Look at the payment in the service's panel (${check.reason}): this version cannot ask the service itself.`,
  ];
}

function nextOfOrder(order: Order): string[] {
  const lines: string[] = [];
  if (order.state === 'held') {
    const resolve = `settled orders resolve ${shellWord(order.reference)}`;
    lines.push(
      `A person decides. Take the money as it came: ${resolve} --accept --reason TEXT`,
      `Or cancel the order, and refund the money: ${resolve} --reject --reason TEXT`,
    );
  }
  if (order.flags.includes('refund_due')) lines.push("Refund the captured money in the service's panel.");
  if (order.flags.includes('overpaid')) {
    lines.push("Decide whether what was paid too much goes back: refund it in the service's panel.");
  }
  if (order.flags.includes('duplicate_payment')) {
    lines.push("Refund the payment that is too many in the service's panel.");
  }
  if (order.state === 'awaiting_payment' || order.state === 'payment_pending') {
    lines.push("When the service's webhook says that the payment is completed, the order is paid at once.");
  }
  return lines;
}

/** A word as a shell takes it for one. */
function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function money(amount: Money): string {
  return `${formatAmount(amount)} ${amount.currency}`;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
