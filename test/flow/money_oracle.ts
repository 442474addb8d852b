import {
  ASKED,
  completed,
  isWhole,
  keptOf,
  mayBe,
  owedOf,
  type Paid,
  readStep,
  type Script,
  sumsOf,
  type Truth,
} from './money_cases.ts';
import { countedOnPage, idOf, moneyIn, type Said } from './money_surfaces.ts';

/** What may be said of an order's money, and what must be: a rule for each surface, which names what is false. */

export type Known = { reference: string; script: Script; truth: Truth; said: Said };
type Rule = (known: Known) => (string | false | undefined)[];

/** The faults of a rule, with the case that shows each. */
export function faultsOf(rule: Rule, all: readonly Known[]): string[] {
  return all.flatMap((known) =>
    rule(known)
      .filter((fault) => typeof fault === 'string')
      .map((fault) => `${known.script.join(', ')} → ${known.said.order.state}: ${fault}`),
  );
}

const money = ({ cents, currency }: Pick<Paid, 'cents' | 'currency'>) => `${(cents / 100).toFixed(2)} ${currency}`;
const asked = `${ASKED.amount} ${ASKED.currency}`;
export const list = (texts: readonly string[]) => texts.toSorted().join(', ') || 'nothing';

/** The fault that a surface says one thing, and another is true. */
export function differs(what: string, said: string, truth: string): string | false {
  return said !== truth && `${what} is “${said}”, and in truth “${truth}”`;
}

/** The payments that a text names, as the cases name them. */
const namedIn = (text: string) => [
  ...new Set([...text.matchAll(/\bpay_n\d+_([a-z])\b/g)].map(([, id]) => id as string)),
];

/** What is wrong with an order of this truth in its state: all that a person or the service has still to make right. */
function isRight({ truth, said }: Known): boolean {
  const { state } = said.order;
  const owesNothing = owedOf(truth, state).length === 0 && !truth.isRefundDue;
  const kept = keptOf(truth, state);
  const isPaidRight = kept !== null && isWhole(kept) && !truth.isUnnamed;
  return state !== 'held' && state !== 'disputed' && owesNothing && (state !== 'paid' || isPaidRight);
}

export const RULES: Readonly<Record<string, Rule>> = {
  'the document: state, payments and sums': ({ reference, truth, said }) => {
    const { order } = said;
    const { state, payments, paymentsTotal, holds } = order;
    const counted = payments.map((one) => `${one.id} ${one.status} ${one.amount} ${one.currency}`);
    const came = truth.payments.map((one) => `${idOf(reference, one.id)} ${one.status} ${money(one)}`);
    return [
      !mayBe(truth, state) && `${state} is not what its payments allow`,
      differs('payments', list(counted), list(came)),
      differs('sums', JSON.stringify(paymentsTotal.sums), JSON.stringify(sumsOf(truth))),
      paymentsTotal.count !== truth.payments.length && `${paymentsTotal.count} payments are counted`,
      holds.length > 0 !== (state === 'held') && `${holds.length} holds`,
      differs('the timeline’s order', said.timeline.order.state, state),
    ];
  },

  'the flags: what is owed, what is less, what is late': ({ truth, said }) => {
    const { state, flags } = said.order;
    const has = (flag: string) => (flags as readonly string[]).includes(flag);
    const kept = keptOf(truth, state);
    const own = sumsOf(truth).find(({ currency }) => currency === ASKED.currency);
    const isLess = state === 'paid' && Number(own?.balance ?? 0) < Number(ASKED.amount);
    const owes = owedOf(truth, state).length > 0;
    const isSettled = truth.payments.some(({ id }) => id === truth.payer);
    return [
      state !== 'held' && (has('duplicate_payment') || has('refund_due')) !== (owes || truth.isRefundDue) && 'owed?',
      has('refund_due') !== truth.isRefundDue && 'refund_due?',
      has('duplicate_payment') && kept === null && state === 'paid' && 'what is kept?',
      has('underpaid') !== isLess && 'underpaid?',
      has('late') !== (truth.isLate && isSettled) && 'late?',
      has('money_unnamed') !== truth.isUnnamed && 'money_unnamed?',
      has('overpaid') && 'overpaid?',
    ];
  },

  'CSV: captured and balance are those of the payments': ({ reference, truth, said }) => {
    const { csv, order } = said;
    const [own, other] = [true, false].map((isOwn) =>
      sumsOf(truth).filter(({ currency }) => (currency === ASKED.currency) === isOwn),
    );
    return [
      differs('captured', csv.captured ?? '?', own?.[0]?.captured ?? ''),
      differs('balance', csv.balance ?? '?', own?.[0]?.balance ?? ''),
      differs('otherCurrencies', csv.otherCurrencies ?? '?', list(other?.map(capturedOf) ?? []).replace('nothing', '')),
      differs('amount', `${csv.amount} ${csv.currency}`, asked),
      differs('state and flags', `${csv.state} ${csv.flags}`, `${order.state} ${order.flags.join(' ')}`),
      differs('holds', csv.holds ?? '?', order.holds.map(({ reason }) => reason).join(' ')),
      csv.paymentId !== '' && !truth.payments.some((one) => isThe(one, csv, reference)) && 'the payment is another',
    ];
  },

  'the row of the console': ({ truth, said }) => {
    const { row, order } = said;
    const sums = sumsOf(truth).flatMap(({ currency, captured, balance }) =>
      [captured, ...(captured === balance ? [] : [balance])].map((amount) => `${amount} ${currency}`),
    );
    const badges = [...(row['To look at'] ?? '').matchAll(/class="badge [a-z]+">([^<]+)</g)].map(([, text]) => text);
    return [
      differs('Captured', moneyIn(row.Captured ?? '?').join(', '), sums.join(', ')),
      differs('Asked', moneyIn(row.Asked ?? '?').join(', '), asked),
      !row.State?.includes(`>${order.state.replaceAll('_', ' ')}<`) && 'its badge has another state',
      order.flags.some((flag) => !badges.includes(flag.replaceAll('_', ' '))) && 'a flag has no badge',
    ];
  },

  'the page of the order: what was captured, what is left, and whether all agree': (known) => {
    const { truth, said } = known;
    const sums = sumsOf(truth);
    const isBack = sums.some(({ captured, balance }) => captured !== balance);
    const shown = (name: string) => moneyIn(countedOnPage(said.page, name) ?? '').join(', ');
    const balances = sums.map(({ balance, currency }) => `${balance} ${currency}`).join(', ');
    const rows = [...said.page.matchAll(/<tr id="row-pay_n\d+_([a-z])">(.*?)<\/tr>/gs)].map(([, id, row = '']) => {
      const status = /data-head="Status".*?>(completed|refunded|disputed)</s.exec(row)?.[1];
      return `${id} ${status} ${moneyIn(row)[0]}`;
    });
    const says = /<p class="difference soft">[^<]* agree\.<\/p>/.test(said.page);
    return [
      differs('Captured', shown('Captured'), sums.map(capturedOf).join(', ')),
      differs('Balance', shown('Balance'), isBack ? balances : ''),
      differs('payments', list(rows), list(truth.payments.map((one) => `${one.id} ${one.status} ${money(one)}`))),
      says && !isRight(known) && 'it says that all agree',
      says && truth.isElsewhere && 'it says that all agree, beside an event that was not counted',
    ];
  },

  'what the service says, and how it differs': (known) => {
    const { truth, said, script } = known;
    const { service, differences } = said.timeline;
    const says: string[] = service?.says ?? [];
    const words = { completed: 'is completed', refunded: 'was refunded', disputed: 'is disputed' };
    const last = script.map(readStep).findLast(({ does }) => ['pay', 'refund', 'dispute'].includes(does));
    const one = truth.payments.find(({ id }) => id === last?.payment);
    const isTrue = (line: string) => one !== undefined && line.startsWith(`the payment ${words[one.status]} (pay_`);
    return [
      ...says
        .filter((line) => line.startsWith('the payment'))
        .map((line) => (!isTrue(line) || !namedIn(line).includes(one?.id ?? '') ? `“${line}”` : false)),
      ...says.map((line) => onlyTrueMoney(line, truth)),
      ...(differences as string[]).map((line) => onlyTrueMoney(line, truth)),
      isRight(known) && !truth.isElsewhere && differences.length > 0 && `“${differences[0]}”`,
      truth.isElsewhere && differences.length === 0 && 'no difference, although an event was not counted',
    ];
  },

  'why: the answer': (known) => {
    const { truth, said } = known;
    const { answer } = said.timeline as { answer: string };
    const { state } = said.order;
    const [, brought, more] = /([\d.]+) BRL came.*, [\d.]+ BRL (more|less) than it asks for/.exec(answer) ?? [];
    const isBack = /Reported as paid: ([^.]*(?:\.\d\d[^.]*)*)\./.exec(answer)?.[1];
    return [
      !new RegExp(FIRST_WORDS[state] ?? '^$').test(answer) && `“${answer}”`,
      onlyTrueMoney(answer, truth),
      isBack !== undefined && differs('Reported as paid', reported(isBack), list(truth.payments.map(inList))),
      more !== undefined && Number(brought) > Number(ASKED.amount) !== (more === 'more') && `“${answer}”`,
      /\bmust be refunded/.test(answer) && isRight(known) && 'what must be?',
    ];
  },

  'advice: what to refund is what is owed, and nothing is done while something is': ({ truth, said }) => {
    const next = said.timeline.next as string[];
    const { state } = said.order;
    const owed = owedOf(truth, state).map(({ id }) => id);
    const refunds = next.filter((line) => /^Refund\b/.test(line));
    const isDone = next.some((line) => line.startsWith('Nothing more to do'));
    return [
      differs('to refund', list(refunds.flatMap(namedIn)), list(owed)),
      refunds.length > 0 && owed.length === 0 && `“${refunds[0]}”`,
      ...next.map((line) => onlyTrueMoney(line, truth)),
      isDone &&
        (owed.length > 0 || ['held', 'disputed'].includes(state) || truth.isElsewhere) &&
        'it says that nothing is to do',
      (state === 'held') !== next.some((line) => / --reject --reason TEXT$/.test(line)) && 'the decision?',
    ];
  },

  'attention: what to refund, what to keep': ({ truth, said }) => {
    const { state } = said.order;
    const owed = owedOf(truth, state).map(({ id }) => id);
    const kept = keptOf(truth, state)?.id;
    const debts = said.matters.filter(({ kind }) => kind === 'refund_due' || kind === 'duplicate_payment');
    return [
      owed.length > 0 && debts.length === 0 && 'no matter says what is owed',
      ...said.matters.map(({ detail }) => onlyTrueMoney(detail, truth)),
      ...said.matters.map(({ detail }) => onlyTrueStatuses(detail, truth)),
      ...debts.flatMap(({ detail }) => {
        if (state === 'held') return [];
        const [refund = '', keep = ''] = detail.split(/\bKeep\b/);
        const isKept = keep === '' || namedIn(keep).join() === kept;
        const there = namedIn(refund).filter((id) => completed(truth).some((one) => one.id === id));
        return [differs('to refund', list(there), list(owed)), !isKept && `keep ${namedIn(keep).join()}?`];
      }),
    ];
  },

  'previews: what was captured is what is there': ({ truth, said }) => {
    if (said.previews === null) return [];
    const there = completed(truth);
    const { accept, reject } = said.previews;
    const says = said.page.includes('id="accept"><p><strong>Accept the money:</strong> not possible');
    const { sentences = [], warning = null, raised = [], flags = [] } = accept.body.preview ?? {};
    const captured = sentences.flatMap((line: string) => /what was captured: (.*)\. The ledger/.exec(line)?.[1] ?? []);
    const advice = [...said.timeline.next, ...said.matters.map(({ detail }) => detail)];
    const offers = advice.some((line: string) => / --accept --reason TEXT/.test(line));
    return [
      offers !== (accept.status === 200) && 'the advice says otherwise',
      differs('the answer', String(accept.status), there.length > 0 ? '200' : '409'),
      says !== (accept.status === 409) && 'the page says otherwise',
      captured.length > 0 && differs('captured', list(captured[0].split(', ')), list(there.map(money))),
      ...sentences.map((line: string) => onlyTrueMoney(line, truth)),
      warning !== null && there.length > 0 && `“${warning}”`,
      accept.status === 200 && raised.includes('duplicate_payment') !== there.length > 1 && 'a duplicate?',
      accept.status === 200 && flags.includes('duplicate_payment') !== there.length > 1 && 'the flag of a duplicate?',
      reject.status !== 200 && `rejecting is answered ${reject.status}`,
      (reject.body.preview?.raised ?? []).includes('refund_due') !== there.length > 0 && 'a refund is due?',
    ];
  },

  'client: where a customer is sent, and what a shop fulfils': ({ truth, said }) => {
    const { order, notices, payUrl } = said;
    const last = notices.at(-1)?.data.order;
    const fulfils = last?.state === 'paid';
    const isUntouched = truth.payments.length === 0 && !truth.isBegun && !truth.isExpired && !truth.isCancelled;
    const pays = keptOf(truth, 'paid');
    const mayFulfil = pays !== null && (isWhole(pays) || truth.isAccepted) && !truth.isCancelled;
    return [
      differs('payUrl', String(payUrl), isUntouched ? String(order.link?.url) : 'null'),
      (order.link?.url ?? null) === null && 'the link has no address',
      differs('the state in the last notice', last?.state ?? 'awaiting_payment', order.state),
      fulfils && !mayFulfil && 'the shop fulfils what is not paid',
      !fulfils && order.state === 'paid' && 'the shop does not fulfil what is paid',
      fulfils && last.flags.some((flag) => flag === 'refund_due') && 'the shop fulfils what is owed back',
    ];
  },
};

const FIRST_WORDS: Readonly<Record<string, string>> = {
  awaiting_payment: '^Order \\S+ \\(100\\.00 BRL\\) is not paid\\.',
  payment_pending: '^Order \\S+ is not paid yet\\. The customer has begun to pay 100\\.00 BRL',
  paid: '^Order \\S+ \\(100\\.00 BRL\\) is paid[.,]',
  held: '^Order \\S+ \\(100\\.00 BRL\\) is held: .* A person must decide\\.',
  expired: '^Order \\S+ \\(100\\.00 BRL\\) is not paid: its payment link has expired',
  cancelled: '^Order \\S+ \\(100\\.00 BRL\\) is cancelled[.:]',
  refunded: '^Order \\S+ \\(100\\.00 BRL\\) was paid, but its payment was refunded\\.',
  disputed: '^Order \\S+ \\(100\\.00 BRL\\) was paid, but its payment is disputed',
};

const capturedOf = ({ captured, currency }: { captured: string; currency: string }) => `${captured} ${currency}`;
const inList = (one: Paid) => `${money(one)}${one.status === 'completed' ? '' : ` (${one.status} since)`}`;
const reported = (text: string) => list(text.split(' and '));

function isThe({ id, status }: Paid, csv: Record<string, string>, reference: string): boolean {
  return csv.paymentId === idOf(reference, id) && csv.paymentStatus === status;
}

/** A sentence names no money that neither the order asks nor a payment brought. */
function onlyTrueMoney(text: string, truth: Truth): string | false {
  const known = new Set([
    asked,
    ...truth.payments.map(money),
    ...truth.payments.map(missing),
    ...sumsOf(truth).map(capturedOf),
  ]);
  const said = [...text.matchAll(/-?\d+\.\d\d [A-Z]{3}/g)].map(([found]) => found);
  const false_ = said.find((one) => !known.has(one));
  return false_ !== undefined && `${false_} in “${text}”`;
}

/** How much less or more than what is asked a payment brought. */
function missing(paid: Truth['payments'][number]): string {
  const [amount, currency] = money(paid).split(' ');
  return `${Math.abs(Number(amount) - Number(ASKED.amount)).toFixed(2)} ${currency}`;
}

/** A sentence that lists payments as the service's panel shows them says what became of each. */
function onlyTrueStatuses(text: string, truth: Truth): string | false {
  const listed = text.matchAll(/payment pay_n\d+_([a-z]) of (\d+\.\d\d [A-Z]{3})(?:, (refunded|disputed))?/g);
  for (const [found, id, sum, status = 'completed'] of listed) {
    const one = truth.payments.find((paid) => paid.id === id);
    if (one === undefined || one.status !== status || money(one) !== sum) return `“${found}” in “${text}”`;
  }
  return false;
}
