import { type Chance, chanceOf } from '../harness/chance.ts';
import type { ShopOutage, ShopWays } from './shop.ts';
import type { Fate, Outage, Ways } from './wire.ts';

/** What happens in a story. It follows from the seed and the story's number alone. */

/** What happens to the money of one order. */
export const KINDS = [
  'paid',
  'interest',
  'less',
  'less-in-event',
  'double',
  'converted',
  'other-currency',
  'other-reference',
  'twice',
  'refunded',
  'refunded-in-part',
  'refunded-beside',
  'disputed',
  'dispute-won',
  'expires-pending',
  'late',
  'unpaid',
  'paid-after-cancel',
] as const;
type Kind = (typeof KINDS)[number];

export type OrderPlan = {
  reference: string;
  kind: Kind;
  cents: number;
  /** Of a wrong quote, or of what goes back. */
  otherCents: number;
  method: 'PIX' | 'CREDIT_CARD';
  /** Doubles between the amount and what the service writes. */
  ulps: number;
  fates: Fate[];
  /** When the customer comes, and how long they take. */
  atMs: number;
  takesMs: number;
  /** A forged delivery beside it. */
  forged: 'other-secret' | 'old' | 'unsigned' | null;
  /** What a person decides if the order is held. */
  decision: 'accept' | 'reject' | null;
};

/** Kills settled at the n-th call, delivery or notice of its life, or after n times 100 ms. */
export type Kill = { on: 'call' | 'delivery' | 'notice' | 'time'; n: number };

export type Plan = {
  number: number;
  flavour: string;
  orders: OrderPlan[];
  kills: Kill[];
  ways: Ways;
  shop: ShopWays;
  apiOutages: { atMs: number; forMs: number; how: Outage }[];
  shopOutages: { atMs: number; forMs: number; how: ShopOutage }[];
  /** Whether the API is off after the last kill, until everything that can be settled without it is settled. */
  endsWithoutApi: boolean;
};

/** What a story has most of. */
const FLAVOURS: Record<string, readonly Kind[]> = {
  mixed: KINDS,
  'less in a row': ['less', 'less', 'less', 'less', 'paid', 'less-in-event'],
  returns: ['refunded', 'refunded-in-part', 'refunded-beside', 'disputed', 'dispute-won', 'twice', 'paid'],
  doubles: ['double', 'double', 'interest', 'less', 'paid'],
  'forgery and expiry': ['unpaid', 'expires-pending', 'late', 'paid', 'paid-after-cancel'],
  'the plain shop': ['paid', 'paid', 'paid', 'interest', 'refunded', 'unpaid'],
};

const FATES: readonly Fate[] = [
  'straight',
  'straight',
  'straight',
  'chunked',
  'lost',
  'late',
  'twice',
  'overtaken',
  'forged-first',
  'stale-first',
];

const REFUSED = ['order.payment_pending', 'order.held', 'order.expired', 'order.refunded', 'payment.duplicate'];
const API_OUTAGES: readonly Outage[] = [
  'off',
  '503',
  '429',
  'html-200',
  'html-405',
  'html-413',
  'html-502',
  'hang',
  'answer-lost',
];
const SHOP_OUTAGES: readonly ShopOutage[] = ['503', 'refused', 'hang', 'html-502'];
const CUSTOMERS_MS = 2_500;

export function planOf(seed: number, number: number): Plan {
  const chance = chanceOf(seed, number);
  const flavour = chance.pick(Object.keys(FLAVOURS));
  const kinds = FLAVOURS[flavour] ?? KINDS;
  const count = chance.between(4, 12);
  return {
    number,
    flavour,
    orders: Array.from({ length: count }, (_, at) => orderOf(chance, `s${number}-${at + 1}`, chance.pick(kinds))),
    kills: Array.from({ length: chance.between(1, 4) }, () => killOf(chance)),
    ways: {
      eventIds: chance.oneIn(4) ? 'payment' : 'own',
      returnEvents: chance.pick(['none', 'aggregate', 'own-status']),
      envelope: chance.pick(['data', 'payload', 'flat']),
      signature: chance.pick(['hex', 'base64', 'sha256=hex']),
      echo: chance.oneIn(3) ? chance.pick(['slash', 'scheme', 'slash-delivered']) : 'same',
      lists: true,
    },
    shop: {
      refuses: chance.oneIn(3) ? chance.pick(REFUSED) : null,
      losesEvery: chance.oneIn(3) ? chance.between(3, 6) : 0,
    },
    apiOutages: chance.oneIn(2) ? [{ ...momentOf(chance), how: chance.pick(API_OUTAGES) }] : [],
    shopOutages: chance.oneIn(3) ? [{ ...momentOf(chance), how: chance.pick(SHOP_OUTAGES) }] : [],
    endsWithoutApi: chance.oneIn(3),
  };
}

function orderOf(chance: Chance, reference: string, kind: Kind): OrderPlan {
  const cents = chance.between(2_501, 90_000);
  return {
    reference,
    kind,
    cents,
    otherCents: chance.between(100, Math.floor(cents * 0.9)),
    method: chance.pick(['PIX', 'CREDIT_CARD']),
    ulps: kind === 'double' ? chance.pick([-3, -2, -1, 1, 2, 3]) : 0,
    fates: Array.from({ length: 6 }, () => chance.pick(FATES)),
    atMs: chance.below(CUSTOMERS_MS),
    takesMs: chance.below(600),
    forged: kind === 'unpaid' || chance.oneIn(6) ? chance.pick(['other-secret', 'old', 'unsigned']) : null,
    decision: chance.oneIn(3) ? chance.pick(['accept', 'reject']) : null,
  };
}

function killOf(chance: Chance): Kill {
  const on = chance.pick(['call', 'delivery', 'notice', 'time'] as const);
  return { on, n: chance.between(1, on === 'time' ? 15 : 8) };
}

function momentOf(chance: Chance): { atMs: number; forMs: number } {
  return { atMs: chance.below(CUSTOMERS_MS), forMs: chance.between(500, 3_000) };
}
