import { hash } from 'node:crypto';

/**
 * What a delivery is, as docs/signature.md has it, written a second time and in another way: characters are walked, not
 * matched, and base64 is checked by encoding it again. It shares nothing with the verifier but the words.
 */

export type Attempt = { rawHeaders: readonly string[]; body: Uint8Array; secret: string };

const SIGNATURE = 'x-service-signature';
const TIMESTAMP = 'x-service-timestamp';
const POINT = Buffer.from([0x2e]);

export function isAuthentic({ rawHeaders, body, secret }: Attempt): boolean {
  const signatures: string[] = [];
  const timestamps: string[] = [];
  for (let pair = 0; pair < rawHeaders.length / 2; pair++) {
    const name = rawHeaders[2 * pair] ?? '';
    const value = rawHeaders[2 * pair + 1] ?? '';
    if (isName(name, SIGNATURE)) signatures.push(value);
    if (isName(name, TIMESTAMP)) timestamps.push(value);
  }
  const [signature] = signatures;
  const [timestamp] = timestamps;
  if (signatures.length !== 1 || signature === undefined) return false;
  if (timestamps.length !== 1 || timestamp === undefined) return false;
  if (!isTimestamp(timestamp) || padsFor(secret).keyBytes < 16) return false;
  const codes = listCodes(signature, timestamp);
  if (codes === null) return false;
  return codes.includes(hmacHexOf(secret, Buffer.from(timestamp, 'ascii'), POINT, body));
}

const BLOCK_BYTES = 64;

/** Of a secret: the inner pad, and the outer one with room for the inner digest behind it. */
type Pads = { keyBytes: number; inner: Buffer; outer: Buffer };
const padsOf = new Map<string, Pads>();

/**
 * HMAC-SHA256 over all parts of a message, as RFC 2104 defines it, in lower-case hex: three times as fast here as
 * `createHmac`, because to make a buffer for a digest takes longer than the digest.
 */
export function hmacHexOf(secret: string, ...message: Uint8Array[]): string {
  const { inner, outer } = padsFor(secret);
  outer.write(hash('sha256', Buffer.concat([inner, ...message]), 'binary'), BLOCK_BYTES, 'latin1');
  return hash('sha256', outer, 'hex');
}

function padsFor(secret: string): Pads {
  const known = padsOf.get(secret);
  if (known !== undefined) return known;
  const pads = padded(new TextEncoder().encode(secret));
  padsOf.set(secret, pads);
  return pads;
}

function padded(key: Uint8Array): Pads {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.set(key.length > block.length ? hash('sha256', key, 'buffer') : key);
  const outer = Buffer.alloc(BLOCK_BYTES + 32);
  outer.set(block.map((byte) => byte ^ 0x5c));
  return { keyBytes: key.length, inner: Buffer.from(block.map((byte) => byte ^ 0x36)), outer };
}

/** Header names are compared without regard to the case of ASCII letters. */
function isName(text: string, name: string): boolean {
  if (text.length !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (!isSame(text.charCodeAt(i), name.charCodeAt(i))) return false;
  return true;
}

function isSame(code: number, lower: number): boolean {
  return code === lower || (lower >= 0x61 && lower <= 0x7a && code === lower - 32);
}

function isTimestamp(text: string): boolean {
  if (text.length !== 13 || text[0] === '0') return false;
  for (const digit of text) if (!'0123456789'.includes(digit)) return false;
  return true;
}

/** The codes of a signature header in lower-case hex; null if the header is malformed. */
function listCodes(header: string, timestamp: string): string[] | null {
  if (header.length > 1024) return null;
  const all = splitElements(header, !header.includes('v1,'));
  const [first = ''] = all;
  const elements = first.startsWith('t=') && first.slice(2) === timestamp ? all.slice(1) : all;
  if (elements.length > 8 || elements.length < 1) return null;
  const codes: string[] = [];
  for (const element of elements) {
    const code = readCode(withoutPrefix(element));
    if (code === null) return null;
    codes.push(code);
  }
  return codes;
}

/** Splits at runs of spaces, each with one comma at most where commas separate. */
function splitElements(header: string, commasSeparate: boolean): string[] {
  const elements: string[] = [];
  let from = 0;
  for (let i = 0; i < header.length; ) {
    const start = i;
    for (let commas = 0; i < header.length; i++) {
      if (commasSeparate && header[i] === ',' && commas === 0) commas++;
      else if (header[i] !== ' ') break;
    }
    if (i === start) i++;
    else {
      elements.push(header.slice(from, start));
      from = i;
    }
  }
  return [...elements, header.slice(from)];
}

function withoutPrefix(element: string): string {
  for (const prefix of ['sha256=', 'sha256:', 'hmac-sha256=', 'v1=']) {
    if (isName(element.slice(0, prefix.length), prefix)) return element.slice(prefix.length);
  }
  return element.startsWith('v1,') ? element.slice(3) : element;
}

function readCode(text: string): string | null {
  if (text.length === 64) {
    const bytes = Buffer.from(text, 'hex');
    const hex = bytes.toString('hex');
    return isName(text, hex) && bytes.length === 32 ? hex : null;
  }
  if (text.length !== 43 && text.length !== 44) return null;
  const bytes = Buffer.from(text, 'base64');
  const spellings = [
    bytes.toString('base64'),
    bytes.toString('base64').slice(0, 43),
    bytes.toString('base64url'),
    `${bytes.toString('base64url')}=`,
  ];
  return bytes.length === 32 && spellings.includes(text) ? bytes.toString('hex') : null;
}
