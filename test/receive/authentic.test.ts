import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { headerNames } from '../../src/paylink/events.ts';
import { verify } from '../../src/receive/verify.ts';
import { spiedCrypto } from '../support/app.ts';
import { signatureHex } from '../support/deliveries.ts';

const compare = spiedCrypto('timingSafeEqual');

const NAMES = headerNames('x-service');
const SECRET = 'a-secret-of-at-least-24-bytes-1';
const TIMESTAMP = '1760000000000';
const BODY = Buffer.from('{"id":"evt_1"}');
const RIGHT = signatureHex(SECRET, TIMESTAMP, BODY);
const WRONG = 'ab'.repeat(32);

type Parts = { rawHeaders?: string[]; body?: Buffer; secret?: string };

function attempt({ rawHeaders = headers([RIGHT], [TIMESTAMP]), body = BODY, secret = SECRET }: Parts): string {
  const verified = verify({ rawHeaders, headerNames: NAMES, body, credentials: { secret } });
  return verified.ok ? 'accepted' : verified.reason;
}

function headers(signatures: readonly string[], timestamps: readonly string[]): string[] {
  return [
    'Host',
    'localhost',
    ...signatures.flatMap((value) => ['X-Service-Signature', value]),
    ...timestamps.flatMap((value) => ['X-Service-Timestamp', value]),
  ];
}

describe('receive: the headers of a delivery', () => {
  it('are found in any case of their names', () => {
    const rawHeaders = ['x-service-signature', RIGHT, 'X-SERVICE-TIMESTAMP', TIMESTAMP];
    expect(attempt({ rawHeaders })).toBe('accepted');
  });

  it.each([
    ['no signature', [], [TIMESTAMP], 'signature_missing'],
    ['no timestamp', [RIGHT], [], 'timestamp_missing'],
    ['an empty signature', [''], [TIMESTAMP], 'signature_malformed'],
    ['an empty timestamp', [RIGHT], [''], 'timestamp_malformed'],
    ['the signature twice', [RIGHT, RIGHT], [TIMESTAMP], 'signature_repeated'],
    ['a wrong and the right signature', [WRONG, RIGHT], [TIMESTAMP], 'signature_repeated'],
    ['the right and a wrong signature', [RIGHT, WRONG], [TIMESTAMP], 'signature_repeated'],
    ['the timestamp twice', [RIGHT], [TIMESTAMP, TIMESTAMP], 'timestamp_repeated'],
    ['two timestamps', [RIGHT], [TIMESTAMP, '1760000000001'], 'timestamp_repeated'],
  ])('are refused with %s', (_name, signatures, timestamps, reason) => {
    expect(attempt({ rawHeaders: headers(signatures, timestamps) })).toBe(reason);
  });

  it('are counted without regard to case', () => {
    const rawHeaders = [...headers([RIGHT], [TIMESTAMP]), 'x-sErViCe-SiGnAtUrE', RIGHT];
    expect(attempt({ rawHeaders })).toBe('signature_repeated');
  });

  it('are not taken from the value of another header', () => {
    const rawHeaders = ['x-note', 'x-service-signature', RIGHT, 'x', 'x-service-timestamp', TIMESTAMP];
    expect(attempt({ rawHeaders })).toBe('signature_missing');
  });

  it('are not taken from a name that only resembles theirs', () => {
    const rawHeaders = ['x_service_signature', RIGHT, 'x-service-timestamp', TIMESTAMP];
    expect(attempt({ rawHeaders })).toBe('signature_missing');
  });
});

describe('receive: the body of a delivery', () => {
  it('is verified as bytes: two bodies that decode to the same text are two bodies', () => {
    const signed = Buffer.from('22ff22', 'hex');
    const sent = Buffer.from('22fe22', 'hex');
    expect(signed.toString()).toBe(sent.toString());
    const rawHeaders = headers([signatureHex(SECRET, TIMESTAMP, signed)], [TIMESTAMP]);
    expect(attempt({ rawHeaders, body: signed })).toBe('accepted');
    expect(attempt({ rawHeaders, body: sent })).toBe('signature_wrong');
  });

  it('keeps its byte order mark', () => {
    const body = Buffer.from('\u{feff}{}');
    const withMark = headers([signatureHex(SECRET, TIMESTAMP, body)], [TIMESTAMP]);
    expect(attempt({ rawHeaders: withMark, body })).toBe('accepted');
    expect(attempt({ rawHeaders: withMark, body: body.subarray(3) })).toBe('signature_wrong');
  });

  it('is verified as it was sent, not as JSON that means the same', () => {
    const spaced = Buffer.from('{ "id": "evt_1" }');
    expect(JSON.parse(spaced.toString())).toEqual(JSON.parse(BODY.toString()));
    expect(attempt({ body: spaced })).toBe('signature_wrong');
  });
});

describe('receive: the signing secret', () => {
  const withoutKey = createHmac('sha256', '').update(`${TIMESTAMP}.`).update(BODY).digest('hex');
  const secrets = { empty: '', 'a prefix alone': 'whsec_', short: 'fifteen-bytes-1', 'one byte': 'x' };
  const attempts = (secret: string): Record<string, [string[], string]> => ({
    'no signature': [[], 'signature_missing'],
    'an empty signature': [[''], 'signature_malformed'],
    'a signature made with an empty key': [[withoutKey], 'secret_unusable'],
    'a signature made with this secret': [[signatureHex(secret, TIMESTAMP, BODY)], 'secret_unusable'],
  });

  for (const [name, secret] of Object.entries(secrets)) {
    for (const [what, [signatures, reason]] of Object.entries(attempts(secret))) {
      it(`that is ${name} lets nothing pass: ${what}`, () => {
        expect(attempt({ rawHeaders: headers(signatures, [TIMESTAMP]), secret })).toBe(reason);
      });
    }
  }

  it('that is missing lets nothing pass', () => {
    for (const signature of [withoutKey, signatureHex('undefined', TIMESTAMP, BODY)]) {
      const rawHeaders = headers([signature], [TIMESTAMP]);
      let accepted = false;
      try {
        const credentials = {} as { secret: string };
        accepted = verify({ rawHeaders, headerNames: NAMES, body: BODY, credentials }).ok;
      } catch {
        // A fault is answered 503: it acknowledges nothing either.
      }
      expect(accepted).toBe(false);
    }
  });

  it('is measured in bytes, and 16 are enough', () => {
    for (const secret of ['sixteen-bytes-16', 'ção-ção-ção-']) {
      expect(Buffer.byteLength(secret)).toBeGreaterThanOrEqual(16);
      const rawHeaders = headers([signatureHex(secret, TIMESTAMP, BODY)], [TIMESTAMP]);
      expect(attempt({ rawHeaders, secret })).toBe('accepted');
    }
  });
});

describe('receive: the comparison', () => {
  it('is made by timingSafeEqual, once, on 32 bytes each', () => {
    expect(attempt({})).toBe('accepted');
    expect(compare.mock.calls.map((sides) => sides.map((side) => side.byteLength))).toEqual([[32, 32]]);
    expect(compare.mock.calls[0]?.map((side) => Buffer.from(side as Buffer).toString('hex'))).toEqual([RIGHT, RIGHT]);
  });

  it('is what decides', () => {
    compare.mockReturnValueOnce(false);
    expect(attempt({})).toBe('signature_wrong');
  });

  it('goes through every signature, also after the right one', () => {
    const rawHeaders = headers([`${WRONG} ${RIGHT} ${WRONG}`], [TIMESTAMP]);
    expect(attempt({ rawHeaders })).toBe('accepted');
    expect(compare).toHaveBeenCalledTimes(3);
  });

  it('is not reached by a header that is malformed', () => {
    expect(attempt({ rawHeaders: headers([`${RIGHT}00`], [TIMESTAMP]) })).toBe('signature_malformed');
    expect(compare).not.toHaveBeenCalled();
  });
});
