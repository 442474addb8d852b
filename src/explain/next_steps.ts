import { listOwed, owedBack } from '../domain/matter.ts';
import type { ShopFailures } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import type { HeaderNames } from '../paylink/events.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import { waitInWords } from '../work/clock.ts';
import { isNotUnderstood } from './chronicle.ts';
import { decisionAdvice } from './decision.ts';
import { adoptCommand, firstLine, iso, shellWord, words } from './glossary.ts';
import { nextOfRefused } from './refused_deliveries.ts';
import { refundWords, returnAdvice } from './returns.ts';
import { nextOfNotices } from './shop_status.ts';

/** What an explanation needs in addition to the order's own rows. */
export type Means = {
  nowMs: number;
  /** Whether there is an API to ask. */
  canAsk: boolean;
  /** Why settled cannot ask it now, as a sentence; null if it can. */
  notAnswered: string | null;
  /** What else is wrong with settled now, in sentences. */
  unlisted: readonly string[];
  /** Whether the shop has a callback. */
  canTell: boolean;
  /** Failed attempts in a row to send notices, of any order; null if the shop takes notices. */
  shopFailures: ShopFailures | null;
  /** Where settled looks for the signature and the timestamp of a delivery today. */
  headerNames: HeaderNames;
  /** Whether the service, settled and the shop differ. */
  isDifferent: boolean;
};

/** Whether a webhook spoke of a completed payment that the service has not confirmed: not yet, or not in time. */
export function isUnconfirmed(timeline: Timeline): boolean {
  return isInDoubt(timeline) || isHeldUnconfirmed(timeline.order);
}

export function isHeldUnconfirmed({ state, holds }: Order): boolean {
  return state === 'held' && holds.some(({ reason }) => reason === 'unconfirmed');
}

/** Whether settled is asking the service to confirm what a webhook said of a completed payment. */
export function isInDoubt({ order, events, check }: Timeline): boolean {
  return isOpen(order.state) && check?.reason === 'doubtful_money' && events.some(({ outcome }) => outcome === 'ask');
}

/** Whether the link of an unpaid order has ended, by its status or by its time. */
export function linkHasEnded({ order, linkExpiresAtMs }: Timeline, nowMs: number): boolean {
  if (order.state !== 'awaiting_payment' && order.state !== 'payment_pending') return false;
  return order.link?.status === 'EXPIRED' || (linkExpiresAtMs !== null && linkExpiresAtMs <= nowMs);
}

/** What settled does with an order from here on, and what a person should do. */
export function whatFollows(timeline: Timeline, means: Means): string[] {
  const lines = [
    ...nextOfOpening(timeline, means),
    ...nextOfEvents(timeline, means),
    ...nextOfUnread(timeline),
    ...nextOfRefused(timeline, means),
    ...nextOfDifference(timeline),
    ...(means.canAsk ? [] : nextOfDoubt(timeline)),
    ...nextOfOrder(timeline.order, means),
    ...nextOfPayment(timeline, means),
  ];
  if (isOpen(timeline.order.state)) {
    lines.push(...(means.notAnswered === null ? [] : [means.notAnswered]), ...means.unlisted);
  }
  if (means.canAsk) lines.push(...nextOfAsking(timeline, means));
  if (means.canTell) lines.push(...nextOfNotices(timeline, means));
  if (lines.length > 0) return lines;
  return [
    means.isDifferent
      ? 'settled has nothing more to do, but the service, settled and the shop do not agree about this order.'
      : 'Nothing more to do: the order is complete.',
  ];
}

function nextOfOpening({ order, opening }: Timeline, { nowMs, canAsk }: Means): string[] {
  if (opening === null || !isOpen(order.state)) return [];
  const { status, withheld, fault, foreignId: id, dueAtMs } = opening;
  if (withheld !== null) {
    return [
      "Switch the link off in the service's panel, so that it cannot be paid. Then open an order with another reference. " +
        'If the currency is the cause, set SETTLED_CURRENCY to the one that the service uses.',
    ];
  }
  if (status === 'taken') {
    return [
      `Look at ${id === null ? 'the link with this reference' : `link ${id}`} in the service's panel. If it is not for ` +
        `this order, open an order with another reference. If it is, give it to the order: ${adoptCommand(order.reference, id)}`,
    ];
  }
  if (status === 'done') return [];
  if (!canAsk) return [`settled cannot open the link: ${NO_API}.`];
  if (status === 'leased') return ['settled is opening the link now.'];
  return [`settled ${fault === null ? 'opens the link' : 'tries again to open the link'} ${when(dueAtMs, nowMs)}.`];
}

function nextOfEvents(timeline: Timeline, { nowMs }: Means): string[] {
  const waiting = timeline.events.flatMap(({ key, status, dueAtMs, attempt, fault, reading }) => {
    const named = nameOf({ key, reading });
    const wait = waitInWords(dueAtMs - nowMs);
    if (status === 'leased') return [`settled is settling ${named} now.`];
    if (status !== 'pending') return [];
    if (fault === null) return [`settled settles ${named} in ${wait}.`];
    return [`settled tries ${named} again in ${wait}. Attempt ${attempt} failed: ${firstLine(fault.message)}`];
  });
  return [...waiting, ...nextOfDead(timeline)];
}

function nameOf({ key, reading }: Pick<EventSummary, 'key' | 'reading'>): string {
  return reading === null ? `event ${key}` : `the service's answer (event ${key})`;
}

/**
 * Whether a row could not be settled and still waits for a person. Its matter ends when a reading has said all that the row
 * could, or when a person has seen to it.
 */
export function isUnsettled({ key, status, fault }: EventSummary, { attention }: Pick<Timeline, 'attention'>): boolean {
  if (status !== 'dead') return false;
  const isUnread = fault?.code === 'unreadable_event';
  return attention.some(
    ({ kind, subject }) => subject === String(key) || (isUnread && kind === 'event_not_understood'),
  );
}

/** Events that a line of advice names. */
const KEYS_NAMED_MAX = 10;

/** What a person does about all rows that could not be settled. Settling again does not help those that are not JSON. */
function nextOfDead(timeline: Timeline): string[] {
  const dead = timeline.events.filter((event) => isUnsettled(event, timeline));
  const last = dead.at(-1);
  if (last === undefined) return [];
  const [found, look] =
    dead.length === 1
      ? [`settled could not settle ${nameOf(last)}.`, 'Look at it']
      : [`settled could not settle ${dead.length} events.`, 'Look at the last one'];
  const show = `${found} ${look}: settled events show ${last.key}`;
  const all = dead.filter(({ fault }) => fault?.code !== 'unreadable_event');
  const readable = all.slice(-KEYS_NAMED_MAX);
  if (readable.length === 0) return [show];
  const which = all.length > KEYS_NAMED_MAX ? `, first the last ${KEYS_NAMED_MAX} of ${all.length}` : '';
  const again = dead.length === 1 ? 'settle it again' : `settle again those that could be read${which}`;
  return [show, `When the cause is gone, ${again}: settled events replay ${readable.map(({ key }) => key).join(' ')}`];
}

/** What a person does about an event that settled does not understand. */
function nextOfUnread({ events, attention }: Timeline): string[] {
  const last = events.findLast(isNotUnderstood);
  if (last === undefined || !attention.some(({ kind }) => kind === 'event_not_understood')) return [];
  return [
    `settled does not understand event ${last.key}. Look at it: settled events show ${last.key}`,
    `If a newer version of settled understands it, settle it again: settled events replay ${last.key}`,
  ];
}

/** Matters that say that service and settled differ. */
export const OF_DIFFERENCE: ReadonlySet<string> = new Set(['service_disagrees', 'status_unclear', 'amount_mismatch']);

/** What a person does about a payment that service and settled see differently: the order's state does not show it. */
function nextOfDifference({ attention }: Timeline): string[] {
  return attention
    .filter(({ kind }) => OF_DIFFERENCE.has(kind))
    .map(({ key, params }) => {
      const end = `settled attention end ${key} --reason TEXT`;
      if ('said' in params) return returnAdvice(end);
      return `Look at the payment in the service's panel, and act on what it shows. Then end this matter: ${end}`;
    });
}

const NO_API = 'no API is configured (SETTLED_API_URL, SETTLED_API_KEY)';

/** Reasons to ask that may hide a payment: a delivery that settled could not read. */
const NEEDS_AN_ANSWER: ReadonlySet<string> = new Set(['not_understood', 'unreadable']);

/** What a person must look at because settled has no API to ask. */
function nextOfDoubt({ order, check, attention }: Timeline): string[] {
  if (check === null || check.reason === 'registered') return [];
  // A delivery that settled did not believe says nothing about an order that a later one paid.
  const isOver = !isOpen(order.state);
  if (isOver && (check.reason === 'stale' || check.reason === 'rejected')) return [];
  // A person ended the matter of what was not understood, or of doubtful money on a paid order.
  if (attention.length === 0 && (NEEDS_AN_ANSWER.has(check.reason) || isOver)) return [];
  // A link changes its status when it is paid and when it expires, so that agrees with such an order.
  if (check.reason === 'link_changed' && (isOver || order.state === 'expired')) return [];
  const look = `Look at the payment in the service's panel (${check.reason}). settled cannot ask the service: ${NO_API}.`;
  if (isOver || !NEEDS_AN_ANSWER.has(check.reason)) return [look];
  return [
    `${look} You cannot mark the order paid by hand. If the panel shows a payment, set both variables, restart settled, ` +
      `and let it ask: settled orders check ${shellWord(order.reference)}`,
  ];
}

function nextOfOrder(order: Order, { canAsk }: Means): string[] {
  const lines: string[] = [];
  // While an order is held, a person decides first.
  if (order.state === 'held') lines.push(...nextOfHeld(order, canAsk));
  else lines.push(...nextOfDebts(order));
  if (order.state === 'disputed') {
    lines.push(
      `The payer's bank decides about the dispute. When it is won, settled marks the order paid again, once ${
        canAsk ? 'the service says so' : `it can ask the service: ${NO_API}`
      }.`,
    );
  }
  if (order.flags.includes('overpaid')) {
    lines.push(
      "Look at the payment in the service's panel before you refund anything. What settled counted above the order's " +
        'amount may be instalment interest, which you do not refund.',
    );
  }
  return lines;
}

/** The payments to refund, each by its id. */
function nextOfDebts(order: Order): string[] {
  if (!order.flags.includes('refund_due') && !order.flags.includes('duplicate_payment')) return [];
  return [refundWords(listOwed(order, owedBack(order).owed))];
}

/** What happens when the awaited payment arrives, or does not. */
function nextOfPayment(timeline: Timeline, { nowMs, canAsk }: Means): string[] {
  const { order, opening } = timeline;
  const canBePaid = opening === null || (opening.status === 'done' && opening.withheld === null);
  if (!canBePaid || isInDoubt(timeline)) return [];
  if (order.state !== 'awaiting_payment' && order.state !== 'payment_pending') return [];
  const unheard = canAsk ? '' : ` If no webhook comes, settled does not learn of a payment: ${NO_API}.`;
  if (!linkHasEnded(timeline, nowMs)) {
    // The last webhook may have said so, without settled understanding it.
    if (!canAsk && timeline.attention.some(({ kind }) => kind === 'event_not_understood')) return [];
    return [`When the service reports a completed payment, settled marks the order paid at once.${unheard}`];
  }
  if (order.state === 'awaiting_payment') {
    return [
      `If the service says that the link was not paid, the order expires. If it was paid, the order is paid.${unheard}`,
    ];
  }
  return [
    `When the service says that the link has expired, the order expires, and settled tells the shop. If the customer ` +
      `still completes the payment, the order is paid.${unheard}`,
  ];
}

function nextOfHeld(order: Order, canAsk: boolean): string[] {
  const { reference } = order;
  const check = canAsk ? `, or ask the service again: settled orders check ${shellWord(reference)}` : '.';
  return [
    ...(isHeldUnconfirmed(order)
      ? [`The service did not confirm the payment. Look for it in the service's panel${check}`]
      : []),
    ...decisionAdvice(order),
  ];
}

/** When settled asks the service next: for a reason, or by the schedule. */
function nextOfAsking({ order, check, nextCheckAtMs, checkFailures, opening }: Timeline, { nowMs }: Means): string[] {
  const isUnpaid = isOpen(order.state);
  if (isUnpaid && opening !== null && opening.status !== 'done') return [];
  const now = isUnpaid ? ` To ask now: settled orders check ${shellWord(order.reference)}` : '';
  const asks = `settled asks the service${checkFailures === 0 ? '' : ' again'}`;
  if (check !== null) {
    return [`${asks} ${when(check.dueAtMs, nowMs)}, ${words.asked(check.reason)} (${check.reason}).${now}`];
  }
  if (nextCheckAtMs !== null) {
    const why =
      order.state === 'cancelled' && canStillBePaid(order, nowMs)
        ? ': the customer might still pay'
        : isUnpaid || order.entries.length === 0
          ? ''
          : ': the service may send no webhook for refunds, disputes and second payments';
    return [`${asks} ${when(nextCheckAtMs, nowMs)}, on schedule${why}.${now}`];
  }
  return isUnpaid ? [`settled no longer asks the service on schedule.${now}`] : [];
}

/** Whether the service would still take a payment at the link of an order that waits for none. */
function canStillBePaid({ link, entries }: Order, nowMs: number): boolean {
  if (entries.length > 0 || link?.status === 'INACTIVE' || link?.status === 'EXPIRED') return false;
  return (link?.expiresAtMs ?? nowMs) >= nowMs;
}

function when(dueAtMs: number, nowMs: number): string {
  if (dueAtMs <= nowMs) return 'as soon as the API budget allows';
  return `at ${iso(dueAtMs)}, in ${waitInWords(dueAtMs - nowMs)}`;
}
