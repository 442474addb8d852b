import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { headerNames } from '../../src/paylink/events.ts';
import { readSignatures, readTimestamp, type Verified, verify } from '../../src/receive/verify.ts';
import { signatureHex } from '../support/deliveries.ts';
import spellings from '../vectors/spellings.json' with { type: 'json' };

type Vector = { name: string; secret: string; timestamp: string; bodyHex: string; hex: string; base64: string };

const vectors = JSON.parse(readFileSync(new URL('../vectors/signatures.json', import.meta.url), 'utf8')) as Vector[];

const base64url = ({ base64 }: Vector) => base64.replaceAll('+', '-').replaceAll('/', '_');

/** Every way to write one code of 32 bytes. */
const ENCODINGS: Record<string, (vector: Vector) => string> = {
  'lower-case hex': ({ hex }) => hex,
  'upper-case hex': ({ hex }) => hex.toUpperCase(),
  'mixed-case hex': ({ hex }) => hex.slice(0, 32) + hex.slice(32).toUpperCase(),
  base64: ({ base64 }) => base64,
  'base64 without padding': ({ base64 }) => base64.replace('=', ''),
  'base64url with padding': base64url,
  'base64url without padding': (vector) => base64url(vector).replace('=', ''),
};
const PREFIXES = ['', 'sha256=', 'sha256:', 'SHA256=', 'hmac-sha256=', 'Hmac-Sha256=', 'v1=', 'V1=', 'v1,'];

function verifyWith(vector: Vector, signature: string, over: Partial<Vector> = {}): Verified {
  const { timestamp, secret, bodyHex } = { ...vector, ...over };
  return verify({
    rawHeaders: ['X-Service-Signature', signature, 'X-Service-Timestamp', timestamp],
    headerNames: headerNames('x-service'),
    body: Buffer.from(bodyHex, 'hex'),
    credentials: { secret },
  });
}

describe('receive: golden vectors', () => {
  it('are eight', () => {
    expect(vectors).toHaveLength(8);
  });

  describe.each(vectors)('$name', (vector) => {
    for (const [encoding, write] of Object.entries(ENCODINGS)) {
      it.each(PREFIXES)(`are accepted as ${encoding} after the prefix "%s"`, (prefix) => {
        expect(verifyWith(vector, prefix + write(vector))).toMatchObject({
          ok: true,
          authentic: { timestamp: vector.timestamp, timestampMs: Number(vector.timestamp) },
        });
      });
    }

    it('are refused when one bit of the body is turned', () => {
      const body = Buffer.from(vector.bodyHex, 'hex');
      const turned = Buffer.concat([body, Buffer.from(body.length === 0 ? [0] : [])]);
      if (body.length > 0) turned[body.length - 1] = (turned[body.length - 1] as number) ^ 1;
      expect(verifyWith(vector, vector.hex, { bodyHex: turned.toString('hex') })).toEqual({
        ok: false,
        reason: 'signature_wrong',
      });
    });

    it('are refused under the next millisecond', () => {
      const timestamp = String(Number(vector.timestamp) + 1);
      expect(verifyWith(vector, vector.hex, { timestamp })).toEqual({ ok: false, reason: 'signature_wrong' });
    });

    it('are refused under another secret', () => {
      const over = { secret: `${vector.secret}!` };
      expect(verifyWith(vector, vector.hex, over)).toEqual({ ok: false, reason: 'signature_wrong' });
    });
  });
});

const VECTOR = vectors[0] as Vector;
const { hex: HEX, base64: BASE64 } = VECTOR;
const WRONG_HEX = 'ab'.repeat(32);
const WRONG_BASE64 = Buffer.alloc(32, 0xab).toString('base64');

/** What is refused: a code that is well written but another one, or a header that is not well written. */
function outcome(signature: string): string {
  const verified = verifyWith(VECTOR, signature);
  return verified.ok ? 'accepted' : verified.reason;
}

describe('receive: several signatures', () => {
  it.each([
    ['spaces', `${WRONG_HEX} ${HEX}`],
    ['several spaces', `${WRONG_HEX}   ${HEX}`],
    ['commas', `${WRONG_HEX},${HEX}`],
    ['commas and spaces', `${WRONG_HEX} , ${HEX},  ${WRONG_BASE64}`],
    ['spaces, each after "v1,"', `v1,${WRONG_BASE64} v1,${BASE64}`],
    ['spaces, some after "v1,"', `sha256=${WRONG_HEX} v1,${BASE64}`],
    ['spaces, in different encodings', `v1=${WRONG_BASE64} ${HEX}`],
  ])('are accepted separated by %s', (_name, signature) => {
    expect(outcome(signature)).toBe('accepted');
  });

  it('are accepted with the right one in any place', () => {
    for (let place = 0; place < 8; place++) {
      const list = Array.from({ length: 8 }, (_, i) => (i === place ? HEX : WRONG_HEX));
      expect(outcome(list.join(' '))).toBe('accepted');
    }
  });

  it('are refused when none is right', () => {
    expect(outcome(`${WRONG_HEX},${WRONG_BASE64}`)).toBe('signature_wrong');
  });

  it('are accepted up to eight', () => {
    expect(outcome([...Array(7).fill(WRONG_HEX), HEX].join(','))).toBe('accepted');
  });

  it('are refused from nine on, the right one among the first eight', () => {
    expect(outcome([HEX, ...Array(8).fill(WRONG_HEX)].join(','))).toBe('signature_malformed');
  });

  it('are refused from nine on, the right one last', () => {
    expect(outcome([...Array(8).fill(WRONG_HEX), HEX].join(' '))).toBe('signature_malformed');
  });
});

/** The last digit of 32 bytes in base64 carries two bits that are not data; only zeros there are canonical. */
function withSpareBits(base64: string): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const last = digits.indexOf(base64[42] as string);
  return `${base64.slice(0, 42)}${digits[last + 1]}=`;
}

describe('receive: the signature header is refused as malformed', () => {
  it.each([
    ['empty', ''],
    ['one space', ' '],
    ['a prefix alone', 'sha256='],
    ['"v1," alone', 'v1,'],
    ['63 hex digits', HEX.slice(1)],
    ['65 hex digits', `${HEX}0`],
    ['66 hex digits', `${HEX}00`],
    ['an even number of digits that are not all hex', `${HEX.slice(0, 62)}zz`],
    ['hex after 0x', `0x${HEX}`],
    ['hex in pairs with colons', (HEX.match(/../g) as string[]).join(':')],
    ['a base64 digit whose spare bits are set', withSpareBits(BASE64)],
    ['a base64url digit whose spare bits are set', withSpareBits(BASE64).replace('=', '')],
    ['base64 padded twice', `${BASE64}=`],
    ['base64 of 31 bytes', Buffer.alloc(31, 1).toString('base64')],
    ['base64 of 33 bytes', Buffer.alloc(33, 1).toString('base64')],
    ['a character that base64 decoders skip', `${BASE64.slice(0, 20)}!${BASE64.slice(20)}`],
    ['a character that base64 decoders skip, instead of a digit', `${BASE64.slice(0, 20)}!${BASE64.slice(21)}`],
    ['a newline within', `${BASE64.slice(0, 20)}\n${BASE64.slice(20)}`],
    ['a newline after', `${HEX}\n`],
    ['a carriage return after', `${HEX}\r`],
    ['a NUL after', `${HEX}\0`],
    ['a space before', ` ${HEX}`],
    ['a space after', `${HEX} `],
    ['a tab as separator', `${HEX}\t${HEX}`],
    ['a semicolon as separator', `${HEX};${HEX}`],
    ['a comma after', `${HEX},`],
    ['a comma before', `,${HEX}`],
    ['an empty element', `${HEX},,${HEX}`],
    ['an empty element between spaces', `${HEX}, ,${HEX}`],
    ['one element of several malformed', `${HEX} nonsense`],
    ['elements with "v1," separated by a comma', `v1,${BASE64},v1,${BASE64}`],
    ['elements with "v1," separated by a comma and a space', `v1,${BASE64}, v1,${BASE64}`],
    ['"v1," after an element that a comma ends', `${HEX}, v1,${BASE64}`],
    ['an unknown prefix', `sha512=${HEX}`],
    ['a later version of the prefix', `v2,${BASE64}`],
    ['"v1," in a capital', `V1,${BASE64}`],
    ['two prefixes', `v1=sha256=${HEX}`],
    ['a prefix and a space', `sha256= ${HEX}`],
    ['a list of attributes, one of another time', `t=${VECTOR.timestamp}1,v1=${HEX}`],
    ['a list of attributes, one of them unknown', `t=${VECTOR.timestamp},v1=${HEX},v0=${HEX}`],
    ['quotes', `"${HEX}"`],
    ['full-width digits', HEX.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))],
    ['Arabic digits', HEX.replace(/[0-9]/g, (digit) => String.fromCodePoint(0x0660 + Number(digit)))],
    ['a Kelvin sign, which is a k without regard to case', `\u212a${BASE64.slice(1)}`],
  ])('%s', (_name, signature) => {
    expect(outcome(signature)).toBe('signature_malformed');
  });

  it('the two alphabets mixed, with padding and without', () => {
    const vector = vectors.find(({ base64 }) => base64.includes('+') && base64.includes('/')) as Vector;
    const mixed = vector.base64.replaceAll('+', '-');
    for (const signature of [mixed, mixed.replace('=', '')]) {
      expect(verifyWith(vector, signature)).toEqual({ ok: false, reason: 'signature_malformed' });
    }
  });

  it('longer than 1 024 characters, though short when spaces are taken together', () => {
    const fits = `${WRONG_HEX}${' '.repeat(1024 - 128)}${HEX}`;
    expect(outcome(fits)).toBe('accepted');
    expect(outcome(fits.replace(' ', '  '))).toBe('signature_malformed');
  });
});

describe('receive: reading the signature header', () => {
  it('gives 32 bytes for each element', () => {
    const candidates = readSignatures(`t=1,${HEX},${BASE64}, sha256=${WRONG_HEX}`, '1');
    expect(candidates?.map((candidate) => candidate.toString('hex'))).toEqual([HEX, HEX, WRONG_HEX]);
  });
});

describe('receive: spellings that openssl and a shell made', () => {
  const { secret, timestamp, bodyHex } = spellings;
  const given = { ...VECTOR, secret, timestamp, bodyHex };

  it.each(spellings.headers)('$name: accepted $accepted', ({ header, accepted }) => {
    expect(verifyWith(given, header)).toMatchObject(
      accepted ? { ok: true, authentic: { timestamp } } : { ok: false, reason: 'signature_malformed' },
    );
  });

  it('are all refused with another timestamp header, those that name a time as malformed', () => {
    for (const { header, accepted } of spellings.headers) {
      const verified = verifyWith(given, header, { timestamp: '1760000000009' });
      const reason = accepted && !header.startsWith('t=') ? 'signature_wrong' : 'signature_malformed';
      expect([header, verified]).toEqual([header, { ok: false, reason }]);
    }
  });
});

/** Texts that one parser or another takes for 1760000000000, and others that name a time in another way. */
const TIMESTAMPS_REFUSED = {
  empty: '',
  'an exponent': '1.76e12',
  hexadecimal: '0x199c82cc000',
  octal: '0o31634054600000',
  'a plus sign': '+1760000000000',
  'a minus sign': '-1760000000000',
  'a fraction of zero': '1760000000000.0',
  'a fraction': '176000000000.5',
  'a leading zero': '01760000000000',
  'a leading zero in 13 digits': '0176000000000',
  'full-width digits': '１７６００００００００００',
  'Arabic digits': '١٧٦٠٠٠٠٠٠٠٠٠٠',
  seconds: '1760000000',
  microseconds: '1760000000000000',
  'a digit too many': '17600000000000',
  'a digit too few': '176000000000',
  'a space before': ' 1760000000000',
  'a newline after': '1760000000000\n',
  underscores: '1_760_000_000_000',
  'a bigint suffix': '1760000000000n',
  'two, as joined headers are': '1760000000000, 1760000000000',
  'an ISO 8601 time': '2025-10-09T08:53:20.000Z',
  'not a number': 'NaN',
  infinity: 'Infinity',
};

describe('receive: the timestamp header', () => {
  it('is read as epoch milliseconds from exactly 13 digits', () => {
    expect(readTimestamp('1760000000000')).toBe(1_760_000_000_000);
    expect(readTimestamp('9999999999999')).toBe(9_999_999_999_999);
    expect(readTimestamp('1000000000000')).toBe(1_000_000_000_000);
  });

  it.each(Object.entries(TIMESTAMPS_REFUSED))('is refused as %s, although signed: %j', (_name, timestamp) => {
    const hex = signatureHex(VECTOR.secret, timestamp, Buffer.from(VECTOR.bodyHex, 'hex'));
    const verified = verifyWith(VECTOR, hex, { timestamp });
    expect(verified).toEqual({ ok: false, reason: 'timestamp_malformed' });
  });

  it('is signed as its characters: the same instant in other characters has another signature', () => {
    // What is signed is text, so 1760000000000 and 1.76e12 differ although both are one number.
    const hex = signatureHex(VECTOR.secret, '1.76e12', Buffer.from(VECTOR.bodyHex, 'hex'));
    expect(verifyWith(VECTOR, hex)).toEqual({ ok: false, reason: 'signature_wrong' });
  });

  it.each([
    ['"1", body "2.x" for "1.2", body "x"', '1', '2.x', '1.2', 'x'],
    ['digits moved into the body', '1760000000000', '1.x', '1760000000000.1', 'x'],
    ['digits moved out of the body', '176000000000', '0.x', '176000000000.0', 'x'],
  ])('cannot be shifted over the delimiter: %s', (_name, timestamp, body, shiftedTimestamp, shiftedBody) => {
    const secret = VECTOR.secret;
    const hex = signatureHex(secret, timestamp, body);
    // Both pairs are the same signed text; only the grammar of the timestamp tells them apart.
    expect(signatureHex(secret, shiftedTimestamp, shiftedBody)).toBe(hex);
    const bodyHex = Buffer.from(shiftedBody).toString('hex');
    const verified = verifyWith(VECTOR, hex, { timestamp: shiftedTimestamp, bodyHex });
    expect(verified).toEqual({ ok: false, reason: 'timestamp_malformed' });
  });
});
