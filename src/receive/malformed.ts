import { CANDIDATES_MAX, decode, HEADER_LENGTH_MAX, splitElements, withoutPrefix } from './verify.ts';

/** `parts`: the number of elements, if the fault is of one of them or of their number. */
type Values = { parts?: number; characters?: number; length?: number; prefix?: string };
export type HeaderFault = Values & { fault: Name };
type Name = keyof typeof FAULTS;

const ALGORITHMS: Readonly<Record<number, string>> = { 32: 'MD5', 40: 'SHA-1', 96: 'SHA-384', 128: 'SHA-512' };
const UNITS: Readonly<Record<number, string>> = { 10: 'seconds', 16: 'microseconds', 19: 'nanoseconds' };
const MILLISECONDS = 'it must be epoch milliseconds, 13 digits';

/** Each completes "the signature …" or "the timestamp …". */
const FAULTS = {
  empty: 'is empty',
  named: "begins with the header's name: give only what follows the colon",
  quoted: 'is in quotation marks: the header has none',
  line_end: 'holds a line end',
  time_twice: 'names a time (`t=`) more than once',
  time_not_first: 'names a time (`t=`) behind a code: it must stand first',
  time_alone: 'names a time (`t=`) and no code',
  time_differs: 'names another time (`t=`) than the timestamp header: both must have the same characters',
  too_long: ({ characters, parts }: Values) =>
    `has ${characters} characters in ${parts} parts; ${HEADER_LENGTH_MAX} characters and ${CANDIDATES_MAX} parts are the most`,
  prefix: ({ prefix }: Values) =>
    `has the prefix \`${prefix}\`: only hmac-sha256=, sha256=, sha256:, v1= and v1, are known`,
  hex_digits: ({ length = 0 }: Values) => {
    const seems = length in ALGORITHMS ? `it seems to be ${ALGORITHMS[length]}` : 'it is cut or mistyped';
    return `has ${counted(length, 'hexadecimal digit')}, and HMAC-SHA256 has 64: ${seems}`;
  },
  base64_bytes: ({ length = 0 }: Values) => `is base64 of ${counted(length, 'byte')}, and HMAC-SHA256 has 32`,
  no_encoding: 'is neither hexadecimal nor base64',
  encoded_twice: 'is base64 of hexadecimal digits: it was encoded twice',
  not_canonical: 'is base64 whose last digits do not end a code of 32 bytes: it is cut or mistyped',
  empty_part: 'has an empty part',
  digits: ({ length = 0 }: Values) => {
    const seems = length in UNITS ? `, so it seems to be in ${UNITS[length]}` : '';
    return `has ${counted(length, 'digit')}${seems}; ${MILLISECONDS}`;
  },
  fraction: `has a fraction; ${MILLISECONDS}`,
  sign: `has a sign; ${MILLISECONDS}`,
  date: `is a date in words; ${MILLISECONDS}`,
  no_digits: `does not consist of digits; ${MILLISECONDS}`,
};

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

export function faultWords(header: 'signature' | 'timestamp', { fault, ...values }: HeaderFault): string {
  const subject = (values.parts ?? 1) > 1 && fault !== 'too_long' ? 'A part of the signature' : `The ${header}`;
  const words = FAULTS[fault];
  return `${subject} ${typeof words === 'string' ? words : words(values)}.`;
}

const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,64}(?:signature|timestamp)\s*:/i;
export const QUOTED = /^(["'])(.*)\1$/s;
const FOREIGN_PREFIX = /^([A-Za-z][A-Za-z0-9_-]{0,15})[=,:](?=.{20})/;
const DIGITS = /^[0-9A-Fa-f]{64}$/;

function wholeFault(header: string): Name | null {
  if (header === '') return 'empty';
  if (NAMED.test(header)) return 'named';
  if (QUOTED.test(header)) return 'quoted';
  return /[\r\n]/.test(header) ? 'line_end' : null;
}

export function timestampFault(header: string): HeaderFault {
  const fault = wholeFault(header);
  if (fault !== null) return { fault };
  if (/^[0-9]+$/.test(header)) return { fault: 'digits', length: header.length };
  if (/^[0-9]+[.,][0-9]+$/.test(header)) return { fault: 'fraction' };
  if (/^[+-][0-9]+$/.test(header)) return { fault: 'sign' };
  return { fault: Number.isNaN(Date.parse(header)) ? 'no_digits' : 'date' };
}

/** Says why a signature header does not follow the grammar of docs/signature.md. */
export function signatureFault(header: string, timestamp: string): HeaderFault {
  const fault = wholeFault(header) ?? stampFault(header, timestamp);
  if (fault !== null) return { fault };
  const elements = splitElements(header.replace(/^t=[0-9]+(?: *, *| +)/, ''));
  const parts = elements.length;
  if (header.length > HEADER_LENGTH_MAX || parts > CANDIDATES_MAX) {
    return { fault: 'too_long', characters: header.length, parts };
  }
  const found = elements.map((element) => elementFault(withoutPrefix(element))).find((one) => one !== null);
  return { ...(found ?? { fault: 'empty_part' }), parts };
}

/** The fault of the time (`t=`) in a signature header; null if it has none. */
function stampFault(header: string, timestamp: string): Name | null {
  const [stamp, ...more] = [...header.matchAll(/(?:^|[, ])(t=[^, ]*)/g)].map(([, found]) => found);
  if (stamp === undefined) return null;
  if (more.length > 0) return 'time_twice';
  if (!header.startsWith('t=')) return 'time_not_first';
  if (stamp === header) return 'time_alone';
  return stamp === `t=${timestamp}` ? null : 'time_differs';
}

function elementFault(text: string): HeaderFault | null {
  if (decode(text) !== null) return null;
  const prefix = FOREIGN_PREFIX.exec(text)?.[0];
  if (prefix !== undefined) return { fault: 'prefix', prefix };
  if (/^[0-9A-Fa-f]+$/.test(text)) return { fault: 'hex_digits', length: text.length };
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return { fault: 'no_encoding' };
  const bytes = Buffer.from(text, 'base64');
  if (DIGITS.test(bytes.toString('latin1'))) return { fault: 'encoded_twice' };
  return bytes.length === 32 ? { fault: 'not_canonical' } : { fault: 'base64_bytes', length: bytes.length };
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
