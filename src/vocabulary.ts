/**
 * settled's own names, each with its meaning for a person without training. Their types and lists in src/domain, in this
 * order, and what the API's document and every surface say of them are made of these records.
 */

/** What is true of an order in each state. docs/states.md explains each. */
export const STATE_WORDS = {
  awaiting_payment: 'the customer has not begun to pay',
  payment_pending: 'the customer has begun to pay',
  paid: 'its money is captured: deliver',
  held: 'money came that a person must decide about',
  expired: 'its link expired unpaid; a payment that comes later still pays it',
  cancelled: 'it is not to be paid',
  refunded: 'it was paid, and the money went back',
  disputed: "it was paid, and the customer's bank took the money back; it may return",
};

/** What happened, according to the service or, for the last three, a person: what `PaymentFact` may be. */
export const FACT_WORDS = {
  pending: 'the customer has begun to pay',
  completed: 'the payment is completed',
  unclear: 'it contradicts itself about the payment',
  refunded: 'the payment was refunded',
  disputed: 'the payment is disputed',
  expired: 'the link has expired',
  disabled: 'the link is switched off, and was not paid',
  unpaid: 'no payment is completed',
  unconfirmed: 'it did not confirm the payment',
  cancel: 'a person cancelled the order',
  accept: 'a person accepted the money',
  reject: 'a person rejected the money',
};

/** What became of a fact, or of the event that states it. */
export const OUTCOME_WORDS = {
  applied: 'changed the order',
  already_applied: 'was known already',
  ignored: 'changed nothing',
  held: 'was held for a person',
  ask: 'settled asks the service',
};

/** Why money needs a person. docs/states.md explains each. */
export const HOLD_WORDS = {
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

/** Every rule of `decide`. docs/states.md explains each. */
export const RULE_WORDS = {
  payment_pending: 'the customer has begun to pay',
  already_pending: 'settled already knew that the customer has begun to pay',
  changes_nothing: 'nothing new for this order',
  paid: 'the payment is completed and matches the order',
  paid_money_unnamed: 'the payment is completed, but the service did not say how much was paid',
  asks_before_deciding: 'settled asks the service before it counts the money',
  money_does_not_agree: 'the payment is completed, but its money or reference does not match the order',
  statement_unclear: HOLD_WORDS.status_unclear,
  completion_unconfirmed: HOLD_WORDS.unconfirmed,
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

/** Rules of earlier versions. Stored history and events still name them. */
export const PAST_RULE_WORDS = { paid_more: 'the payment is completed, and is more than the order asks for' };

/** What a person should know about an order in addition to its state. docs/states.md explains each. */
export const FLAG_WORDS = {
  late: 'It was paid after its link had expired (late).',
  money_unnamed: "The service did not say how much was paid, so settled counted the order's amount (money_unnamed).",
  overpaid: 'An earlier version of settled counted too much; the rest may be instalment interest (overpaid).',
  underpaid: 'A person marked it paid, although settled had counted too little or other money (underpaid).',
  duplicate_payment:
    'It was paid more than once. What does not pay it must be refunded to the customer (duplicate_payment).',
  refund_due: 'What was captured and is still there must be refunded to the customer (refund_due).',
};

/** What settled tells the shop. */
export const NOTICE_WORDS = {
  'order.paid': 'that the order is paid',
  'order.payment_pending': 'that the customer has begun to pay',
  'order.held': 'that the order is held',
  'order.expired': 'that the payment link has expired',
  'order.cancelled': 'that the order is cancelled',
  'order.refunded': 'that the payment was refunded',
  'order.disputed': 'that the payment is disputed',
  'payment.duplicate': 'that the order was paid again',
};

/** Why a delivery is not authentic. docs/signature.md explains each. */
const NOT_AUTHENTIC_WORDS = {
  signature_missing: 'no signature header',
  signature_malformed: 'an unreadable signature',
  signature_repeated: 'more than one signature header',
  signature_wrong: 'a signature that does not match (wrong signing secret, or a body that was changed on the way)',
  timestamp_missing: 'no timestamp header',
  timestamp_malformed: 'an unreadable timestamp',
  timestamp_repeated: 'more than one timestamp header',
  secret_unusable: 'the signing secret that was registered for this link is too short',
};

export type RejectionReason = keyof typeof NOT_AUTHENTIC_WORDS;
export const REJECTION_REASONS = namesOf(NOT_AUTHENTIC_WORDS);

/** Why settled refused a delivery before it looked at its signature. */
const UNREAD_WORDS = {
  method_not_allowed: 'not sent with POST',
  body_too_large: 'a body that is too large',
  content_encoding: 'a compressed body, or another content encoding',
  wrong_address:
    'sent to an address that has the token of this link and is not /hooks/TOKEN (does the proxy change the path?)',
};

export const UNREAD_REASONS: ReadonlySet<string> = new Set(namesOf(UNREAD_WORDS));

/**
 * Why settled refused a delivery to a known link: it is not authentic; settled could not tell; or settled refused it before
 * verifying. settled counts such deliveries and keeps none of their bytes.
 */
export const REJECTION_WORDS = {
  ...NOT_AUTHENTIC_WORDS,
  secret_undecipherable: "no known key decrypts this link's signing secret, so settled cannot verify the delivery",
  ...UNREAD_WORDS,
};

export type KeptReason = keyof typeof REJECTION_WORDS;
export const KEPT_REASONS = namesOf(REJECTION_WORDS);

/** Why settled asked the service, or will ask it: on schedule, or for a reason of `src/domain/check_queue.ts`. */
export const ASK_WORDS = {
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

/** What matters for a person are about, most urgent first. */
export const CONCERN_WORDS = {
  money: 'money is in a wrong state, or may be',
  unsettled: 'settled received something authentic that it did not count; it may be about money',
  shop: 'the shop does not know the state of its orders',
  service: 'settled cannot ask the service, or cannot receive its deliveries, as it should',
  link: 'an order has no link that can be paid',
};

/** How far an event or a notice is. */
export const ROW_STATUS_WORDS = {
  pending: 'waits for its turn',
  leased: 'is in work now',
  done: 'is done',
  dead: 'settled gave it up; a person must look',
};

/** What a person in a role does, who may also do all that the roles before it may. */
export const ROLE_WORDS = {
  viewer: 'reads everything but secrets',
  operator: 'also decides, replays, resends, checks, cancels and ends matters',
  admin: 'also manages tokens, sessions, keys and backups',
};

/** The channels by which people are told of attention, by the setting that makes each. */
export const ALERT_CHANNEL_WORDS = { url: 'the hook of SETTLED_ALERT_URL', mail: 'mail by SETTLED_ALERT_SMTP' };
export type AlertChannel = keyof typeof ALERT_CHANNEL_WORDS;

/** The names of a vocabulary, in its order. */
export function namesOf<Name extends string>(vocabulary: Readonly<Record<Name, string>>): readonly Name[] {
  return Object.keys(vocabulary) as Name[];
}

/** What every listener says of an address that it does not have, by which the command line knows it. */
export const NOTHING_HERE = 'There is nothing at this address.';
