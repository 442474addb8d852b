import type { AskReason } from '../domain/check_queue.ts';
import type { NoticeType, PastRule, Rule } from '../domain/decision.ts';
import { inSum, PAYMENTS_LISTED_MAX, payments } from '../domain/ledger.ts';
import type { AttentionKind, PaymentList } from '../domain/matter.ts';
import { formatAmount, type Money } from '../domain/money.ts';
import type { Flag, HoldReason, Order } from '../domain/order.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { BulkAction } from '../store/contract_bulk.ts';
import type { Count } from '../store/contract_lists.ts';

/** settled's own names in words for a person who knows none of them, and how counts, times, money and commands are written. */

export const REJECTIONS: Readonly<Record<KeptReason, string>> = {
  signature_missing: 'without a signature',
  signature_malformed: 'a signature that cannot be read',
  signature_repeated: 'two signature headers',
  signature_wrong:
    'a signature that does not match (the signing secret is another one, or the body was changed on its way)',
  timestamp_missing: 'without a timestamp',
  timestamp_malformed: 'a timestamp that cannot be read',
  timestamp_repeated: 'two timestamp headers',
  secret_unusable: 'the signing secret that was registered for this link is too short',
  secret_undecipherable: 'no key that is known opens the signing secret of this link, so settled cannot verify it',
  method_not_allowed: 'not sent with POST',
  body_too_large: 'too large a body',
  content_encoding: 'sent compressed, or in another content encoding',
};

/** Reasons of deliveries that settled refused before it looked at their signature. */
export const UNREAD_REASONS: ReadonlySet<string> = new Set<KeptReason>([
  'method_not_allowed',
  'body_too_large',
  'content_encoding',
]);

const HOLDS: Readonly<Record<HoldReason, string>> = {
  amount_mismatch: 'the payment brings less than the order asks for, or an amount that cannot be right',
  currency_mismatch: 'the payment is in another currency',
  reference_mismatch: "the payment names another order's reference",
  status_unclear: 'the service contradicts itself about the payment',
  paid_after_cancel: 'it was paid after it had been cancelled',
  payment_after_refund: "money arrived after the order's own had gone back",
  further_payment: 'another payment was completed meanwhile',
  unconfirmed:
    'a webhook said that the payment is completed, and the service, asked for 10 minutes, did not confirm it',
};

const RULES: Readonly<Record<Rule | PastRule, string>> = {
  payment_pending: 'the customer has begun to pay',
  already_pending: 'it was known that the customer has begun to pay',
  changes_nothing: 'nothing new for this order',
  paid: 'the payment is completed and agrees with the order',
  paid_more: 'the payment is completed and brings more than the order asks for',
  paid_money_unnamed: 'the payment is completed; the service did not say how much it brought',
  asks_before_deciding: 'settled asks the service before it counts the money',
  money_does_not_agree: 'the payment is completed, but its money does not agree with the order',
  statement_unclear: HOLDS.status_unclear,
  completion_unconfirmed: HOLDS.unconfirmed,
  completion_already_counted: 'this payment was counted before',
  payment_id_adopted: "the payment's id is known now",
  money_named: "the payment's money is known now",
  customer_paid_named: 'it is known now what the customer paid: more with interest, or in another currency',
  counted_money_differs: 'the same payment was reported with other money than before',
  payment_moves_forward_only: 'the payment had gone back, and a webhook cannot undo that',
  dispute_won: 'the disputed payment came back',
  service_disagrees: 'the service says less of the payment than was counted',
  payment_of_accepted_order: 'the payment of the order that a person had accepted',
  completion_while_held: 'a payment was completed while a person must decide',
  paid_after_cancel: 'the order was cancelled, and then paid',
  duplicate_payment: 'the order was paid again',
  payment_after_refund: 'money arrived after the payment had gone back',
  refunded: 'the payment was refunded',
  disputed: 'the payment is disputed: the bank of the customer took it back',
  still_covered: 'a payment went back, and what is left still pays the order',
  return_recorded: 'a payment went back, which does not move the order',
  return_already_counted: 'it was known that the payment went back',
  which_payment_unclear: 'the service does not say which of the payments went back',
  expired: 'the payment link has expired',
  already_expired: 'it was known that the payment link has expired',
  link_disabled: 'the payment link is switched off, and was not paid',
  older_reading: 'it is older than what settled knew by then',
  cancelled: 'a person cancelled the order',
  already_cancelled: 'it was cancelled before',
  not_cancellable: 'an order that is paid, being paid or held cannot be cancelled',
  hold_accepted: 'a person accepted the money',
  hold_rejected: 'a person rejected the money',
  already_resolved: 'a person had decided the same before',
  not_held: 'there was nothing to decide',
  nothing_left_to_accept: 'the money has gone back, so there is nothing to accept',
};

const FLAGS: Readonly<Record<Flag, string>> = {
  late: 'It was paid after the link had expired (late).',
  money_unnamed: "The service did not say how much was paid; the order's own amount was counted (money_unnamed).",
  overpaid: 'An earlier version of settled counted more than its amount; it may be instalment interest (overpaid).',
  underpaid: 'A person marked it paid, although settled counted less than its amount, or only other money (underpaid).',
  duplicate_payment:
    'It was paid more than once: all payments but one are owed back to the customer (duplicate_payment).',
  refund_due: 'Its captured money is owed back to the customer (refund_due).',
};

const ATTENTION: Readonly<Record<AttentionKind, string>> = {
  amount_mismatch: 'the money of a counted payment does not agree with what was said of it',
  api_key_refused: 'the service refuses the API key: nothing can be opened or asked about',
  deliveries_refused: 'deliveries of payment links are refused for one reason, again and again',
  duplicate_payment: 'more than one payment was captured: refund all but one',
  event_conflict: 'an event id of this link came again with other content; each was settled',
  event_dead: 'an event could not be settled',
  event_not_understood: 'an authentic event came that settled does not understand',
  link_disabled: 'the payment link is switched off, and was not paid',
  link_mismatch: 'an authentic event for this link names another link',
  link_missing: 'the service knows no such payment link',
  link_not_known: 'the service has a payment link that this restored store does not know',
  link_not_opened: 'the payment link is not open yet: the order waits for it',
  link_withheld: 'the service made the payment link otherwise than asked, so the shop does not get it',
  notices_dead: 'the shop did not take notices, and settled no longer sends them',
  merchant_inactive: 'the service says that the merchant is not active',
  money_unnamed: 'an event paid the order and names no money, and there is no API to ask: look what came',
  quote_reading_doubtful:
    'several payments in a row named less money than their links, or none that can be read: what they say of it is left out',
  reference_taken: "the service has another link under this order's reference",
  refund_due: 'money of a cancelled order is owed back to the customer',
  secret_unusable: 'the service named a signing secret that cannot be used, so its webhooks may be refused',
  service_disagrees: 'the service says less of a payment than was counted',
  shop_refuses_notices: 'the shop takes no notices: it refuses them, or does not answer',
  status_unclear: 'the service contradicts itself, or does not say which payment it means',
};

/** Why settled asked the service, or will ask it. */
const ASKED: Readonly<Record<AskReason, string>> = {
  registered: 'because the link was new here',
  listed: 'because its list showed the link in another status',
  link_changed: "because the link's status changed",
  rejected: 'because deliveries were refused as not authentic',
  stale: 'because a delivery came with a stale timestamp',
  unreadable: 'because an authentic delivery could not be read',
  not_understood: 'because an event was not understood',
  link_mismatch: 'because an authentic event named another link',
  returned: "because the customer came back from the service's page",
  doubtful_money: 'because a webhook spoke of money that the service is to confirm',
  scheduled: 'on schedule',
  person: 'because a person asked',
};

const NOTICES: Readonly<Record<NoticeType, string>> = {
  'order.paid': 'that the order is paid',
  'order.payment_pending': 'that the customer has begun to pay',
  'order.held': 'that a person must decide about money',
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
  attention: (kind: string) => lookUp(ATTENTION, kind),
  matter: (kind: string) => (kind === 'hold' ? 'a person must decide about money' : lookUp(ATTENTION, kind)),
  asked: (reason: string) => lookUp(ASKED, reason),
  notice: (type: string) => lookUp(NOTICES, type),
  hold: (reason: HoldReason) => `${HOLDS[reason]} (${reason})`,
  holdReason: (reason: string) => lookUp(HOLDS, reason),
  flag: (flag: Flag) => FLAGS[flag],
};

function lookUp(table: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(table, name) ? (table[name] as string) : name;
}

/** Epoch milliseconds as ISO 8601 in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** `100.00 BRL`. */
export function inMoney(amount: Money | { amountMinor: bigint; currency: string }): string {
  return `${formatAmount(amount)} ${amount.currency}`;
}

/** Payments by what the service's panel shows of them; of many the newest, with the count and the sum of all. */
export function inPanel({ named, count, sums }: PaymentList): string {
  if (count === 0) return 'no payment was counted';
  const newest = named
    .map(({ id, captured, status }) => {
      const name = id === null ? 'the payment without an id' : `payment ${id}`;
      const gone = status === 'completed' ? '' : `, ${status}`;
      return `${name} of ${inMoney(captured)}${gone}`;
    })
    .join('; ');
  if (named.length === count) return newest;
  const all = sums.map(({ amountMinor, currency }) => inMoney({ amountMinor: BigInt(amountMinor), currency }));
  return `${count} payments of ${all.join(' and ')} in all, the newest of them ${newest}`;
}

/** `1 event`, `2 events`. */
export function inNumber(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
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

/** What bulk work did with each row that it changed. What comes of it later is not known to it. */
export const BULK_CHANGED: Readonly<Record<BulkAction, string>> = {
  replay_events: 'put back to be settled',
  resend_notices: 'put back to be sent',
  check_orders: 'put in the queue to be asked about',
  end_attention: 'ended',
};

/** Why settled cancelled work on many rows. */
export const WHY_CANCELLED = { token_ended: 'the token of who started it was revoked or has expired' } as const;

/** What it means that a copy took the place of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${iso(restoredFromMs)}: cursors of the feed from before it was put to use are answered 410, ` +
    "and links that were made since are not known until they are found in the service's list."
  );
}

/** Why an order is held, and what the service reported as paid. */
export function explainHold(order: Order): string {
  const reasons = [...new Set(order.holds.map(({ reason }) => mismatchWords(order, reason) ?? words.hold(reason)))];
  const counted = payments(order);
  const captured =
    counted.length > PAYMENTS_LISTED_MAX
      ? inSum(counted)
      : counted.map((payment) => inMoney(payment.captured)).join(' and ');
  const came = counted.length === 0 ? '' : ` Reported as paid: ${captured}.`;
  return (
    `Order ${order.reference} (${inMoney(order.amount)}) is held: a person must decide about its money, because ` +
    `${reasons.join('; and ')}.${came}`
  );
}

/** How the money of the one payment that does not agree differs; null if it is not one, or of another currency. */
function mismatchWords(order: Order, reason: HoldReason): string | null {
  if (reason !== 'amount_mismatch') return null;
  const { amountMinor, currency } = order.amount;
  const others = payments(order).filter(
    ({ captured, isAssumed }) => !isAssumed && captured.currency === currency && captured.amountMinor !== amountMinor,
  );
  const [other] = others;
  if (other === undefined || others.length > 1) return null;
  const how =
    other.captured.amountMinor < amountMinor
      ? `less than the ${formatAmount(order.amount)} that the order asks for`
      : `and the order asks for ${formatAmount(order.amount)}: that cannot be right`;
  return `the payment is ${inMoney(other.captured)}, ${how} (${reason})`;
}
