import {
  type AttentionKind,
  type AttentionParams,
  ENDED_BY_ANY_LINK,
  type MatterKind,
  type UnreadableList,
} from '../domain/matter.ts';
import { inMoney } from '../domain/money.ts';
import type { Diagnosis } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { AttentionSummary } from '../store/verbs/attention.ts';
import { adoptCommand, inPanel, iso, lookUp, restoredSentence, sentence, shellWord, words } from './glossary.ts';
import { refundWords, returnAdvice, returnWords } from './returns.ts';
import { explainChangedAddress, explainOutage } from './service_status.ts';
import { inARow, lastAttempt, refusalAdvice } from './shop_status.ts';

/** What a person reads about each matter of attention: its kind as a clause, and a sentence or more. */

const MATTERS: Readonly<Record<MatterKind, string>> = {
  hold: 'the order is held: a person must decide',
  amount_mismatch: 'a later statement about a counted payment does not match the order or what settled counted',
  api_key_refused: 'the service rejects the API key, so settled can neither open links nor ask about them',
  deliveries_refused: 'settled keeps rejecting deliveries of payment links for the same reason',
  duplicate_payment: 'more than one payment was captured: refund all but one',
  event_conflict: 'an event id of this link came again with other content; settled processed both',
  event_dead: 'settled could not settle an event',
  event_not_understood: 'settled received an authentic event that it does not understand',
  link_disabled: 'the payment link is switched off and was not paid',
  link_mismatch: 'an authentic event for this link names another link',
  link_missing: 'the service does not know the payment link',
  link_not_known: 'the service has a payment link that this restored database does not know',
  link_not_opened: 'settled has not been able to open the payment link yet',
  link_withheld: 'the service created the link with another amount or currency, so the shop does not get it',
  money_untold: 'the shop has not taken news about the money of an order for minutes',
  notices_dead: 'the shop did not accept notices, and settled no longer sends them',
  merchant_inactive: 'the service says that the merchant is not active',
  money_unnamed:
    'an event paid the order without naming an amount, and settled has no API to ask: check how much arrived',
  quote_reading_doubtful:
    'several payments in a row named less money than their links, or money that is not readable; settled holds their orders',
  reference_taken: "the service already has another link with this order's reference",
  refund_due: 'the money of a cancelled order must be refunded to the customer',
  secret_unusable: 'the service named a signing secret that settled cannot use, so settled may reject its webhooks',
  service_unanswered: 'the service does not answer, so settled learns of payments only from webhooks',
  service_disagrees: 'the service says less about a payment than settled counted',
  shop_refuses_notices: 'the shop does not accept notices: it refuses them, or does not answer',
  status_unclear: 'the service contradicts itself, or does not say which payment it means',
  webhook_address_changed: 'the service changed the address that settled gave for webhooks',
};

/** What a matter of a kind is about. A kind that this version does not know stands for itself. */
export function matterWords(kind: string): string {
  return lookUp(MATTERS, kind);
}

/** What an answer about a matter depends on beside it: its own number, and whether there is an API to ask. */
type Reader = { key: number; canAsk: boolean };

/** What happened and what to do, for an open row of attention. A kind that a later version raised has no sentence here. */
export function explainAttention(
  { kind, subject, params }: Pick<AttentionSummary, 'kind' | 'subject' | 'params'>,
  { key, canAsk }: Reader,
): string {
  if (!Object.hasOwn(SENTENCES, kind)) return `A later version of settled raised this matter: ${kind}.`;
  const commands = {
    end: `settled attention end ${key} --reason TEXT`,
    check: (reference: string) => {
      const command = `settled orders check ${shellWord(reference)}`;
      return canAsk ? command : `${command}, once SETTLED_API_URL and SETTLED_API_KEY are set`;
    },
  };
  return SENTENCES[kind as AttentionKind](subject, params as never, commands);
}

type Commands = { end: string; check: (reference: string) => string };
type SentenceOf<K extends AttentionKind> = (subject: string, params: AttentionParams[K], commands: Commands) => string;

const SENTENCES: { readonly [K in AttentionKind]: SentenceOf<K> } = {
  amount_mismatch: (reference, { payments, said }, { end }) =>
    `What the service says about the money of order ${reference} does not match the order, or what settled counted before ` +
    `(${inPanel(payments)}). ` +
    (said === undefined
      ? `settled did not change the order. ${look(reference)} If the customer paid too much, refund the rest there. If ` +
        `the customer paid too little, collect the rest. Then end this matter: ${end}`
      : `${returnWords(said)} To see what was said when: settled why ${shellWord(reference)}. ${returnAdvice(end)}`),
  api_key_refused: () =>
    'The service rejects the API key (401), so settled can neither open links nor ask about them. If you use ' +
    'SETTLED_API_KEY_FILE, put the right key into that file; settled reads it again. If you use SETTLED_API_KEY, set the ' +
    'right key and restart settled.',
  deliveries_refused: (reason, { diagnosis }) => {
    const found = diagnosis === null ? null : explainDiagnosis(diagnosis as Diagnosis);
    const which = ENDED_BY_ANY_LINK.includes(reason) ? '' : ' of one of these links';
    return [
      `settled keeps rejecting deliveries: ${words.rejection(reason)} (${reason}).`,
      ...(found === null ? [] : [found.answer, ...found.advice.map(sentence)]),
      `To see which: settled rejections. This matter ends within minutes of an authentic delivery${which}.`,
    ].join(' ');
  },
  duplicate_payment: (reference, { isHeld, owed, kept }, commands) => {
    const found = `Order ${reference} was paid more than once.`;
    const resolve = `settled orders resolve ${shellWord(reference)}`;
    const keeps = kept === null ? '' : ` Keep ${inPanel(kept)}, which pays the order.`;
    const ends = endsByRefund(reference, commands);
    return isHeld
      ? `${found} It is held: decide first (${resolve} --accept, or --reject, with --reason TEXT). Then refund in the ` +
          `service's panel what is too much. The payments: ${inPanel(owed)}. ${ends}`
      : `${found} ${refundWords(owed)}${keeps} ${ends}`;
  },
  event_conflict: (_link, { eventId, beforeKey, eventKey }, { end }) =>
    `Event id ${eventId} came again with other content (events ${beforeKey} and ${eventKey}). settled processed both, and ` +
    `counted no payment twice. Compare them: settled events show ${beforeKey}, and settled events show ${eventKey}. Then end ` +
    `this matter: ${end}`,
  event_dead: deadEvent,
  event_not_understood: (_reference, { event, paidByEvent }, { end }) => {
    const paid =
      paidByEvent === null
        ? ''
        : ` Since then, the order was paid by event ${paidByEvent}: check that it was the same payment.`;
    const why = event.why === null ? 'it is not readable JSON' : inClause(event.why);
    const asked = event.isUnanswered
      ? ' settled asked the service about the link, but got no answer that says more.'
      : '';
    return (
      `Event ${event.key} is authentic, but settled does not understand it: ${why}. settled counted nothing for it.${asked}` +
      `${paid} Look at the event (settled events show ${event.key}), and at the payment in the service's panel. When settled ` +
      'has an API to ask (SETTLED_API_URL, SETTLED_API_KEY), it asks about the order itself. When this is resolved, end the ' +
      `matter: ${end}`
    );
  },
  link_disabled: (reference, _nothing, { check }) =>
    `The payment link of order ${reference} is switched off at the service and was not paid, so the customer cannot pay. ` +
    "Switch it on in the service's panel. This matter ends with the service's next answer after that. To ask now: " +
    `${check(reference)}. If the link is meant to be off, cancel the order: settled orders cancel ${shellWord(reference)}`,
  link_mismatch: deadEvent,
  link_missing: (reference) =>
    `The service does not know the link of order ${reference} (404), so settled cannot ask about it. Look for the link in ` +
    "the service's panel. If settled has another id for it, correct the id (settled links add).",
  link_not_known: (subject, params) =>
    'restoredFromMs' in params ? unreadableList(params) : unknownLink(subject, params),
  link_not_opened: (reference, { code, message, needsId }) =>
    `settled has not been able to open the payment link of order ${reference} yet (${code}): ${message} ` +
    `${needsId ? `${bringId(reference)} ` : ''}settled keeps trying. To see the progress: settled why ${shellWord(reference)}`,
  link_withheld: (reference, { linkId, why }) =>
    `settled does not show link ${linkId} of order ${reference} to the shop. ${why} Look at the link in the service's ` +
    'panel. settled still counts what is paid on it.',
  merchant_inactive: () =>
    'The service says that the merchant is not active (403), so settled cannot ask about anything. Look at the account in ' +
    "the service's panel. settled continues when the account is active.",
  money_unnamed: (reference, { amount }, { end }) =>
    `An event paid order ${reference} without naming an amount, and settled has no API to ask. settled counted what the ` +
    `order asks for, ${inMoney(amount)}. ${look(reference)} If less arrived, collect the rest from the customer. Then end ` +
    `this matter: ${end}`,
  money_untold: (_shop, { notice, reference, sinceMs }) =>
    `The shop has not taken news about money of order ${reference}: attempts have failed since ${iso(sinceMs)}. To see what ` +
    `it is told and what it answers: settled notices show ${notice}. Other orders may wait too: settled notices list ` +
    '--status pending. settled goes on trying, and this matter ends when no such news waits any longer.',
  notices_dead: (_shop, { notice, message }) =>
    `The shop did not accept notice ${notice}: ${message} To see all of them: settled notices list --status dead. When the ` +
    'shop works again, send them again: settled bulk resend --status dead (with --dry-run it only counts them)',
  quote_reading_doubtful: (_quote, { count }) =>
    `The quotes of ${count} payments in a row named less money than their links, or an amount or a currency that settled ` +
    'cannot read, although the links match the orders. settled holds each of these orders (amount_mismatch or ' +
    "currency_mismatch). For each of them, compare the payment in the service's panel with what settled says of it " +
    '(settled why ORDER), and decide about that order alone (settled orders resolve ORDER): the same holds also have other ' +
    'causes. This matter ends with a quote that matches again.',
  reference_taken: (reference, { code, message, foreignId }) =>
    `settled cannot open a payment link for order ${reference} (${code}): ${message} Look at the service's link. If it is ` +
    `for this order, for the same money, and unpaid, give it to the order: ${adoptCommand(reference, foreignId)} (POST ` +
    '/v1/orders/…/adopt). If not, open the order with another reference.',
  refund_due: (reference, { payments }, commands) =>
    `A person rejected the money of order ${reference}, and it must be refunded to the customer. ` +
    `${refundWords(payments)} ${endsByRefund(reference, commands)}`,
  secret_unusable: (_name, { reference, flaw }, { end }) =>
    `When settled created the link of order ${reference}, the service answered with another webhookSecret than the one it ` +
    `was given, and settled cannot use it: ${flaw}. It may have done so for all links since. If the service signs with such ` +
    'a secret, settled rejects the webhooks and learns of the payments by asking. Ask the operator of the service which ' +
    `secret it signs with. Then end this matter: ${end}`,
  service_disagrees: (reference, { payments }, { end, check }) =>
    `The service says less about the money of order ${reference} than settled counted (${inPanel(payments)}). settled keeps ` +
    `what it counted. ${look(reference)} If the money is there, this matter ends with the next answer that says so. To ask ` +
    `now: ${check(reference)}. If the money is gone, take back what you delivered. Then end this matter: ${end}`,
  service_unanswered: (_api, outage) => explainOutage(outage),
  shop_refuses_notices: (_shop, failures) =>
    `The shop does not accept notices: ${inARow(failures)}, and it has accepted none since; ${lastAttempt(failures)}. ` +
    refusalAdvice(failures),
  status_unclear: (reference, { payments }, { end, check }) =>
    `The service contradicts itself about a payment of order ${reference}, or does not say which payment it means ` +
    `(${inPanel(payments)}). settled changed nothing. ${look(reference)} To ask again: ${check(reference)}. If the answer is ` +
    `still unclear, act on what the panel shows. Then end this matter: ${end}`,
  webhook_address_changed: (_url, changed) => explainChangedAddress(changed),
};

function endsByRefund(reference: string, { check, end }: Commands): string {
  const ends = `This matter ends when the service reports all of it as refunded. To ask now: ${check(reference)}`;
  return `${ends}. If it does not, and nothing is owed any more, end the matter: ${end}`;
}

function look(reference: string): string {
  return `Look at it in the service's panel. To see what was said when: settled why ${shellWord(reference)}.`;
}

/** A reason that was noted as a sentence, as the end of another sentence. */
function inClause(reason: string): string {
  return reason.replace(/^[A-Z]/, (letter) => letter.toLowerCase()).replace(/\.$/, '');
}

function deadEvent(eventKey: string, { code, message }: { code: string; message: string }, { end }: Commands): string {
  return (
    `settled could not settle event ${eventKey} (${code}): ${message} settled counted nothing for it. Look at the event ` +
    `(settled events show ${eventKey}), and at the payment in the service's panel. When the cause is gone, settle it again: ` +
    `settled events replay ${eventKey}. If the event is not about this order, end this matter: ${end}`
  );
}

/** What a person does if the service may have created an order's link. */
export function bringId(reference: string): string {
  return (
    'The service may have created the link. If its panel shows the link, let the service send an event for it, or give the ' +
    `link to the order: ${adoptCommand(reference, null)}.`
  );
}

/** What a person does about a link that a restored store does not know: the shop may have made it without settled. */
function unknownLink(id: string, params: Exclude<AttentionParams['link_not_known'], UnreadableList>): string {
  const { reference, createdAtMs, otherId } = params;
  const amount = params.amount === null ? 'AMOUNT' : shellWord(params.amount);
  const currency = params.currency === null ? '' : ` --currency ${shellWord(params.currency)}`;
  const order = reference === null ? 'REFERENCE' : shellWord(reference);
  const made = createdAtMs === null ? '' : `, created at ${iso(createdAtMs)}`;
  const named = reference === null ? 'without a reference' : `with reference ${reference}`;
  const link = `The service lists link ${id} ${named}${made}, but this restored database does not know it.`;
  if (otherId !== null) return `${link} Here, order ${order} has link ${otherId}. Look at both in the service's panel.`;
  return (
    `${link} If settled opened it after the backup, bring it back: settled links reserve ${order} --amount ` +
    `${amount}${currency} && settled links add ${order} --amount ${amount}${currency} --id ${shellWord(id)}. Its signing ` +
    'secret is lost, so settled rejects its deliveries and asks the service about it instead. If the shop has opened the ' +
    `order again since and got reference_taken, give it the link: ${adoptCommand(reference ?? 'REFERENCE', id)}. If the shop ` +
    'created the link without settled, end this matter.'
  );
}

function unreadableList({ restoredFromMs, why }: UnreadableList): string {
  return (
    `${restoredSentence(restoredFromMs)} settled cannot read that list: ${why}. Look in the service's panel at the links ` +
    'that were created since then. If a link is not in settled orders list, bring it back: settled links reserve REFERENCE ' +
    '--amount AMOUNT, then settled links add REFERENCE --amount AMOUNT --id ID. Then end this matter.'
  );
}
