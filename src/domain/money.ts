/** An amount of money: a whole number of the currency's minor units (BRL 10050 is 100.50). */
export type Money = { readonly amountMinor: number; readonly currency: string };

/** Money as it was written: the characters of the amount, and the currency; each null if it was not named. */
export type StatedMoney = { readonly amount: string | null; readonly currency: string | null };

export type AmountFault = 'not_a_number' | 'not_positive' | 'too_many_decimals' | 'too_large';

/** 15 digits of minor units, so that the sum of nine such amounts is still an exact JavaScript number. */
const AMOUNT_MINOR_MAX = 999_999_999_999_999;
const AMOUNT_TEXT_MAX = 64;

// Currencies whose ISO 4217 minor unit is not 2 (list one, 2024).
const CODES_BY_EXPONENT = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
} as const;
const EXPONENTS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES_BY_EXPONENT).flatMap(([exponent, codes]) =>
    codes.split(' ').map((code) => [code, Number(exponent)] as const),
  ),
);

const CURRENCIES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf('currency'), ...EXPONENTS.keys()]);

/** Whether `code` is an upper-case ISO 4217 code. */
export function isCurrency(code: string): boolean {
  return CURRENCIES.has(code);
}

/** The number of digits after the point in `currency` (ISO 4217 minor unit). */
export function currencyExponent(currency: string): number {
  return EXPONENTS.get(currency) ?? 2;
}

const DECIMAL = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Programs that compute with floating point print 256.17 as 256.16999999999996: within a millionth of a minor unit. */
const IS_WHOLE = /^(?:0{1,6}$|0{6}|9{6})/;
/** More decimals than `AMOUNT_TEXT_MAX` has characters. */
const DECIMALS_MAX = 100;

/**
 * Reads a decimal in JSON's number grammar (RFC 8259 §6) into minor units, without floating point. For BRL it accepts
 * `100`, `100.50`, `1e2`, `100.500` and `100.50000000000001`; `100.505` has too many decimals.
 */
export function parseAmount(
  text: string,
  currency: string,
): { ok: true; amountMinor: number } | { ok: false; fault: AmountFault } {
  if (text.length > AMOUNT_TEXT_MAX) return { ok: false, fault: 'too_large' };
  const match = DECIMAL.exec(text);
  if (match === null) return { ok: false, fault: 'not_a_number' };
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (sign === '-' || digits === '') return { ok: false, fault: 'not_positive' };
  const shift = currencyExponent(currency) + Number(exponent) - fraction.length;
  if (digits.length + shift > 15) return { ok: false, fault: 'too_large' };
  if (shift >= 0) return { ok: true, amountMinor: Number(digits + '0'.repeat(shift)) };
  const point = Math.max(shift, 0 - DECIMALS_MAX);
  const padded = digits.padStart(0 - point, '0');
  const dropped = padded.slice(point);
  if (!IS_WHOLE.test(dropped)) return { ok: false, fault: 'too_many_decimals' };
  const amountMinor = Number(padded.slice(0, point)) + (dropped.startsWith('9') ? 1 : 0);
  if (amountMinor === 0) return { ok: false, fault: 'too_many_decimals' };
  return amountMinor > AMOUNT_MINOR_MAX ? { ok: false, fault: 'too_large' } : { ok: true, amountMinor };
}

/**
 * Writes minor units as a decimal string with the currency's digits: 10050 BRL is `100.50`. Takes sums of any number of
 * amounts as `bigint`.
 */
export function formatAmount({ amountMinor, currency }: { amountMinor: number | bigint; currency: string }): string {
  const exponent = currencyExponent(currency);
  const digits = String(amountMinor)
    .replace('-', '')
    .padStart(exponent + 1, '0');
  const sign = amountMinor < 0 ? '-' : '';
  if (exponent === 0) return sign + digits;
  return `${sign}${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/** How ISO 4217 and SETTLED_CURRENCY write a currency: capitals, then perhaps digits. */
const CODE = /^[A-Z][A-Z0-9]{2,11}$/;

/** `100.00 BRL`. A currency that is written otherwise, such as `R$`, is quoted: it need not be the one that it resembles. */
export function amountIn({ amount, currency }: { amount: string; currency: string }): string {
  return `${amount} ${CODE.test(currency) ? currency : `"${currency}"`}`;
}

/** Money with its amount as a decimal number, as the service and people name it. */
export function inDecimal(money: { amountMinor: number | bigint; currency: string }) {
  return { amount: formatAmount(money), currency: money.currency };
}

/** Money in words: `100.00 BRL`. */
export function inMoney(money: { amountMinor: number | bigint; currency: string }): string {
  return amountIn(inDecimal(money));
}

export function isSameMoney(one: Money, other: Money): boolean {
  return one.amountMinor === other.amountMinor && one.currency === other.currency;
}

/** What stands in the place of an amount, for people: a few characters that no terminal, page or sheet interprets. */
export function shownAmount(text: string): string {
  const plain = text.replace(/[^\w.,+\-$ ]/gu, '?').trim() || '?';
  return plain.length > AMOUNT_SHOWN_MAX ? `${plain.slice(0, AMOUNT_SHOWN_MAX)}…` : plain;
}

const AMOUNT_SHOWN_MAX = 40;

/** Throws if `amountMinor` is not an amount that the ledger may hold. */
export function assertAmountMinor(amountMinor: number): void {
  if (!Number.isSafeInteger(amountMinor) || Math.abs(amountMinor) > AMOUNT_MINOR_MAX) {
    throw new Error(`${amountMinor} is not a ledger amount`);
  }
}
