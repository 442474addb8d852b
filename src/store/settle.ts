import { END_MATTER } from '../domain/advice.ts';
import type { CheckReason } from '../domain/check_queue.ts';
import { type Decision, learnedBy, type Outcome } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import type { AttentionKind, LearnedBy, Order } from '../domain/order.ts';
import type { Cause } from './effects.ts';
import type { CheckRequest } from './matters.ts';
import type { LoadedOrder } from './orders.ts';
import type { FaultNote, SettleJob, SettleResult, StateChange } from './store.ts';

/** A claimed row under settlement. */
export type Lease = {
  linkKey: number;
  orderKey: number;
  linkId: string | null;
  outcomeBefore: Outcome | null;
  reading: number | null;
  /** Of a reading: why the service was asked. */
  type: string | null;
  receivedAtMs: number;
  /** The fault that was noted when the row was worked at before. */
  faultBefore: string | null;
};

/** A reading under settlement: its number, and why the service was asked. */
export type AnsweredReading = { linkKey: number; reading: number; type: string };

export function isReading<L extends Lease>(lease: L): lease is L & AnsweredReading {
  return lease.reading !== null;
}

/** What the facts of a row did to its order. */
export type Applied = {
  loaded: LoadedOrder;
  last: Decision | null;
  /** The state before them, and the rule that changed it last; null while it is as it was. */
  change: StateChange | null;
  notices: number;
  /** Where a fact made the order paid. */
  learnedBy: LearnedBy | null;
  /** The matters for a person that were raised. */
  raised: readonly AttentionKind[];
};

/** Every id that a row names its link by. */
export function namedLinkIds({ link, linkIds }: SettleJob): readonly string[] {
  return link === null ? linkIds : [link.id, ...linkIds];
}

/** Whether a row names the link that it came for: `unbound` where the link has no id so far, and may get this one. */
export function namesLink(
  { linkId }: Pick<Lease, 'linkId'>,
  linkIds: readonly string[],
): 'same' | 'other' | { unbound: string } {
  const [named] = linkIds;
  if (named === undefined) return 'same';
  if (!linkIds.every((other) => other === (linkId ?? named))) return 'other';
  return linkId === null ? { unbound: named } : 'same';
}

export function mismatch(linkIds: readonly string[]): FaultNote {
  const message = `It is signed for this order's link but names link ${linkIds.join(', ')}.`;
  return { code: 'link_mismatch', message };
}

export function causeOf({ reading }: Lease, eventKey: number): Cause {
  return reading === null ? { kind: 'event', id: String(eventKey) } : { kind: 'reading', id: String(reading) };
}

/** A fact as the row says it: of a reading, with the authority of its number. */
export function factOf({ reading }: Lease, said: PaymentFact): PaymentFact {
  return reading === null ? said : { ...said, authority: { by: 'reading', number: reading } };
}

export function nothingApplied(loaded: LoadedOrder, { notUnderstood }: SettleJob): Applied {
  const raised: AttentionKind[] = notUnderstood === null ? [] : ['event_not_understood'];
  return { loaded, last: null, change: null, notices: 0, learnedBy: null, raised };
}

/** What was done before, and what one more decision does; `order`: as that leaves it. */
export function alsoApplied(before: Applied, made: Decision, order: Order): Applied {
  return {
    loaded: { ...before.loaded, order },
    last: made,
    change: changeOf(before, made),
    notices: before.notices + countNotices(made),
    learnedBy: before.learnedBy ?? learnedBy(made),
    raised: before.raised.concat(raisedBy(made)),
  };
}

/** How a decision changes the state of an order; `change`: what those before it did. */
export function changeOf(
  { loaded: { order }, change }: { loaded: Pick<LoadedOrder, 'order'>; change: StateChange | null },
  { state, rule }: Decision,
): StateChange | null {
  return state === order.state ? change : { from: change?.from ?? order.state, rule };
}

/** The check that a decision on an event asks for. A reading answers one, and asks for none. */
export function checkAskedFor({ effects, outcome }: Decision, linkKey: number, atMs: number): CheckRequest | null {
  if (!effects.some((effect) => effect.do === 'check')) return null;
  return { linkKey, reason: 'doubtful_money', atMs, confirms: outcome === 'ask' };
}

/** Why an event asks for a check by what it says beside its facts. */
export function checkReasonOf({ unsure, linkChanged }: SettleJob): CheckReason | null {
  if (unsure) return 'not_understood';
  return linkChanged ? 'link_changed' : null;
}

function raisedBy({ effects }: Decision): AttentionKind[] {
  return effects.flatMap((effect) => (effect.do === 'attention' ? [effect.kind] : []));
}

function countNotices(made: Decision | null): number {
  return made?.effects.filter((effect) => effect.do === 'notice').length ?? 0;
}

/** What is noted at a row that is done and was not understood. */
export function unreadNote({ notUnderstood }: SettleJob): FaultNote | null {
  if (notUnderstood === null) return null;
  const message = `${notUnderstood.slice(0, 1).toUpperCase()}${notUnderstood.slice(1)}.`;
  return { code: 'event_not_understood', message };
}

/** Faults of rows that wait to be understood, as SQL lists them. */
export const UNREAD_FAULTS = "('event_not_understood', 'unreadable_event')";

/**
 * What a row does to the matter that events of its link were not understood: one matter for all of them, whose subject is
 * the order's reference. With an API to ask, the answer tells more than a person can find. An event says nothing of
 * others: those that were not understood may have told of another payment than the one that it made the order paid by.
 *
 * - `raises`: what a person is told
 * - `adds`: what that person is told beside it
 * - `ends`: this event is understood, so the matter is over unless others wait
 */
export function unreadMatter(
  { eventKey, notUnderstood, policy }: SettleJob,
  { outcomeBefore, faultBefore, reading }: Lease,
  { learnedBy }: Pick<Applied, 'learnedBy'>,
): { raises: string | null; adds: string | null; ends: boolean } {
  if (notUnderstood !== null) {
    const tells = policy.asks === 'never' || reading !== null;
    return { raises: tells ? unreadDetail(eventKey, notUnderstood) : null, adds: null, ends: false };
  }
  // A reading ends it with the other matters that readings end.
  if (reading !== null) return { raises: null, adds: null, ends: false };
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  return { raises: null, adds: learnedBy === null ? null : paidSince(eventKey), ends: isReplay };
}

function paidSince(eventKey: number): string {
  return ` The order was paid since, by event ${eventKey}: it is for you to see that this was the same payment.`;
}

/** The detail of `event_not_understood`, of the last such event. */
export function unreadDetail(eventKey: number, why: string): string {
  return (
    `Event ${eventKey} is authentic, and settled does not understand it: ${why}. Nothing was counted for it. Look at it ` +
    `(settled events show ${eventKey}), and at the payment in the service's panel. Once settled has an API to ask ` +
    `(SETTLED_API_URL, SETTLED_API_KEY), it asks about the order itself. When this is over: ${END_MATTER}`
  );
}

/** @param held the decision that held the order because nobody confirmed its completion, where that came of a reading */
export function settled(
  { order }: LoadedOrder,
  applied: Applied,
  held: Decision | null,
): Extract<SettleResult, { rule: unknown }> {
  const { last, notices, learnedBy } = applied;
  const made = held ?? last;
  return {
    outcome: made?.outcome ?? 'ignored',
    rule: made?.rule ?? null,
    reference: order.reference,
    state: made?.state ?? order.state,
    change: held === null ? applied.change : changeOf(applied, held),
    notices: notices + countNotices(held),
    learnedBy,
    raised: applied.raised,
  };
}
