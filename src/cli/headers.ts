import { CANDIDATES_MAX, HEADER_LENGTH_MAX, splitElements, withoutPrefix } from '../receive/signature.ts';

/** What is wrong with the form of a captured header, in words; and what a malformed signature may have meant. */

const ALGORITHM_BY_HEX_DIGITS: Readonly<Record<number, string>> = {
  32: 'MD5',
  40: 'SHA-1',
  96: 'SHA-384',
  128: 'SHA-512',
};

const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,64}(?:signature|timestamp)\s*:/i;
const QUOTED = /^(["'])(.*)\1$/s;

/** Why a signature header does not follow the grammar of docs/signature.md. */
export function signatureFault(header: string, timestamp: string): string {
  const fault = wholeFault(header);
  if (fault !== null) return `The signature ${fault}.`;
  const stamped = stampFault(header, timestamp);
  if (stamped !== null) return `The signature ${stamped}.`;
  const elements = splitElements(header.replace(/^t=[0-9]+(?: *, *| +)/, ''));
  if (header.length > HEADER_LENGTH_MAX || elements.length > CANDIDATES_MAX) {
    return `The signature has ${header.length} characters in ${elements.length} parts; ${HEADER_LENGTH_MAX} characters and ${CANDIDATES_MAX} parts are the most.`;
  }
  const faults = elements.map(elementFault).filter((found) => found !== null);
  const which = elements.length > 1 ? 'A part of the signature' : 'The signature';
  return `${which} ${faults[0] ?? 'has an empty part'}.`;
}

/** Why a timestamp header does not follow the grammar. */
export function timestampFault(header: string): string {
  const fault = wholeFault(header);
  if (fault !== null) return `The timestamp ${fault}.`;
  const found = timestampForm(header);
  return `The timestamp ${found}; it must be epoch milliseconds, 13 digits.`;
}

/** What is wrong with the time that a signature header names (`t=`). */
function stampFault(header: string, timestamp: string): string | null {
  const stamps = [...header.matchAll(/(?:^|[, ])(t=[^, ]*)/g)].map(([, stamp]) => stamp as string);
  const [stamp] = stamps;
  if (stamp === undefined) return null;
  if (stamps.length > 1) return 'names a time (`t=`) more than once';
  if (!header.startsWith('t=')) return 'names a time (`t=`) behind a code: it must stand first';
  if (stamp === header) return 'names a time (`t=`) and no code';
  if (stamp !== `t=${timestamp}`) {
    return `names another time (\`${stamp.slice(0, 32)}\`) than the timestamp header: both must have the same characters`;
  }
  return null;
}

function timestampForm(header: string): string {
  const units: Record<number, string> = { 10: 'seconds', 16: 'microseconds', 19: 'nanoseconds' };
  const unit = units[header.length];
  if (/^[0-9]+$/.test(header)) {
    return `has ${header.length} digits${unit === undefined ? '' : `, so it seems to be in ${unit}`}`;
  }
  if (/^[0-9]+[.,][0-9]+$/.test(header)) return 'has a fraction';
  if (/^[+-][0-9]+$/.test(header)) return 'has a sign';
  if (!Number.isNaN(Date.parse(header))) return 'is a date in words';
  return 'does not consist of digits';
}

function wholeFault(header: string): string | null {
  if (header === '') return 'is empty';
  if (NAMED.test(header)) return "begins with the header's name: give only what follows the colon";
  if (QUOTED.test(header)) return 'is in quotation marks: the header has none';
  if (/[\r\n]/.test(header)) return 'holds a line end';
  return null;
}

function elementFault(element: string): string | null {
  const text = withoutPrefix(element);
  const prefix = /^([A-Za-z][A-Za-z0-9_-]{0,15})[=,:](?=.{20})/.exec(text)?.[0];
  if (prefix !== undefined)
    return `has the prefix \`${prefix}\`: only hmac-sha256=, sha256=, sha256:, v1= and v1, are known`;
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return null;
  if (/^[0-9A-Fa-f]+$/.test(text)) {
    const algorithm = ALGORITHM_BY_HEX_DIGITS[text.length];
    const seems = algorithm === undefined ? ': it is cut or mistyped' : `: it seems to be ${algorithm}`;
    return `has ${text.length} hexadecimal digits, and HMAC-SHA256 has 64${seems}`;
  }
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return 'is neither hexadecimal nor base64';
  return base64Fault(text);
}

function base64Fault(text: string): string | null {
  const bytes = Buffer.from(text, 'base64');
  if (/^[0-9A-Fa-f]{64}$/.test(bytes.toString('latin1'))) {
    return 'is base64 of hexadecimal digits: it was encoded twice';
  }
  if (bytes.length !== 32) return `is base64 of ${bytes.length} bytes, and HMAC-SHA256 has 32`;
  const plain = bytes.toString('base64');
  const spellings = [plain, plain.slice(0, -1), bytes.toString('base64url'), urlSafe(plain)];
  if (spellings.includes(text)) return null;
  return 'is base64 whose last digits do not end a code of 32 bytes: it is cut or mistyped';
}

function urlSafe(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

/** Codes that a malformed signature may have meant, for telling whether only its form is wrong. */
export function guessSignatures(header: string): Buffer[] {
  const bare = header.replace(NAMED, '').trim().replace(QUOTED, '$2').trim();
  return splitElements(bare)
    .map((element) => element.replace(/^[A-Za-z][A-Za-z0-9_-]{0,15}[=,:](?=.{20})/, ''))
    .flatMap((text) => {
      const digits = text.replace(/^0x/i, '').replaceAll(':', '');
      if (/^(?:[0-9A-Fa-f]{2})+$/.test(digits)) return [Buffer.from(digits, 'hex')];
      const bytes = Buffer.from(text, 'base64');
      const inner = bytes.toString('latin1');
      return /^(?:[0-9A-Fa-f]{2})+$/.test(inner) ? [Buffer.from(inner, 'hex'), bytes] : [bytes];
    })
    .slice(0, CANDIDATES_MAX);
}
