/** The service's terms (spec sections 2 and 3). */
export const LINK_STATUSES = ['ACTIVE', 'INACTIVE', 'EXPIRED'] as const;
export type LinkStatus = (typeof LINK_STATUSES)[number];

export const PAYMENT_STATUSES = ['PENDING', 'COMPLETED', 'DISPUTED', 'REFUNDED'] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** The aggregate over a link's payments. */
export type LinkPaymentStatus = 'NOT_STARTED' | 'PENDING' | 'COMPLETED';

export const PAYMENT_METHODS = ['PIX', 'CREDIT_CARD'] as const;
export type PaymentMethod = (typeof PAYMENT_METHODS)[number];

export const EVENT_KINDS = [
  'payment_link.created',
  'payment_link.status_changed',
  'payment_link.payment_status_changed',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** The seller, as the merchant profile and every hosted page name it. */
export const MERCHANT_NAME = 'Sandbox Merchant';

export type Environment = 'sandbox' | 'production';

export type Link = {
  number: number;
  id: string;
  short: string;
  externalReference: string | null;
  title: string;
  description: string | null;
  amount: number;
  currency: string;
  status: LinkStatus;
  expiresAtMs: number | null;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
  webhookUrl: string | null;
  webhookSecret: string;
  createdAtMs: number;
};

export type Payment = {
  number: number;
  id: string;
  linkNumber: number;
  status: PaymentStatus;
  createdAtMs: number;
  completedAtMs: number | null;
  availableAtMs: number | null;
  customer: { name: string | null; email: string | null } | null;
  method: PaymentMethod;
  installments: number;
  /** As the quote names it: without instalment interest, unless `PaymentMoney` asks for it. */
  amount: number;
  currency: string;
  /** What the customer pays, instalment interest included. */
  totalBRL: number;
};

/** NOT_STARTED without payments; COMPLETED once one has completed, even if it was reversed since (spec section 3). */
export function aggregateStatus(payments: readonly Payment[]): LinkPaymentStatus {
  if (payments.length === 0) return 'NOT_STARTED';
  return payments.some(({ status }) => status !== 'PENDING') ? 'COMPLETED' : 'PENDING';
}

export const INSTALLMENTS_MAX = 12;
const INTEREST_PER_MONTH = 0.0199;

/** The total paid in this many instalments: each one after the first adds a month's interest. */
export function totalWithInterest(amount: number, installments: number): number {
  return Math.round(amount * (1 + INTEREST_PER_MONTH * (installments - 1)) * 100) / 100;
}

/**
 * The money that a payment and its link name: what the link asks; less; more, also as the link's own amount, as if it
 * had been misread; more in the quote only, as instalment interest; or a quote in another currency.
 */
export const PAYMENT_MONEY = ['asked', 'less', 'more', 'interest', 'other-currency'] as const;
export type PaymentMoney = (typeof PAYMENT_MONEY)[number];

const OTHER_CURRENCY = { code: 'USD', perUnit: 0.18 };

/** The money of the link, and of the quote of its payment. */
export function moneyOf(
  money: PaymentMoney,
  { amount, currency }: Pick<Link, 'amount' | 'currency'>,
  interest: number,
) {
  const cents = (value: number) => Math.round(value * 100) / 100;
  const link = money === 'more' ? cents(amount * 1.2) : amount;
  const quotes: Record<PaymentMoney, number> = {
    asked: amount,
    less: cents(amount * 0.6),
    more: link,
    interest,
    'other-currency': cents(amount * OTHER_CURRENCY.perUnit),
  };
  return { link, quote: quotes[money], currency: money === 'other-currency' ? OTHER_CURRENCY.code : currency };
}

/** A refusal, with the status that section 7 of the spec gives it. */
export class Refusal extends Error {
  readonly status: 400 | 401 | 403 | 404 | 409 | 429;
  readonly code: string;
  /** The field that is wrong, if one is. */
  readonly field: string | null;
  constructor(status: Refusal['status'], code: string, message: string, field: string | null = null) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** A name that is not one of the known ones; the message lists them. */
export class UnknownName extends Error {
  /** @param given quoted if it is a text; otherwise only its type is: a foreign value may not convert to text */
  constructor(what: string, given: unknown, known: readonly string[]) {
    super(`"${typeof given === 'string' ? given : typeof given}" is no ${what}; known: ${known.join(', ')}`);
    this.name = 'UnknownName';
  }
}

/** Throws the refusal 403 in environment `sandbox`, which disables payments (spec section 1, restriction 2). */
export function assertPaymentsEnabled(environment: Environment): void {
  if (environment === 'production') return;
  const message =
    'Payments are disabled in environment `sandbox` (section 1 of the specification). Simulate them in the panel on the ' +
    "link's page, or start with --environment production.";
  throw new Refusal(403, 'payments_disabled', message);
}
