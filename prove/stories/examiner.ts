import { kindOf, type SeenNotice, toldUnderTwoIds, versionOf } from '../harness/shop.ts';

/**
 * The examiner of the stories. It reads three things: the service's own ledger, the shop's record, and what settled's
 * API says. It shares no rule with settled: it only compares what each of the three says about the same money.
 */

/** A completed payment, as the service counts it for the merchant. */
export type Counted = { paymentId: string; cents: number; currency: string };

/** What the service knows of an order. */
export type LedgerOrder = {
  reference: string;
  asked: { cents: number; currency: string };
  /** Every payment that the service completed, also if it went back later. */
  counted: Counted[];
  returned: { paymentId: string; cents: number; why: 'REFUNDED' | 'DISPUTED' }[];
  linkStatus: 'ACTIVE' | 'INACTIVE' | 'EXPIRED' | 'none';
  /** Whether it says that the money belongs to another order. */
  isMisnamed: boolean;
  /** Whether the link expired before the money arrived, if any did. */
  hasExpired: boolean;
  acknowledged: { id: string; completes: boolean }[];
  /** Whether each of its events about money says what the ledger says. */
  eventsAreRight: boolean;
};

/** What the shop was sent, in order. */
type Told = SeenNotice & {
  atMs: number;
  /** The status with which the shop took or refused it; null if its answer was lost. */
  answered: number | null;
  /** The amount of the payment that it names, in cents of its currency. */
  cents: number | null;
  currency: string | null;
};

export type ShopRecord = {
  told: Told[];
  /** How the shop's last attempt to open each order ended, and which order it cancelled. */
  opened: Map<string, { status: number; code: string | null }>;
  /** What opening an order again answered at the end. */
  reopened: Map<string, { status: number; code: string | null }>;
  cancelled: Set<string>;
};

type Money = { currency: string; balance: string };

/** What settled says of an order. */
export type Said = {
  state: string;
  flags: string[];
  paidAt: string | null;
  sums: Money[];
  holds: string[];
  /** Kinds of its open matters of money and of events that are not settled, and the reasons of its holds. */
  attention: string[];
  /** Its document, timeline and matters, as text. */
  text: string;
  events: { eventId: string | null; status: string }[];
};

export type Evidence = {
  ledger: LedgerOrder[];
  shop: ShopRecord;
  settled: Map<string, Said>;
  /** Kinds of all open matters. */
  attention: string[];
  /** What settled's list of matters says for people. */
  summary: string;
  /** Orders whose held money a person accepted. */
  accepted: Set<string>;
  /** From when on the shop takes notices. */
  shopWellAtMs: number;
  nowMs: number;
};

/** Instead of a problem's code: the end that the shop gave its order was over before settled heard of it. */
export const TOO_LATE = 'too_late';
const TOLD_WITHIN_MS = 120_000;
const SETTLED_FOR_GOOD = ['done', 'dead'];
/** Notices of which one order gets one, unless money came back. */
const ONCE = ['order.paid', 'order.expired'];

/** Returns every statement of the three that does not fit the others. */
export function examine(evidence: Evidence): string[] {
  const orders = evidence.ledger.flatMap((order) => {
    const said = evidence.settled.get(order.reference);
    if (said === undefined) return unopened(order, evidence.shop);
    const faults = [
      ...unsold(order, evidence.shop),
      ...notPaidForLess(order, said, evidence),
      ...everyCentNamed(order, said),
      ...rightlySettled(order, said, evidence),
      ...returnsNamed(order, said),
      ...nothingLost(order, said),
      ...told(order, said, evidence),
    ];
    return faults.map((fault) => `${order.reference}: ${fault}`);
  });
  return [...orders, ...silence(evidence), ...effectsTwice(evidence.shop.told)];
}

/** While the API is off, settled must settle what it acknowledged, as far as that needs no one. */
export function examineWithoutApi({ ledger, settled }: Pick<Evidence, 'ledger' | 'settled'>): string[] {
  return ledger.flatMap((order) => {
    const said = settled.get(order.reference);
    if (said === undefined) return [];
    const isPayable = isExact(order) && order.eventsAreRight && order.acknowledged.some(({ completes }) => completes);
    const unpaid =
      isPayable && said.paidAt === null && said.holds.length === 0
        ? ['acknowledged as paid, and not paid without the API']
        : [];
    return [...nothingLost(order, said), ...unpaid].map((fault) => `${order.reference}: ${fault}`);
  });
}

/** Whether a person has to look at the order's money. */
function needsPerson(order: LedgerOrder, cancelled: ReadonlySet<string>): boolean {
  if (order.counted.length === 0) return false;
  return !isExact(order) || cancelled.has(order.reference) || partsReturned(order).length > 0;
}

/** Whether exactly one payment arrived, with what the order asks. */
function isExact({ counted, asked, isMisnamed }: LedgerOrder): boolean {
  const [only] = counted;
  return counted.length === 1 && !isMisnamed && only?.cents === asked.cents && only.currency === asked.currency;
}

/** Refunds and disputes of less than their payment. */
function partsReturned({ counted, returned }: LedgerOrder): LedgerOrder['returned'] {
  return returned.filter(({ paymentId, cents }) => counted.find((one) => one.paymentId === paymentId)?.cents !== cents);
}

function unopened({ reference, counted }: LedgerOrder, { opened }: ShopRecord): string[] {
  const last = opened.get(reference);
  if (last?.code === TOO_LATE && counted.length === 0) return [];
  return [`${reference}: settled has no such order; opening it answered ${last?.status} ${last?.code ?? ''}`];
}

/** A shop may be told to come again, or that it is too late. */
function unsold({ reference }: LedgerOrder, { opened }: ShopRecord): string[] {
  const last = opened.get(reference);
  const isFinal = last !== undefined && last.status >= 400 && last.status < 500 && last.code !== 'link_expired';
  return isFinal ? [`the service sells it, and opening it answered ${last.status} ${last.code}`] : [];
}

function notPaidForLess(order: LedgerOrder, said: Said, { accepted, shop }: Evidence): string[] {
  const { reference, asked, counted, isMisnamed } = order;
  const mine = isMisnamed ? [] : counted.filter(({ currency }) => currency === asked.currency);
  const arrived = sum(mine);
  const isSaidPaid =
    said.paidAt !== null || shop.told.some((one) => one.reference === reference && one.type === 'order.paid');
  const faults: string[] = [];
  if (isSaidPaid && counted.length === 0) faults.push('paid, and the service completed no payment of it');
  else if (isSaidPaid && arrived < asked.cents && !accepted.has(reference))
    faults.push(`paid for ${arrived} cents of ${asked.cents} without a person`);
  const allOf = (currency: string | null) => sum(counted.filter((one) => one.currency === currency));
  const [all, balance] = [allOf(asked.currency), balanceOf(said.sums, asked.currency)];
  if (balance > all) faults.push(`a balance of ${balance} cents, and the service counted ${all}`);
  const named = shop.told.filter(
    (one) => one.reference === reference && one.type === 'order.paid' && one.cents !== null,
  );
  for (const { id, cents, currency } of named)
    if ((cents ?? 0) > allOf(currency))
      faults.push(`${id} names ${cents} cents of ${currency}, and ${allOf(currency)} arrived`);
  return faults;
}

function everyCentNamed(order: LedgerOrder, said: Said): string[] {
  if (said.attention.length > 0) return [];
  const currencies = new Set([order.asked.currency, ...order.counted.map(({ currency }) => currency)]);
  return [...currencies].flatMap((currency) => {
    const counted = order.counted.filter((one) => one.currency === currency);
    const back = order.returned.filter(({ paymentId }) => counted.some((one) => one.paymentId === paymentId));
    const balance = sum(counted) - sum(back);
    const ours = balanceOf(said.sums, currency);
    const line = `a balance of ${ours} cents of ${currency}, ${balance} at the service, and nothing needs a person`;
    return ours === balance ? [] : [line];
  });
}

/** An order whose money is right needs no one, and an order whose money is wrong waits for somebody. */
function rightlySettled(order: LedgerOrder, said: Said, { accepted, shop }: Evidence): string[] {
  const { reference, counted, hasExpired } = order;
  if (accepted.has(reference)) return said.paidAt === null ? ['accepted, and not paid'] : [];
  if (counted.length === 0) {
    if (shop.cancelled.has(reference)) return said.state === 'cancelled' ? [] : [`cancelled, and ${said.state}`];
    const again = shop.reopened.get(reference);
    const isToldSo = again?.status === 409 && again.code === 'link_expired';
    return hasExpired && !isToldSo
      ? [`its link has expired, and opening it again answers ${again?.status} ${again?.code ?? ''}`]
      : [];
  }
  if (needsPerson(order, shop.cancelled))
    return said.attention.length === 0 ? [`its money is wrong, it is ${said.state}, and nothing needs a person`] : [];
  const [{ why } = { why: null }] = order.returned;
  const expected = why === null ? 'paid' : why === 'REFUNDED' ? 'refunded' : 'disputed';
  const state =
    said.state === expected ? [] : [`${said.state} (${said.holds.join()}), and by the ledger it is ${expected}`];
  const wolves = (order.eventsAreRight ? said.attention : []).map(
    (kind) => `its money is right, and ${kind} needs a person`,
  );
  return [...state, ...wolves, ...(said.paidAt === null ? ['its money arrived, and it was never paid'] : [])];
}

function returnsNamed(order: LedgerOrder, { text }: Said): string[] {
  return order.returned.flatMap(({ cents, why }) => {
    const named = new RegExp(
      `(?<![\\d.,])${Math.floor(cents / 100)}[.,]${String(cents % 100).padStart(2, '0')}(?!\\d)`,
    );
    return named.test(text) ? [] : [`${why} with ${cents} cents, a sum that settled never names`];
  });
}

function nothingLost({ acknowledged }: LedgerOrder, { events }: Said): string[] {
  return acknowledged.flatMap(({ id }) => {
    const found = events.filter(({ eventId }) => eventId === id);
    if (found.length === 0) return [`${id} was acknowledged, and settled does not have it`];
    const waits = found.filter(({ status }) => !SETTLED_FOR_GOOD.includes(status));
    return waits.map(({ status }) => `${id} was acknowledged, and is still ${status}`);
  });
}

function told({ reference }: LedgerOrder, said: Said, { shop, shopWellAtMs, nowMs }: Evidence): string[] {
  if (said.paidAt === null) return [];
  const sent = shop.told.filter((one) => one.reference === reference && one.type === 'order.paid');
  const taken = sent.find(({ answered }) => answered === 200);
  const paidAtMs = Date.parse(said.paidAt);
  const takes = shop.told.find(({ answered, atMs }) => answered === 200 && atMs >= paidAtMs);
  const fromMs = Math.max(paidAtMs, Math.min(shopWellAtMs, takes?.atMs ?? shopWellAtMs));
  const lateMs = (taken?.atMs ?? nowMs) - fromMs;
  if (taken === undefined)
    return [`paid for ${Math.round(lateMs / 1000)} s, and the shop has not been told (sent ${sent.length} times)`];
  return lateMs > TOLD_WITHIN_MS ? [`the shop was told ${Math.round(lateMs / 1000)} s late that it is paid`] : [];
}

/** If settled says that nothing needs a person, nothing may be wrong in the service's ledger. */
function silence({ ledger, attention, summary, shop, accepted }: Evidence): string[] {
  const wrong = ledger.filter((order) => needsPerson(order, shop.cancelled) && !accepted.has(order.reference));
  const saysNothing = /^(nothing|no money)/i.test(summary);
  const faults: string[] = [];
  if (wrong.length > 0 && attention.length === 0)
    faults.push(`${wrong.length} orders have wrong money, and nothing needs a person`);
  if (attention.length > 0 && saysNothing && wrong.length > 0)
    faults.push(`${wrong.length} orders have wrong money, and the summary is: ${summary}`);
  return faults;
}

function effectsTwice(all: readonly Told[]): string[] {
  const wonBack = new Set(all.filter(({ type }) => type === 'order.disputed').map(({ reference }) => reference));
  const once = all.filter(({ type, reference }) => ONCE.includes(type) && !wonBack.has(reference));
  return [...toldUnderTwoIds(all, versionOf), ...toldUnderTwoIds(once, kindOf)];
}

function balanceOf(sums: readonly Money[], currency: string): number {
  return Math.round(Number(sums.find((one) => one.currency === currency)?.balance ?? '0') * 100);
}

function sum(all: readonly { cents: number }[]): number {
  return all.reduce((total, { cents }) => total + cents, 0);
}
