import { CANDIDATES_MAX, decode, HEADER_LENGTH_MAX, splitElements, withoutPrefix } from './verify.ts';

/**
 * Why a header does not follow the grammar of docs/signature.md. Stored, and read by releases that may run beside: 0.4.0
 * knows these faults and others.
 */
export type HeaderFault = Values & { fault: keyof typeof FAULTS };
type Values = { parts?: number; characters?: number; length?: number; prefix?: string };

const ALGORITHMS: Readonly<Record<number, string>> = { 32: 'MD5', 40: 'SHA-1', 96: 'SHA-384', 128: 'SHA-512' };
const UNITS: Readonly<Record<number, string>> = { 10: 'seconds', 16: 'microseconds', 19: 'nanoseconds' };
const MILLISECONDS = 'it must be epoch milliseconds, 13 digits, without the name of the header';

/** Each completes "the signature …" or "the timestamp …". */
const FAULTS = {
  empty: 'is empty',
  time_not_first:
    'names a time (`t=`) that does not stand alone before a code, with the same characters as the timestamp header',
  too_long: ({ characters, parts }: Values) =>
    `has ${characters} characters in ${parts} parts; ${HEADER_LENGTH_MAX} characters and ${CANDIDATES_MAX} parts are the most`,
  prefix: ({ prefix }: Values) =>
    `has the prefix \`${prefix}\`: only hmac-sha256=, sha256=, sha256:, v1= and v1, are known`,
  hex_digits: ({ length = 0 }: Values) => {
    const seems = length in ALGORITHMS ? `it seems to be ${ALGORITHMS[length]}` : 'it is cut or mistyped';
    return `has ${counted(length, 'hexadecimal digit')}, and HMAC-SHA256 has 64: ${seems}`;
  },
  base64_bytes: ({ length = 0 }: Values) => `is base64 of ${counted(length, 'byte')}, and HMAC-SHA256 has 32`,
  no_encoding:
    'is neither hexadecimal nor whole base64: give what follows the colon of the header, without quotation marks',
  digits: ({ length = 0 }: Values) => {
    const seems = length in UNITS ? `, so it seems to be in ${UNITS[length]}` : '';
    return `has ${counted(length, 'digit')}${seems}; ${MILLISECONDS}`;
  },
  no_digits: `does not consist of digits; ${MILLISECONDS}`,
};

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

export function faultWords(header: 'signature' | 'timestamp', { fault, ...values }: HeaderFault): string {
  // Of what 0.4.0 stored.
  const words = FAULTS[fault] ?? 'does not follow its grammar, which docs/signature.md has';
  return `The ${header} ${typeof words === 'string' ? words : words(values)}.`;
}

const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,64}(?:signature|timestamp)\s*:/i;
export const QUOTED = /^(["'])(.*)\1$/s;
const FOREIGN_PREFIX = /^([A-Za-z][A-Za-z0-9_-]{0,15})[=,:](?=.{20})/;
const DIGITS = /^[0-9A-Fa-f]{64}$/;

export function timestampFault(header: string): HeaderFault {
  return /^[0-9]+$/.test(header) ? { fault: 'digits', length: header.length } : { fault: 'no_digits' };
}

export function signatureFault(header: string, timestamp: string): HeaderFault {
  if (header === '') return { fault: 'empty' };
  const [first, ...others] = splitElements(header);
  const codes = first === `t=${timestamp}` ? others : [first as string, ...others];
  if (codes.length === 0 || codes.some((code) => code.startsWith('t='))) return { fault: 'time_not_first' };
  if (header.length > HEADER_LENGTH_MAX || codes.length > CANDIDATES_MAX) {
    return { fault: 'too_long', characters: header.length, parts: codes.length };
  }
  const faults = codes.map((code) => codeFault(withoutPrefix(code)));
  return faults.find((fault) => fault !== null) ?? { fault: 'no_encoding' };
}

function codeFault(text: string): HeaderFault | null {
  if (decode(text) !== null) return null;
  const prefix = FOREIGN_PREFIX.exec(text)?.[0];
  if (prefix !== undefined) return { fault: 'prefix', prefix };
  if (/^[0-9A-Fa-f]+$/.test(text)) return { fault: 'hex_digits', length: text.length };
  const { length } = Buffer.from(text, 'base64');
  const isBase64 = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) && length !== 32;
  return isBase64 ? { fault: 'base64_bytes', length } : { fault: 'no_encoding' };
}

/** The codes that a malformed signature may have meant, to tell whether only the form is wrong. */
export function guessSignatures(header: string): Buffer[] {
  const bare = header.slice(0, HEADER_LENGTH_MAX).replace(NAMED, '').trim().replace(QUOTED, '$2').trim();
  return splitElements(bare, CANDIDATES_MAX + 1).map((element) => {
    const text = withoutPrefix(element).replace(FOREIGN_PREFIX, '').replace(/^0x|:/gi, '');
    const bytes = Buffer.from(text, 'base64');
    const digits = [text, bytes.toString('latin1')].find((one) => DIGITS.test(one));
    return digits === undefined ? bytes : Buffer.from(digits, 'hex');
  });
}
