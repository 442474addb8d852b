import { formatAmount } from '../domain/money.ts';
import { isOpen } from '../domain/order.ts';
import type { HeaderNames } from '../paylink/events.ts';
import type { Diagnosis } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { RejectionSummary } from '../store/verbs/lists.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import { UNREAD_REASONS } from '../vocabulary.ts';
import { inNumber, shellWord, total, words } from './glossary.ts';

/** `headerNames`: where settled looks for the signature and the timestamp of a delivery today. */
type Means = { headerNames: HeaderNames };

/** Which deliveries of an order's link settled rejected, and what is wrong with them. */
export function explainRefusedDeliveries(timeline: Timeline, { headerNames }: Means): string[] {
  const { rejections } = timeline;
  const unread = rejections.filter(({ reason }) => UNREAD_REASONS.has(reason));
  const forged = rejections.filter(({ reason }) => !UNREAD_REASONS.has(reason));
  const diagnoses = rejections.map(({ diagnosis }) => readDiagnosis(diagnosis)).filter((one) => one !== null);
  const { secretFlaw: flaw } = timeline;
  const isOfSecret = rejections.some(({ reason }) => reason === 'signature_wrong');
  return [
    ...counted(forged, 'as not authentic'),
    ...counted(unread, 'unread'),
    ...diagnoses.map((diagnosis) => explainDiagnosis(diagnosis).answer),
    ...(rejections.some((one) => isLookedForNow(one, headerNames))
      ? ['Now it looks for those that they carried.']
      : []),
    ...(flaw !== null && isOfSecret
      ? [`The service named a signing secret for this link that settled cannot use (${flaw}), and may sign with it.`]
      : []),
  ];
}

function counted(rejections: readonly RejectionSummary[], how: string): string[] {
  const count = total(rejections);
  if (count === 0) return [];
  const reasons = rejections.map(({ reason }) => `${words.rejection(reason)} (${reason})`);
  return [`settled rejected ${inNumber(count, 'delivery', 'deliveries')} ${how}: ${reasons.join('; ')}.`];
}

/** What the service does after a rejection, and what a person should do about the cause. */
export function nextOfRefused(timeline: Timeline, { headerNames }: Means): string[] {
  const { order, hints } = timeline;
  const last = Math.max(0, ...timeline.events.map((one) => (one.reading === null ? one.receivedAtMs : 0)));
  // An authentic delivery that came later shows that the cause is gone.
  const rejections = timeline.rejections.filter(({ lastAtMs }) => lastAtMs > last);
  if (!isOpen(order.state) || hints.length + rejections.length === 0) return [];
  return [
    'The service sends a rejected delivery again after 1 min, 5 min, 15 min, 1 h, 4 h and 12 h.',
    ...(hints.length === 0 ? [] : ["Check this machine's clock."]),
    ...new Set(
      rejections
        .filter((rejection) => !isLookedForNow(rejection, headerNames))
        .flatMap((rejection) => nextOfRejection(timeline, rejection)),
    ),
  ];
}

/** Whether deliveries without the right headers carried the headers that settled looks for today. */
function isLookedForNow({ diagnosis: text }: RejectionSummary, { signature }: HeaderNames): boolean {
  const diagnosis = readDiagnosis(text);
  return diagnosis?.code === 'other_header_names' && diagnosis.names.includes(signature);
}

/** What to do about deliveries rejected for one reason: the advice of their diagnosis, or how to find the cause. */
function nextOfRejection(timeline: Timeline, { reason, diagnosis: text }: RejectionSummary): string[] {
  const diagnosis = readDiagnosis(text);
  const { reference, amount, link } = timeline.order;
  const advice = diagnosis === null ? [] : explainDiagnosis(diagnosis).advice;
  if (reason !== 'signature_wrong') return advice;
  if (isAdopted(timeline)) return [...advice, ADOPTED];
  const isOpened = timeline.opening !== null;
  if (isOpened && timeline.secretFlaw !== null) return [OPERATOR_KNOWS];
  const word = shellWord(reference);
  const save =
    `To find the cause, save a rejected delivery and check it: settled verify --order ${word} --body FILE --signature TEXT ` +
    '--timestamp TEXT';
  const id = link === null || link.id === null ? 'ID' : shellWord(link.id);
  const isUnexplained = diagnosis === null || diagnosis.code === 'wrong_secret_or_altered_body';
  return [
    ...advice,
    ...(isUnexplained ? [save] : []),
    isOpened
      ? `settled created this link's secret, so you cannot enter another one. ${OPERATOR_KNOWS}`
      : `If the secret is wrong, correct it: settled links add ${word} --amount ${formatAmount(amount)} --currency ` +
        `${amount.currency} --id ${id} --secret-file FILE`,
  ];
}

const OPERATOR_KNOWS =
  "Ask the service's operator which secret it signs this link's webhooks with. It must be the one that settled gave it, or " +
  'one that it names in full when it creates a link. Until then, settled learns of the payment by asking.';

const ADOPTED = 'settled did not create this link, so it need not know its secret: it learns of the payment by asking.';

/** Whether a person gave the order its link. */
export function isAdopted({ order, history }: Pick<Timeline, 'order' | 'history'>): boolean {
  return history.some(({ what }) => what === `link ${order.link?.id} adopted`);
}

/** A diagnosis as the store keeps it; null if it keeps none. */
export function readDiagnosis(text: string | null): Diagnosis | null {
  return text === null ? null : (JSON.parse(text) as Diagnosis);
}
