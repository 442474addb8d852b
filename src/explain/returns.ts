import { isReadable, readSum, statedWords } from '../domain/ledger.ts';
import type { NamedPayment, PaymentList, SaidReturn } from '../domain/matter.ts';
import { inMoney, type Money } from '../domain/money.ts';
import { capturedWords, inPanel, paymentName } from './glossary.ts';

/** Sentences about money that went back or is owed back. The service has no word for a part of a payment. */

/** What to do about payments that are owed back. If none is there, what was captured of them is disputed. */
export function refundWords(owed: PaymentList): string {
  const named = owed.named.filter(({ status }) => status === 'completed');
  const partly = owed.named.filter(({ status, isBeside }) => status !== 'completed' && !isBeside);
  const beside = owed.named.filter(({ isBeside }) => isBeside);
  const whole = owed.count > owed.named.length ? owed : { ...owed, named, count: named.length };
  const words = [
    ...(whole.count === 0 ? [] : [`Refund in the service's panel: ${inPanel(whole)}.`]),
    ...partly.map(partlyBack),
  ];
  if (words.length === 0) return 'What was captured is disputed. Refund it only if the dispute is won.';
  return [...words, ...beside.map((one) => besideWords(one, named))].join(' ');
}

function partlyBack({ id, status, captured, stated = null }: NamedPayment): string {
  const named = stated === null ? 'an unknown sum' : statedWords(stated);
  const left = leftOf(captured, stated && readSum(stated));
  const owed = capturedWords({ captured, stated: null });
  const still = left === null ? 'settled cannot know what is still owed' : `${left} may still be owed`;
  return `Of ${paymentName(id)}, ${owed} was owed, and the service names ${named} as ${status}: ${still}.`;
}

function besideWords(beside: NamedPayment, [owed, ...more]: readonly NamedPayment[]): string {
  const left = owed === undefined || more.length > 0 ? null : leftOf(owed.captured, beside.captured);
  const also = `The service also lists ${inPanel({ named: [beside], count: 1, sums: [] })}`;
  return `${also}. If that is a part of what is owed, ${left ?? 'only the rest'} may still be owed.`;
}

/** What a refund or dispute says whose sum is not what settled counted. */
export function returnWords({ kind, paymentId, counted, isBeside, ...stated }: SaidReturn): string {
  const sum = readSum(stated);
  const which = paymentId === null ? 'the payment' : paymentName(paymentId);
  const names = `The service names ${statedWords(stated)} of ${which} as ${kind}`;
  if (isBeside) {
    return (
      `${names}, and lists that beside another payment of the order. It is a second payment that went back, or a part of ` +
      'the other one: settled cannot know. settled counted it as a payment of its own, in what was captured and in what ' +
      'went back.'
    );
  }
  const whole = counted && isReadable(counted) ? ` of ${inMoney(counted)}` : '';
  const left = counted ? leftOf(counted, sum) : null;
  return (
    `${names}; settled counted the whole payment${whole} as ${kind}, because the service has no word for a part. settled ` +
    `cannot know what is left${left === null ? '' : `: probably ${left}`}.`
  );
}

/** What a person does about such a refund or dispute. */
export function returnAdvice(end: string): string {
  return (
    "Look at the payment in the service's panel. A part cannot be entered in settled, so the order keeps its state and " +
    `balance. Do at the service and in the shop what is still to do. Then end this matter: ${end}`
  );
}

/** What is left of money if only a smaller sum went back, in words; null if that is not known. */
function leftOf(money: Money, sum: Money | null): string | null {
  if (sum?.currency !== money.currency || sum.amountMinor >= money.amountMinor) return null;
  return inMoney({ ...money, amountMinor: money.amountMinor - sum.amountMinor });
}
