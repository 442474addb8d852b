/**
 * The cases of the table of money, and what is true of each. This is an oracle: it follows docs/states.md and knows
 * nothing of the code, so it imports none of it.
 */

/** What is done to an order, one step after the other: `pay a`, `pay b 60`, `pay b 100 USD`, `pay a unnamed`, `accept` … */
export type Script = readonly string[];

export type Step = { does: string; payment: string; amount: string | null; currency: string };

export const ASKED = { amount: '100.00', currency: 'BRL' } as const;

export function readStep(step: string): Step {
  const [does = '', payment = '', given = '100', currency = ASKED.currency] = step.split(' ');
  return { does, payment, amount: given === 'unnamed' ? null : `${given}.00`, currency };
}

/** How an order comes to where it is. */
const HISTORIES: readonly Script[] = [
  [],
  ['expire'],
  ['pay a'],
  ['expire', 'pay a'],
  ['pay a unnamed'],
  ['pay a 60'],
  ['pay a 100 USD'],
  ['cancel', 'pay a'],
  ['pay a 60', 'accept'],
  ['pay a 100 USD', 'accept'],
  ['pay a 60', 'reject'],
  ['pay a', 'refund a'],
  ['expire', 'pay a', 'dispute a'],
  ['refund a'],
  ['dispute a'],
];

/** What stands beside that: one payment beside another that is completed, went back, is other money, or of another link. */
const BESIDES: readonly Script[] = [
  [],
  ['pay b'],
  ['pay b 60'],
  ['pay b 100 USD'],
  ['pay b unnamed'],
  ['refund b'],
  ['dispute b'],
  ['pay b', 'dispute b'],
  ['pay b', 'pay c', 'refund b'],
  ['elsewhere b'],
  ['refund a'],
  ['pay b', 'refund a'],
  ['pay b 60', 'dispute a'],
];

/** Longer stories, for what no pair of the two above leads to. */
const STORIES: readonly Script[] = [
  ['begin a'],
  ['begin a', 'elsewhere b'],
  ['begin a', 'pay a'],
  ['begin a', 'pay b 60'],
  ['begin a', 'refund a'],
  ['begin a', 'expire'],
  ['begin a', 'expire', 'pay a'],
  ['pay a 150'],
  ['pay a 150', 'accept'],
  ['pay a 150', 'reject'],
  ['pay a 150', 'refund a'],
  ['pay a 150', 'pay b'],
  ['cancel'],
  ['cancel', 'pay b 60'],
  ['cancel', 'refund b'],
  ['cancel', 'elsewhere b'],
  ['pay a', 'pay b', 'seen duplicate_payment'],
  ['pay a', 'pay b', 'pay c', 'dispute b', 'refund c'],
  ['pay a 60', 'reject', 'seen refund_due'],
  ['pay a 60', 'pay b', 'dispute b', 'reject', 'refund a'],
  ['pay a 60', 'pay b', 'reject', 'refund a'],
  ['pay a 60', 'pay b', 'reject', 'refund b', 'refund a'],
  ['pay a 60', 'pay b', 'accept', 'refund b'],
  ['pay a 60', 'pay b', 'accept', 'refund a'],
  ['pay a 60', 'reject', 'pay b', 'accept'],
  ['expire', 'pay a 60', 'accept'],
  ['expire', 'pay a', 'pay b'],
  ['expire', 'pay a', 'refund a', 'pay b', 'reject'],
  ['pay a unnamed', 'refund a', 'pay b', 'reject'],
  ['pay a', 'refund a', 'pay b', 'accept', 'pay c'],
  ['pay a', 'pay b 60', 'refund a'],
  ['pay a unnamed', 'refund a', 'pay b'],
  ['pay a', 'pay b 60', 'dispute a', 'pay c'],
  ['pay a', 'pay b 60', 'dispute a', 'pay c', 'reject'],
  ['pay a', 'pay b 60', 'dispute a', 'pay c', 'accept'],
];

/** Whether a step can happen after others: what went back stays gone, and a person decides only what is held. */
function isPossible(script: Script): boolean {
  const { payments } = truthOf(script.slice(0, -1));
  const { does, payment } = readStep(script.at(-1) ?? '');
  const known = payments.find(({ id }) => id === payment);
  return does === 'refund' || does === 'dispute' ? known?.status !== 'refunded' && known?.status !== 'disputed' : true;
}

export function allScripts(): Script[] {
  const pairs = HISTORIES.flatMap((history) => BESIDES.map((beside) => [...history, ...beside]));
  const possible = [...pairs, ...STORIES].filter((script) =>
    script.every((_, at) => isPossible(script.slice(0, at + 1))),
  );
  return [...new Map(possible.map((script) => [script.join(), script])).values()];
}

export type Paid = {
  id: string;
  status: 'completed' | 'refunded' | 'disputed';
  /** In cents. */
  cents: number;
  currency: string;
};

export type Truth = {
  payments: readonly Paid[];
  /** The payment that made the order paid; null if none did. */
  payer: string | null;
  /** Whether a person accepted money that is not what the order asks. */
  isAccepted: boolean;
  isCancelled: boolean;
  /** Whether a person rejected money that was there, and not all of it was refunded since. */
  isRefundDue: boolean;
  /** Payments that a person has seen to. */
  seen: readonly string[];
  isBegun: boolean;
  isExpired: boolean;
  /** Whether an event came that speaks of another link. */
  isElsewhere: boolean;
  /** Whether the money that pays the order was never named. */
  isUnnamed: boolean;
  /** Whether the link had expired when the order was paid. */
  isLate: boolean;
};

const STATUSES: Readonly<Record<string, Paid['status']>> = {
  pay: 'completed',
  refund: 'refunded',
  dispute: 'disputed',
};

/** What the service said and people did, step by step. */
export function truthOf(script: Script): Truth {
  const truth = {
    payments: [] as Paid[],
    payer: null as string | null,
    isAccepted: false,
    isCancelled: false,
    isRefundDue: false,
    seen: [] as string[],
    isBegun: false,
    isExpired: false,
    isElsewhere: false,
    isUnnamed: false,
    isLate: false,
  };
  for (const step of script.map(readStep)) take(truth, step);
  return truth;
}

type Making = { -readonly [Name in keyof Truth]: Truth[Name] } & { payments: Paid[]; seen: string[] };

function take(truth: Making, { does, payment, amount, currency }: Step): void {
  const status = STATUSES[does];
  const there = truth.payments.filter((one) => one.status === 'completed');
  if (status !== undefined) {
    const known = truth.payments.find(({ id }) => id === payment);
    const isFirst = truth.payments.length === 0 && !truth.isCancelled;
    const money = amount ?? ASKED.amount;
    if (known !== undefined) known.status = status;
    else truth.payments.push({ id: payment, status, cents: Number(money) * 100, currency });
    const isRight = money === ASKED.amount && currency === ASKED.currency;
    if (isFirst && isRight) {
      truth.payer = payment;
      truth.isUnnamed = amount === null;
      truth.isLate = truth.isExpired;
    }
    if (truth.payments.every((one) => one.status === 'refunded')) truth.isRefundDue = false;
  }
  if (does === 'begin') truth.isBegun = true;
  if (does === 'expire') truth.isExpired = true;
  if (does === 'elsewhere') truth.isElsewhere = true;
  if (does === 'cancel') truth.isCancelled = true;
  if (does === 'accept') {
    [truth.isAccepted, truth.isCancelled, truth.isRefundDue] = [true, false, false];
    truth.payer ??= there[0]?.id ?? null;
  }
  if (does === 'reject') [truth.isCancelled, truth.isRefundDue] = [true, truth.isRefundDue || there.length > 0];
  if (does === 'seen') {
    if (payment === 'refund_due') truth.isRefundDue = false;
    truth.seen.push(...there.map(({ id }) => id));
  }
}

export const completed = ({ payments }: Truth): Paid[] => payments.filter(({ status }) => status === 'completed');

export const isWhole = ({ cents, currency }: Paid): boolean => cents >= 10_000 && currency === ASKED.currency;

export const isMore = ({ cents, currency }: Paid): boolean => cents > 10_000 && currency === ASKED.currency;

export type Sum = { currency: string; captured: string; balance: string };

/** What came in each currency and what is left of it: the order's own currency first. */
export function sumsOf({ payments }: Pick<Truth, 'payments'>): Sum[] {
  const currencies = [...new Set(payments.map(({ currency }) => currency))].toSorted();
  return currencies.map((currency) => {
    const own = payments.filter((one) => one.currency === currency);
    const total = (of: readonly Paid[]) => (of.reduce((sum, { cents }) => sum + cents, 0) / 100).toFixed(2);
    return { currency, captured: total(own), balance: total(own.filter(({ status }) => status === 'completed')) };
  });
}

/** The payment that the merchant keeps, of an order in this state: none, unless it is paid. */
export function keptOf(truth: Truth, state: string): Paid | null {
  if (state !== 'paid') return null;
  const there = completed(truth);
  return there.find(({ id }) => id === truth.payer) ?? there.find(isWhole) ?? there[0] ?? null;
}

/** What the merchant owes back now. While an order is held, a person decides first. */
export function owedOf(truth: Truth, state: string): Paid[] {
  if (state === 'held') return [];
  const kept = keptOf(truth, state);
  return completed(truth).filter((one) => one !== kept && !truth.seen.includes(one.id));
}

/** Whether a person has something to do about the order's money. */
export function needsAPerson(truth: Truth, state: string): boolean {
  const owes = owedOf(truth, state).length > 0 || truth.isRefundDue;
  return state === 'held' || owes || (truth.isUnnamed && state !== 'held');
}

/** Whether the state is one that the payments allow. */
export function mayBe(truth: Truth, state: string): boolean {
  const { payments, payer, isAccepted, isCancelled, isBegun, isExpired } = truth;
  const statuses = payments.map(({ status }) => status);
  const pays = completed(truth).some((one) => isWhole(one) || (isAccepted && one.id === payer));
  const isTaken = isAccepted && completed(truth).length > 0;
  switch (state) {
    case 'awaiting_payment':
      return payments.length === 0 && !isBegun && !isExpired && !isCancelled;
    case 'payment_pending':
      return payments.length === 0 && isBegun && !isExpired;
    case 'expired':
      return payments.length === 0 && isExpired && !isCancelled;
    case 'cancelled':
      return isCancelled;
    case 'paid':
      return (pays || isTaken) && payer !== null && !isCancelled;
    case 'held':
      return payments.length > 0;
    case 'refunded':
      return !pays && statuses.includes('refunded') && !statuses.includes('disputed');
    case 'disputed':
      return !pays && statuses.includes('disputed');
    default:
      return false;
  }
}
