import type { PersonRole } from '../domain/access.ts';
import type { AskReason } from '../domain/check_queue.ts';
import type { PastRule, Rule } from '../domain/decision.ts';
import { isReadable, statedWords, sumWords } from '../domain/ledger.ts';
import type { NamedPayment, PaymentList } from '../domain/matter.ts';
import { inMoney } from '../domain/money.ts';
import type { NoticeType } from '../domain/notice.ts';
import type { Flag, HoldReason } from '../domain/order.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { BulkAction } from '../store/verbs/bulk_actions.ts';
import type { Count } from '../store/verbs/list_pages.ts';
import type { LeaseCounts } from '../store/verbs/stats.ts';

/** Words for settled's own names, and the forms of counts, times, money and commands, for a person without training. */

const REJECTIONS: Readonly<Record<KeptReason, string>> = {
  signature_missing: 'no signature header',
  signature_malformed: 'an unreadable signature',
  signature_repeated: 'more than one signature header',
  signature_wrong: 'a signature that does not match (wrong signing secret, or a body that was changed on the way)',
  timestamp_missing: 'no timestamp header',
  timestamp_malformed: 'an unreadable timestamp',
  timestamp_repeated: 'more than one timestamp header',
  secret_unusable: 'the signing secret that was registered for this link is too short',
  secret_undecipherable: "no known key decrypts this link's signing secret, so settled cannot verify the delivery",
  method_not_allowed: 'not sent with POST',
  body_too_large: 'a body that is too large',
  content_encoding: 'a compressed body, or another content encoding',
  wrong_address:
    'sent to an address that has the token of this link and is not /hooks/TOKEN (does the proxy change the path?)',
};

/** What a person in a role does. */
export const ROLES: Readonly<Record<PersonRole, string>> = {
  viewer: 'reads everything but secrets',
  operator: 'also decides, replays, resends, checks, cancels and ends matters',
  admin: 'also manages tokens, sessions, keys and backups',
};

const HOLDS: Readonly<Record<HoldReason, string>> = {
  amount_mismatch: 'the payment has another amount than the order asks for, or one that is not readable',
  currency_mismatch: 'the payment is in another currency than the order',
  reference_mismatch: "the payment names another order's reference",
  status_unclear: 'the service contradicts itself about the payment',
  paid_after_cancel: 'the customer paid after the order was cancelled',
  payment_after_refund: "a payment arrived after the order's money had gone back to the customer",
  further_payment: 'another payment was completed while the order was held',
  unconfirmed:
    'a webhook said that the payment is completed, but the service did not confirm it when settled asked for 10 minutes',
};

const RULES: Readonly<Record<Rule | PastRule, string>> = {
  payment_pending: 'the customer has begun to pay',
  already_pending: 'settled already knew that the customer has begun to pay',
  changes_nothing: 'nothing new for this order',
  paid: 'the payment is completed and matches the order',
  paid_more: 'the payment is completed, and is more than the order asks for',
  paid_money_unnamed: 'the payment is completed, but the service did not say how much was paid',
  asks_before_deciding: 'settled asks the service before it counts the money',
  money_does_not_agree: 'the payment is completed, but its money or reference does not match the order',
  statement_unclear: HOLDS.status_unclear,
  completion_unconfirmed: HOLDS.unconfirmed,
  completion_already_counted: 'settled had already counted this payment',
  payment_id_adopted: "settled now knows the payment's id",
  money_named: "settled now knows the payment's money",
  customer_paid_named: 'settled now knows what the customer paid: more, with interest, or in another currency',
  counted_money_differs: 'the same payment was reported with other money than before',
  payment_moves_forward_only: 'the payment had already gone back, and a webhook cannot undo that',
  dispute_won: 'the dispute was won: the money is back',
  service_disagrees: 'the service says less about the payment than settled counted',
  payment_of_accepted_order: 'the payment of an order that a person had already accepted',
  completion_while_held: 'a payment was completed while the order was held',
  paid_after_cancel: 'the customer paid after the order was cancelled',
  duplicate_payment: 'the order was paid again',
  payment_after_refund: "a payment arrived after the order's money had gone back to the customer",
  refunded: 'the payment was refunded',
  disputed: "the payment is disputed: the customer's bank took it back",
  still_covered: 'a payment went back to the customer, and the rest still pays the order',
  return_recorded: "a payment went back to the customer, which does not change the order's state",
  return_already_counted: 'settled already knew that the payment went back',
  return_sum_named: 'the service now names another sum of a payment that went back; settled tells a person',
  which_payment_unclear: 'the service does not say which of the payments went back',
  expired: 'the payment link has expired',
  already_expired: 'settled already knew that the payment link has expired',
  link_disabled: 'the payment link is switched off and was not paid',
  older_reading: 'settled already had newer information',
  cancelled: 'a person cancelled the order',
  already_cancelled: 'the order was already cancelled',
  not_cancellable: 'an order that is paid, being paid or held cannot be cancelled',
  hold_accepted: 'a person accepted the money',
  hold_rejected: 'a person rejected the money',
  already_resolved: 'a person had already made the same decision',
  not_held: 'the order was not held, so there was nothing to decide',
  nothing_left_to_accept: 'the money has gone back to the customer, so there is nothing to accept',
};

const FLAGS: Readonly<Record<Flag, string>> = {
  late: 'It was paid after its link had expired (late).',
  money_unnamed: "The service did not say how much was paid, so settled counted the order's amount (money_unnamed).",
  overpaid: 'An earlier version of settled counted too much; the rest may be instalment interest (overpaid).',
  underpaid: 'A person marked it paid, although settled had counted too little or other money (underpaid).',
  duplicate_payment:
    'It was paid more than once. What does not pay it must be refunded to the customer (duplicate_payment).',
  refund_due: 'What was captured and is still there must be refunded to the customer (refund_due).',
};

/** Why settled asked the service, or will ask it. */
const ASKED: Readonly<Record<AskReason, string>> = {
  registered: 'because the link was new to settled',
  listed: "because the service's list showed the link with another status",
  link_changed: "because the link's status changed",
  rejected: 'because settled rejected deliveries as not authentic',
  stale: 'because a delivery had a stale timestamp',
  unreadable: 'because settled could not read an authentic delivery',
  not_understood: 'because settled did not understand an event',
  link_mismatch: 'because an authentic event named another link',
  returned: "because the customer came back from the service's page",
  doubtful_money: 'because a webhook reported money that the service must confirm',
  scheduled: 'on schedule',
  person: 'because a person asked',
};

const NOTICES: Readonly<Record<NoticeType, string>> = {
  'order.paid': 'that the order is paid',
  'order.payment_pending': 'that the customer has begun to pay',
  'order.held': 'that the order is held',
  'order.expired': 'that the payment link has expired',
  'order.cancelled': 'that the order is cancelled',
  'order.refunded': 'that the payment was refunded',
  'order.disputed': 'that the payment is disputed',
  'payment.duplicate': 'that the order was paid again',
};

/** The words for a name from the store. A name that this version does not know stands for itself. */
export const words = {
  rejection: (reason: string) => lookUp(REJECTIONS, reason),
  rule: (rule: string) => lookUp(RULES, rule),
  asked: (reason: string) => lookUp(ASKED, reason),
  notice: (type: string) => lookUp(NOTICES, type),
  hold: (reason: HoldReason) => `${HOLDS[reason]} (${reason})`,
  holdReason: (reason: string) => lookUp(HOLDS, reason),
  flag: (flag: Flag) => FLAGS[flag],
};

export function lookUp(table: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(table, name) ? (table[name] as string) : name;
}

/** Epoch milliseconds as ISO 8601 in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** An amount that was captured or reported; if it is not readable, what stands in its place. */
export function capturedWords({ captured, stated }: Pick<NamedPayment, 'captured' | 'stated'>): string {
  return isReadable(captured) ? inMoney(captured) : `an amount that is ${sumWords(null, stated ?? null)}`;
}

/** Payments by what the service's panel shows of them; of many the newest, with the count and the sum of all. */
export function inPanel({ named, count, sums }: PaymentList): string {
  if (count === 0) return 'settled counted no payment';
  const newest = named
    .map(({ id, status, ...money }) => {
      const sum = money.stated && isReadable(money.captured) ? ` with ${statedWords(money.stated)}` : '';
      const gone = status === 'completed' ? '' : `, ${status}${sum}`;
      return `${paymentName(id)} of ${capturedWords(money)}${gone}`;
    })
    .join('; ');
  if (named.length === count) return newest;
  const all = sums.map(({ amountMinor, currency }) => inMoney({ amountMinor: BigInt(amountMinor), currency }));
  return `${count} payments with a total of ${all.join(' and ')}; the newest: ${newest}`;
}

export function paymentName(id: string | null): string {
  return id === null ? 'the payment without an id' : `payment ${id}`;
}

/** `1 event`, `2 events`. */
export function inNumber(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}

/** What is in work: `2 events, 1 notice`; empty if nothing is. */
export function inLeases({ events, openings, notices }: LeaseCounts): string {
  return Object.entries({ event: events, opening: openings, notice: notices })
    .filter(([, count]) => count > 0)
    .map(([what, count]) => inNumber(count, what))
    .join(', ');
}

/** `12`, `more than 1 000`, or `at least 12` if not all rows were looked at. */
export function countWords({ n, isMore }: Count): string {
  const digits = String(n).replace(/\B(?=(\d{3})+$)/g, ' ');
  if (!isMore) return digits;
  return n < COUNTED_MAX ? `at least ${digits}` : `more than ${digits}`;
}

/** Lists are counted up to here. */
const COUNTED_MAX = 1_000;

/** The sum of counts. */
export function total(rows: readonly { readonly count: number }[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

/** A count of deliveries at the beginning of a sentence. */
export function inDeliveries(count: number): string {
  return count === 1 ? 'One delivery' : `${count} deliveries`;
}

export function wasOrWere(count: number): string {
  return count === 1 ? 'was' : 'were';
}

export function inTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** A text that begins with a capital letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The first line of a fault's message, with a full stop if it has none. */
export function sentence(text: string): string {
  const line = firstLine(text).trim();
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** The first line: the message of a bug has a stack below it, which helps no reader here. */
export function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

/** Quotes a word for a shell, for a command that a person is to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command with which a person gives an order its link. */
export function adoptCommand(reference: string, id: string | null): string {
  return `settled orders adopt ${shellWord(reference)} --id ${id === null ? 'ID' : shellWord(id)}`;
}

/** Of what bulk work has rows, and what it did with each that it changed. It does not know the later result. */
export const BULK: Readonly<Record<BulkAction, { one: string; changed: string }>> = {
  replay_events: { one: 'event', changed: 'queued again' },
  resend_notices: { one: 'notice', changed: 'queued again' },
  check_orders: { one: 'order', changed: 'queued for a check' },
  accept_orders: { one: 'order', changed: 'accepted' },
  end_attention: { one: 'matter', changed: 'ended' },
};

/** Why settled cancelled work on many rows. */
export const WHY_CANCELLED = { token_ended: 'the token that started it was revoked or has expired' } as const;

/** What follows from restoring a copy of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${iso(restoredFromMs)}. settled answers feed cursors from before the restore with 410. ` +
    "It learns of links that were created since then when it finds them in the service's list."
  );
}
