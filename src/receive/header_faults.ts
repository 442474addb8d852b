import { CANDIDATES_MAX, HEADER_LENGTH_MAX, splitElements, withoutPrefix } from './signature.ts';

/** What is wrong with the form of a header, as a code and what belongs to it; and what a malformed signature may have meant. */

/** Faults of a header as a whole. */
type WholeFault = { fault: 'empty' | 'named' | 'quoted' | 'line_end' };

export type SignatureFault =
  | WholeFault
  /** About a time that it names (`t=`). */
  | { fault: 'time_twice' | 'time_not_first' | 'time_alone' | 'time_differs' }
  | { fault: 'too_long'; characters: number; parts: number }
  /** About one element; `parts`: how many there are. */
  | { fault: 'prefix'; prefix: string; parts: number }
  | { fault: 'hex_digits' | 'base64_bytes'; length: number; parts: number }
  | { fault: 'no_encoding' | 'encoded_twice' | 'not_canonical' | 'empty_part'; parts: number };

export type TimestampFault =
  | WholeFault
  | { fault: 'digits'; length: number }
  | { fault: 'fraction' | 'sign' | 'date' | 'no_digits' };

const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,64}(?:signature|timestamp)\s*:/i;
const QUOTED = /^(["'])(.*)\1$/s;
const FOREIGN_PREFIX = /^([A-Za-z][A-Za-z0-9_-]{0,15})[=,:](?=.{20})/;

/** Why a signature header does not follow the grammar of docs/signature.md. */
export function signatureFault(header: string, timestamp: string): SignatureFault {
  const fault = wholeFault(header) ?? stampFault(header, timestamp);
  if (fault !== null) return fault;
  const elements = splitElements(header.replace(/^t=[0-9]+(?: *, *| +)/, ''));
  const parts = elements.length;
  if (header.length > HEADER_LENGTH_MAX || parts > CANDIDATES_MAX) {
    return { fault: 'too_long', characters: header.length, parts };
  }
  const found = elements.map((element) => elementFault(element, parts)).find((one) => one !== null);
  return found ?? { fault: 'empty_part', parts };
}

/** Why a timestamp header does not follow the grammar. */
export function timestampFault(header: string): TimestampFault {
  const fault = wholeFault(header);
  if (fault !== null) return fault;
  if (/^[0-9]+$/.test(header)) return { fault: 'digits', length: header.length };
  if (/^[0-9]+[.,][0-9]+$/.test(header)) return { fault: 'fraction' };
  if (/^[+-][0-9]+$/.test(header)) return { fault: 'sign' };
  return { fault: Number.isNaN(Date.parse(header)) ? 'no_digits' : 'date' };
}

function wholeFault(header: string): WholeFault | null {
  if (header === '') return { fault: 'empty' };
  if (NAMED.test(header)) return { fault: 'named' };
  if (QUOTED.test(header)) return { fault: 'quoted' };
  return /[\r\n]/.test(header) ? { fault: 'line_end' } : null;
}

/** What is wrong with the time that a signature header names (`t=`). */
function stampFault(header: string, timestamp: string): SignatureFault | null {
  const stamps = [...header.matchAll(/(?:^|[, ])(t=[^, ]*)/g)].map(([, stamp]) => stamp as string);
  const [stamp] = stamps;
  if (stamp === undefined) return null;
  if (stamps.length > 1) return { fault: 'time_twice' };
  if (!header.startsWith('t=')) return { fault: 'time_not_first' };
  if (stamp === header) return { fault: 'time_alone' };
  return stamp === `t=${timestamp}` ? null : { fault: 'time_differs' };
}

function elementFault(element: string, parts: number): SignatureFault | null {
  const text = withoutPrefix(element);
  const prefix = FOREIGN_PREFIX.exec(text)?.[0];
  if (prefix !== undefined) return { fault: 'prefix', prefix, parts };
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return null;
  if (/^[0-9A-Fa-f]+$/.test(text)) return { fault: 'hex_digits', length: text.length, parts };
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return { fault: 'no_encoding', parts };
  return base64Fault(text, parts);
}

function base64Fault(text: string, parts: number): SignatureFault | null {
  const bytes = Buffer.from(text, 'base64');
  if (/^[0-9A-Fa-f]{64}$/.test(bytes.toString('latin1'))) return { fault: 'encoded_twice', parts };
  if (bytes.length !== 32) return { fault: 'base64_bytes', length: bytes.length, parts };
  const plain = bytes.toString('base64');
  const spellings = [plain, plain.slice(0, -1), bytes.toString('base64url'), urlSafe(plain)];
  return spellings.includes(text) ? null : { fault: 'not_canonical', parts };
}

function urlSafe(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

/** Codes that a malformed signature may have meant, for telling whether only its form is wrong. */
export function guessSignatures(header: string): Buffer[] {
  const bare = header.slice(0, HEADER_LENGTH_MAX).replace(NAMED, '').trim().replace(QUOTED, '$2').trim();
  return splitElements(bare)
    .slice(0, CANDIDATES_MAX + 1)
    .map((element) => withoutPrefix(element).replace(FOREIGN_PREFIX, ''))
    .flatMap((text) => {
      const digits = text.replace(/^0x/i, '').replaceAll(':', '');
      if (/^(?:[0-9A-Fa-f]{2})+$/.test(digits)) return [Buffer.from(digits, 'hex')];
      const bytes = Buffer.from(text, 'base64');
      const inner = bytes.toString('latin1');
      return /^(?:[0-9A-Fa-f]{2})+$/.test(inner) ? [Buffer.from(inner, 'hex'), bytes] : [bytes];
    })
    .slice(0, CANDIDATES_MAX);
}
