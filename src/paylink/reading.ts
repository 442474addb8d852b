import { bareFact, type EventContent, type FactKind, MONEY_CAME, type SaidFact } from '../domain/fact.ts';
import type { ServiceLink } from '../domain/order.ts';
import { terminalFault } from '../fault.ts';
import { parseBodyExactly } from '../json.ts';
import { type Details, readDetails } from './answers.ts';
import { readListedDetails } from './payment_details.ts';
import type { LinkSeen } from './service.ts';
import { asObject, FACT_KINDS_BY_STATUS, field, readMoney, statedText, usableId } from './values.ts';

/** What a reading says, which always shows its link. */
export type LinkReading = EventContent & { readonly link: ServiceLink };

/**
 * Reads a link's details, as answered by `GET /payment-links/{id}` for reading `number`, into payment facts. They come
 * in the order of application: what paid the order precedes what took the money back. docs/events.md lists what is read.
 * Terminal fault: `unreadable_event`. The client refuses such answers before they become readings.
 */
export function readReading(body: Uint8Array, number: number): LinkReading {
  const read = readDetails(parseBodyExactly(body));
  if (!read.ok) {
    const message = `Reading ${number} is no link that can be read: ${read.flaw}. Have the order checked again.`;
    throw terminalFault('unreadable_event', message);
  }
  const { link } = read.value;
  const state = stateOf(read.value);
  const { id, url, shortUrl, status, expiresAtMs } = link;
  return {
    linkIds: [id],
    facts: [...state.facts, ...linkFacts(read.value, state)],
    notUnderstood: null,
    linkChanged: false,
    linkStatus: null,
    details: readListedDetails(read.value.payments.map((payment) => [idOf(payment), payment])),
    expiresAtMs: null,
    link: { id, url, shortUrl, status, expiresAtMs },
  };
}

/** The order in which facts are applied. */
const ORDER: readonly FactKind[] = ['completed', 'disputed', 'refunded', 'pending', 'unclear'];

type State = { facts: readonly SaidFact[]; moneyCame: boolean; isClear: boolean };

/** What the payments and the overall status say. At most one fact is unclear, which is enough for a person. */
function stateOf({ link, payments }: Details): State {
  const all = [...ofEachPayment(payments, link), ...ofAllPayments(link)];
  const { said, isOneOfSeveral } = tellApart(all);
  const came = said.filter(({ kind }) => MONEY_CAME.has(kind));
  // The overall status says that a payment was completed (spec §3), and no payment is.
  const isMissing = came.length === 0 && MONEY_CAME.has(kindOf(link.paymentStatus) ?? 'unclear');
  if (isOneOfSeveral || isMissing) said.push(factOf('unclear', link));
  const isClear = said.every(({ kind }) => kind !== 'unclear');
  const facts = ORDER.flatMap((kind) => {
    const ofKind = said.filter((fact) => fact.kind === kind);
    return kind === 'unclear' ? ofKind.slice(0, 1) : ofKind;
  });
  const unpaid = isClear && came.length === 0 ? [bareFact('unpaid')] : [];
  return { facts: [...facts, ...unpaid], moneyCame: came.length > 0, isClear };
}

/**
 * Keeps one fact for each payment. A payment without an id might be any counted one. Beside others, facts would be
 * attributed to the wrong payments, and each reading would move the order back and forth: so that payment is left out,
 * and the reading is unclear. If no completed payment has an id, the first of those that are best for the merchant
 * represents all.
 */
function tellApart(all: readonly SaidFact[]): { said: SaidFact[]; isOneOfSeveral: boolean } {
  const came = all.filter(({ kind }) => MONEY_CAME.has(kind));
  const nameless = came.filter(({ paymentId }) => paymentId === null);
  const rest = all.filter(({ kind }) => !MONEY_CAME.has(kind));
  const named = came.filter(({ paymentId }) => paymentId !== null);
  const first = ORDER.flatMap((kind) => nameless.filter((fact) => fact.kind === kind)).slice(0, 1);
  const beside = rest.filter(({ kind, paymentId }) => {
    const mayBeOneThatCame = nameless.length > 0 || (came.length > 0 && paymentId === null);
    return kind !== 'pending' || !mayBeOneThatCame;
  });
  return {
    said: [...(named.length > 0 ? named : first), ...beside],
    isOneOfSeveral: nameless.length > 0 && came.length > 1,
  };
}

/** A fact for each listed payment. It is unclear if one id is listed twice with different content. */
function ofEachPayment(payments: readonly unknown[], link: LinkSeen): SaidFact[] {
  const found = new Map<string, SaidFact>();
  const nameless: SaidFact[] = [];
  for (const payment of payments) {
    const fact = ofPayment(payment, link);
    if (fact === null) continue;
    const { paymentId } = fact;
    if (paymentId === null) {
      nameless.push(fact);
      continue;
    }
    const before = found.get(paymentId);
    const isSame = before === undefined || JSON.stringify(before) === JSON.stringify(fact);
    found.set(paymentId, isSame ? fact : { ...fact, kind: 'unclear' });
  }
  return [...found.values(), ...nameless];
}

/** Overall statuses that mean that no payment is completed (spec §3). */
const NONE_COMPLETED: ReadonlySet<string | null> = new Set(['NOT_STARTED', 'PENDING']);

/**
 * Reads one payment. Its money is the quote's `amount`, never `totalBRL`, which includes instalment interest. If the
 * overall status says that nothing is completed, the result is null for a status that the spec does not name (a failed
 * attempt may have one), and a completed payment contradicts it.
 */
function ofPayment(payment: unknown, link: LinkSeen): SaidFact | null {
  const object = asObject(payment);
  if (object === null) return factOf('unclear', link);
  const status = statedText(field(object, 'status'))?.trim().toUpperCase() ?? null;
  const noneCompleted = NONE_COMPLETED.has(link.paymentStatus);
  if (noneCompleted && status !== null && kindOf(status) === undefined) return null;
  const stated = kindOf(status) ?? 'unclear';
  const kind = noneCompleted && stated === 'completed' ? 'unclear' : stated;
  const quote = field(object, 'quote') ?? null;
  const quoted = asObject(quote);
  const isOdd = quote !== null && quoted === null && kind !== 'pending';
  return {
    ...factOf(isOdd ? 'unclear' : kind, link),
    paymentId: idOf(object),
    quoteMoney: quoted === null ? null : readMoney(quoted),
  };
}

function idOf(payment: unknown): string | null {
  return usableId(field(asObject(payment) ?? {}, 'id'));
}

/** What the overall status adds: payments that are not listed, or a status that settled does not know. */
function ofAllPayments({ paymentStatus, payments, ...link }: LinkSeen): SaidFact[] {
  if (paymentStatus === null || paymentStatus === 'NOT_STARTED') return [];
  const kind = kindOf(paymentStatus) ?? 'unclear';
  return payments === 0 || kind === 'unclear' ? [factOf(kind, link)] : [];
}

/** What the link's own status adds: links expire and are disabled (spec §3). */
function linkFacts({ link, isExpired }: Details, { moneyCame, isClear }: State): SaidFact[] {
  const expired = link.status === 'EXPIRED' || isExpired;
  // Links become inactive by being paid, so this is news only without money.
  const disabled = link.status === 'INACTIVE' && isClear && !moneyCame;
  return [...(expired ? [bareFact('expired')] : []), ...(disabled ? [bareFact('disabled')] : [])];
}

function kindOf(status: string | null): FactKind | undefined {
  return status === null ? undefined : FACT_KINDS_BY_STATUS.get(status);
}

function factOf(kind: FactKind, { money, reference }: Pick<LinkSeen, 'money' | 'reference'>): SaidFact {
  const linkMoney = money.amount === null && money.currency === null ? null : money;
  return { ...bareFact(kind), linkMoney, reference };
}
