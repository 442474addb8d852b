import {
  type AttentionKind,
  type AttentionParams,
  concernOf,
  isWholeSentence,
  type MatterGroup,
  type UnreadableList,
} from '../domain/matter.ts';
import { ENDED_BY_ANY } from '../domain/rejection.ts';
import type { Diagnosis } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { AttentionSummary, ListedMatter, Matters } from '../store/contract_queries.ts';
import { inWords } from '../work/clock.ts';
import { decisionWords } from './decision.ts';
import {
  adoptCommand,
  explainHold,
  inMoney,
  inNumber,
  inPanel,
  iso,
  restoredSentence,
  sentence,
  shellWord,
  total,
  words,
} from './glossary.ts';
import { inARow, lastAttempt, refusalAdvice } from './shop_status.ts';

/** What a person reads about what needs a person: of all matters together, and of each. */

/** One or two sentences for a person who asks whether anything is wrong. */
export function summarizeAttention(
  { groups, money }: Pick<Matters, 'groups' | 'money'>,
  { nowMs, isFiltered }: { nowMs: number; isFiltered: boolean },
): string {
  if (groups.length === 0) {
    return isFiltered ? 'Nothing that was asked for needs a person.' : 'Nothing needs a person.';
  }
  const count = total(groups);
  const waitedMs = Math.max(0, nowMs - Math.min(...groups.map(({ oldestAtMs }) => oldestAtMs)));
  const waited = inWords(Math.floor(waitedMs / 1000) * 1000);
  const needs = `${inNumber(count, 'matter needs', 'matters need')} a person; the oldest has waited ${waited}.`;
  return `${needs} ${money.orders === 0 ? withoutMoney(groups) : withMoney(money)}`;
}

/** What was not settled may tell of a payment that was not counted, and so may a kind that a later version wrote. */
function withoutMoney(groups: readonly MatterGroup[]): string {
  const concerns = groups.map(({ kind }) => concernOf(kind));
  const mayTell = concerns.some((concern) => concern === undefined || concern === 'unsettled');
  return mayTell ? 'What was not settled may be about money.' : 'None of it is about money.';
}

function withMoney({ orders, sums, isWhole }: Matters['money']): string {
  const captured = sums
    .filter(({ balance }) => balance !== 0n)
    .map(({ balance, currency }) => inMoney({ amountMinor: balance, currency }));
  const count = `${isWhole ? '' : 'at least '}${inNumber(orders, 'order')}`;
  if (captured.length > 0) return `Money: ${count}, ${captured.join(' and ')} captured in all.`;
  const asked = sums.map(({ asked, currency }) => inMoney({ amountMinor: asked, currency }));
  return `Money: ${count} of ${asked.join(' and ')}, nothing captured.`;
}

/** What an answer about a matter depends on beside it: its own number, and whether there is an API to ask. */
type Reader = { key: number; canAsk: boolean };

/** What happened and what to do, for one matter of the list. `canAsk`: whether an API is configured. */
export function explainMatter(matter: ListedMatter, canAsk: boolean): string {
  const { kind, key, order } = matter;
  if (kind !== 'hold') return explainAttention(matter, { key, canAsk });
  if (order === null) return '';
  const word = shellWord(order.reference);
  const resolve = `settled orders resolve ${word}`;
  const { accept, reject } = decisionWords(order);
  return (
    `${explainHold(order)} More about it: settled why ${word}. ${accept}: ${resolve} --accept --reason TEXT. ` +
    `Or ${reject}: ${resolve} --reject --reason TEXT`
  );
}

/**
 * What happened and what to do, for an open row of attention. `detail` is empty in rows of this version. Versions before
 * it stored the whole sentence; one that still serves the same database may also have added a sentence, after a space.
 */
export function explainAttention(
  { kind, subject, params, detail }: Pick<AttentionSummary, 'kind' | 'subject' | 'params' | 'detail'>,
  reader: Reader,
): string {
  const stored = shownDetail(detail, reader);
  if (params === null) return stored;
  const made = attentionSentence(kind as AttentionKind, subject, params as never, reader);
  if (!isWholeSentence(stored)) return made + stored;
  return (params as Partial<AttentionParams['event_not_understood']>).event === null ? stored + made : stored;
}

/** The sentence of a matter of one kind. A kind that a later version raised has no sentence here. */
export function attentionSentence<K extends AttentionKind>(
  kind: K,
  subject: string,
  params: AttentionParams[K],
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
  return SENTENCES[kind](subject, params, commands);
}

type Commands = { end: string; check: (reference: string) => string };
type SentenceOf<K extends AttentionKind> = (subject: string, params: AttentionParams[K], commands: Commands) => string;

const SENTENCES: { readonly [K in AttentionKind]: SentenceOf<K> } = {
  amount_mismatch: (reference, { payments }, { end }) =>
    `What the service says of the money of order ${reference} does not agree with the order, or with what settled counted ` +
    `before (${inPanel(payments)}). settled leaves the order as it is. ${look(reference)} Refund there what is too much, or ` +
    `settle with the customer what is missing. Then end this matter: ${end}`,
  api_key_refused: () =>
    'The service refuses the API key (401), so settled can neither open links nor ask about them. Put the right key in ' +
    'SETTLED_API_KEY_FILE, which settled reads again, or in SETTLED_API_KEY and restart settled.',
  deliveries_refused: (reason, { diagnosis }) => {
    const found = diagnosis === null ? null : explainDiagnosis(diagnosis as Diagnosis);
    const which = ENDED_BY_ANY.includes(reason) ? 'a delivery verifies' : 'a delivery of one of these links verifies';
    return [
      `Deliveries were refused: ${words.rejection(reason)} (${reason}).`,
      ...(found === null ? [] : [found.answer, ...found.advice.map(sentence)]),
      `Which ones: settled rejections. This ends within minutes when ${which}.`,
    ].join(' ');
  },
  duplicate_payment: (reference, { isHeld, owed, kept }, { check }) => {
    const found = `Order ${reference} was paid more than once.`;
    const ends = `This ends when settled reads of the refund: ${check(reference)}`;
    const resolve = `settled orders resolve ${shellWord(reference)}`;
    const keeps = kept === null ? '' : ` Keep ${inPanel(kept)}, which pays the order.`;
    return isHeld
      ? `${found} It is held: decide first (${resolve} --accept, or --reject, with --reason TEXT). Then refund in the ` +
          `service's panel what is too much: ${inPanel(owed)}. ${ends}`
      : `${found} Refund in the service's panel: ${inPanel(owed)}.${keeps} ${ends}`;
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
        : ` The order was paid since, by event ${paidByEvent}: check that it was the same payment.`;
    if (event === null) return paid;
    const why = event.why === null ? 'it is no JSON that can be read' : inClause(event.why);
    const asked = event.isUnanswered ? ' The service, asked about its link, gave no answer that says more.' : '';
    return (
      `Event ${event.key} is authentic, but settled does not understand it: ${why}. settled counted nothing for it. Look at it ` +
      `(settled events show ${event.key}), and at the payment in the service's panel. Once settled has an API to ask ` +
      `(SETTLED_API_URL, SETTLED_API_KEY), it asks about the order itself. When this is over: ${end}${asked}${paid}`
    );
  },
  link_disabled: (reference, _nothing, { check }) =>
    `The payment link of order ${reference} is switched off at the service and was not paid: the customer cannot pay ` +
    `there. Switch it on in the service's panel; this ends with the service's next answer (${check(reference)}). If the ` +
    `link is meant to be off: settled orders cancel ${shellWord(reference)}`,
  link_mismatch: deadEvent,
  link_missing: (reference) =>
    `The service knows no link of order ${reference} (404), so settled cannot ask about it. Look for the link in the ` +
    `service's panel; if its id here is wrong, correct it (settled links add).`,
  link_not_known: (subject, params) =>
    'restoredFromMs' in params ? unreadableList(params) : unknownLink(subject, params),
  link_not_opened: (reference, { code, message, needsId }) =>
    `Order ${reference} waits for its link (${code}): ${message} ${needsId ? `${bringId(reference)} ` : ''}settled keeps ` +
    `trying; settled why ${shellWord(reference)} shows its progress.`,
  link_withheld: (reference, { linkId, why }) =>
    `settled does not show link ${linkId} of order ${reference} to the shop. ${why} Look at the link in the service's ` +
    'panel; settled still counts what is paid on it.',
  merchant_inactive: () =>
    'The service says that the merchant is not active (403), so settled cannot ask about anything. Look at the account in ' +
    "the service's panel; settled continues once the account is active.",
  money_unnamed: (reference, { amount }, { end }) =>
    `Order ${reference} was paid by an event that names no money, and settled has no API to ask: it counted what the order ` +
    `asks, ${inMoney(amount)}. ${look(reference)} If less came, settle the rest with the customer. Then end this matter: ${end}`,
  notices_dead: (_shop, { notice, message }) =>
    `The shop did not take notice ${notice}: ${message} See all: settled notices list --status dead. Send ` +
    'them again when the shop is well: settled notices resend --failed --yes (with --dry-run it only lists them)',
  quote_reading_doubtful: (_quote, { count }) =>
    `The quotes of ${count} payments in a row named less money than their links, or none that can be read, while the links ` +
    "agreed with the orders. settled ignores such quotes until one agrees again. Compare a payment in the service's panel " +
    'with what settled counted: it held the orders before (settled orders list --state held).',
  reference_taken: (reference, { code, message, foreignId }) =>
    `settled cannot give order ${reference} a link (${code}): ${message} Look at the service's link. If it is this order's, ` +
    `for the same money and unpaid, let the order have it: ${adoptCommand(reference, foreignId)} (POST ` +
    '/v1/orders/…/adopt). If not, open the order under another reference.',
  refund_due: (reference, { payments }, { check }) =>
    `Order ${reference} is cancelled, and its money is owed back to the customer. Refund it in the service's panel: ` +
    `${inPanel(payments)}. This ends when settled reads of the refund: ${check(reference)}`,
  secret_unusable: (_name, { reference, flaw }, { end }) =>
    'When settled creates links, the service answers with a webhookSecret that is not the one it was given, and that cannot ' +
    `be used: ${flaw}. It did so for the link of order ${reference}, and may have done so for all links since. If it signs ` +
    'with such a secret, settled refuses the webhooks, and learns of the payments by asking. Ask the operator of the ' +
    `service which secret it signs with. Then end this matter: ${end}`,
  service_disagrees: (reference, { payments }, { end, check }) =>
    `The service says less of the money of order ${reference} than settled counted (${inPanel(payments)}); ` +
    `settled keeps what it counted. ${look(reference)} If the money is there, this ends with the next answer that says so: ` +
    `${check(reference)}. If it is gone, take back what was fulfilled. Then end this matter: ${end}`,
  shop_refuses_notices: (_shop, failures) =>
    `The shop takes no notices: ${inARow(failures)}, and none was taken since; ${lastAttempt(failures)}. ` +
    refusalAdvice(failures),
  status_unclear: (reference, { payments }, { end, check }) =>
    `The service contradicts itself about a payment of order ${reference}, or does not say which of its payments it ` +
    `means (${inPanel(payments)}); nothing was changed. ${look(reference)} Ask again: ${check(reference)}. If that ` +
    `does not settle it, do by hand what the panel shows. Then end this matter: ${end}`,
};

function look(reference: string): string {
  return `Look at it in the service's panel; settled why ${shellWord(reference)} shows what was said when.`;
}

/** A reason that was noted as a sentence, as the end of another sentence. */
function inClause(reason: string): string {
  return reason.replace(/^[A-Z]/, (letter) => letter.toLowerCase()).replace(/\.$/, '');
}

function deadEvent(eventKey: string, { code, message }: { code: string; message: string }, { end }: Commands): string {
  return (
    `Event ${eventKey} cannot be settled (${code}): ${message} Nothing was counted for it. Look at it (settled events show ` +
    `${eventKey}), and at the payment in the service's panel. When its cause is gone, settle it again: settled events replay ` +
    `${eventKey}. If it is not about this order: ${end}`
  );
}

/** What a person does if the service may have made an order's link. */
export function bringId(reference: string): string {
  return (
    'The service may have made the link. If its panel shows it, bring its id: ' +
    `${adoptCommand(reference, null)}; or have the service send an event of it.`
  );
}

/** What a person does about a link that a restored store does not know: the shop may have made it without settled. */
function unknownLink(id: string, params: Exclude<AttentionParams['link_not_known'], UnreadableList>): string {
  const { reference, createdAtMs, otherId } = params;
  const amount = params.amount === null ? 'AMOUNT' : shellWord(params.amount);
  const currency = params.currency === null ? '' : ` --currency ${shellWord(params.currency)}`;
  const order = reference === null ? 'REFERENCE' : shellWord(reference);
  const made = createdAtMs === null ? '' : `, made ${iso(createdAtMs)}`;
  const named = reference === null ? 'without a reference' : `of reference ${reference}`;
  const link = `The service lists link ${id} ${named}${made}, and this restored store does not know it.`;
  if (otherId !== null) return `${link} Order ${order} has link ${otherId} here: look at both in the service's panel.`;
  return (
    `${link} If settled opened it after the backup, bring it back: settled links reserve ${order} --amount ` +
    `${amount}${currency} && settled links add ${order} --amount ${amount}${currency} --id ${shellWord(id)}. Its signing ` +
    'secret is lost with the store, so settled refuses its deliveries and asks the service about it instead. If the shop ' +
    `has opened the order again since, and was answered reference_taken: ${adoptCommand(reference ?? 'REFERENCE', id)}. If ` +
    'the shop made the link without settled, end this matter.'
  );
}

function unreadableList({ restoredFromMs, why }: UnreadableList): string {
  return (
    `${restoredSentence(restoredFromMs)} settled cannot read that list: ${why}. Look at the links that the service's panel ` +
    'shows since then, and bring back those that are not in settled orders list: settled links reserve REFERENCE ' +
    '--amount AMOUNT, then settled links add REFERENCE --amount AMOUNT --id ID. Then end this matter.'
  );
}

const END_MATTER = 'settled attention end ID --reason TEXT';
const CHECK = /settled orders check (?:'(?:[^']|'\\'')*'|[\w.:@%+=/-]*[\w@%+=/-])/g;

/** The sentence that an older version stored, with the matter's number, and with what `check` needs if it is not there. */
function shownDetail(detail: string, { key, canAsk }: Reader): string {
  const numbered = detail.replaceAll(END_MATTER, END_MATTER.replace('ID', String(key)));
  return canAsk
    ? numbered
    : numbered.replace(CHECK, (check) => `${check}, once SETTLED_API_URL and SETTLED_API_KEY are set`);
}
