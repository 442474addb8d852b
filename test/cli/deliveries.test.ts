import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { type Captured, diagnose } from '../../src/receive/diagnosis.ts';
import { explainDiagnosis } from '../../src/receive/diagnosis_words.ts';
import { testFolder } from '../support/app.ts';
import { signatureHex } from '../support/deliveries.ts';
import { runSettled } from '../support/process.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import vectors from '../vectors/signatures.json' with { type: 'json' };
import { environmentOf, misunderstood, say } from './settled.ts';

const SECRET = 'c2VjcmV0IG9mIHRoZSB0ZXN0cyE=';
const TIMESTAMP = '1760000000000';
const BODY = '{"id":"evt_1","amount":100.00,\n "name":"São"}\n';

type Signed = { body?: string | Buffer; timestamp?: string; secret?: string | Buffer };

function secretFile(): string {
  const path = join(testFolder(), 'secret');
  writeFileSync(path, `${SECRET}\n`);
  return path;
}

function hex({ body = BODY, timestamp = TIMESTAMP, secret = SECRET }: Signed = {}): string {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex');
}

type Given = Partial<Omit<Captured, 'body' | 'secrets'>> & { body?: string | Buffer; secret?: string };

function capture({ secret = SECRET, ...over }: Given = {}) {
  const diagnosis = diagnose({
    signature: hex(),
    timestamp: TIMESTAMP,
    secrets: [secret],
    nowMs: Number(TIMESTAMP) + 1000,
    toleranceSeconds: 300,
    ...over,
    body: Buffer.from(over.body ?? BODY),
  });
  const { answer, advice: remarks } = explainDiagnosis(diagnosis);
  const authentic = diagnosis.code === 'authentic';
  const clockAheadMs = 'clockAheadMs' in diagnosis ? diagnosis.clockAheadMs : null;
  return { authentic, verdict: diagnosis.code, answer, remarks, clockAheadMs };
}

const TWO_CAUSES = { body: BODY.trimEnd(), secret: Buffer.from(SECRET, 'base64') };

const settled = sharedApp();

describe('cli: verify', () => {
  it.each(vectors)('$name: is authentic, in hex and in base64', (vector) => {
    const { secret, timestamp } = vector;
    const body = Buffer.from(vector.bodyHex, 'hex');
    for (const signature of [vector.hex, vector.base64]) {
      const nowMs = Number(timestamp);
      expect(capture({ body, secret, timestamp, signature, nowMs })).toMatchObject({
        authentic: true,
        verdict: 'authentic',
      });
    }
  });

  it.each([
    [7_500_000, /2 h 5 min before/],
    [-301_000, /5 min 1 s after/],
  ])('an authentic delivery %i ms off is a matter of the clock, and says by how much', (clockAheadMs, words) => {
    const found = capture({ nowMs: Number(TIMESTAMP) + clockAheadMs });
    expect(found).toMatchObject({ authentic: false, verdict: 'stale_clock', clockAheadMs });
    expect(found.answer).toMatch(words);
    expect(found.answer).toContain('300 s are tolerated');
  });

  it('ignores spaces around a header, as HTTP does', () => {
    const found = capture({ signature: ` ${hex()}\t`, timestamp: ` ${TIMESTAMP} ` });
    expect(found.verdict).toBe('authentic');
  });

  it.each<[string, Buffer, RegExp]>([
    ['cut', Buffer.from(BODY).subarray(0, 20), /is not JSON/],
    ['empty', Buffer.alloc(0), /is empty/],
    ['not UTF-8', Buffer.from('{"id":"\xff\xfe"}', 'latin1'), /is not UTF-8/],
    ['decoded wrongly', Buffer.from('{"id":"\uFFFD\uFFFD"}'), /replacement characters/],
  ])('a body that is %s and cannot be explained is altered all the same', (_how, body, words) => {
    const found = capture({ body, signature: hex({ body: 'x'.repeat(50) }) });
    expect(found.verdict).toBe('altered_body');
    expect(found.answer).toMatch(words);
  });

  it('does not say more than it knows: another secret and a well-made other body look alike', () => {
    const found = capture({ secret: 'the-secret-of-another-link' });
    expect(found.verdict).toBe('wrong_secret_or_altered_body');
    expect(found.remarks.join(' ')).toMatch(/verify another delivery of the same link/);
    // What takes another search than a look at the usual causes: one character, and two causes at once.
    for (const signed of [{ body: BODY.replace('100.00', '900.00') }, { timestamp: '1760000000001' }, TWO_CAUSES]) {
      expect(capture({ signature: hex(signed) }).verdict).toBe(found.verdict);
    }
  });

  it('tries no causes with a body above 16 KiB, and still verifies it', () => {
    const body = `"${'x'.repeat(17_000)}"`;
    expect(capture({ body, signature: hex({ body }) }).verdict).toBe('authentic');
    expect(capture({ body, signature: hex({ body: `${body}\n` }) }).verdict).toBe('wrong_secret_or_altered_body');
  });

  const RIGHT = 'Apart from that the signature is right';
  const TIME = /names a time \(`t=`\) that does not stand alone before a code/;
  it.each<[string, string, RegExp, string | undefined]>([
    ['empty', '', /is empty/, undefined],
    ['named', `x-service-signature: ${hex()}`, /give what follows the colon/, RIGHT],
    ['quoted', `"${hex()}"`, /without quotation marks/, RIGHT],
    ['cut', hex().slice(0, 60), /has 60 hexadecimal digits, and HMAC-SHA256 has 64: it is cut/, undefined],
    [
      'of SHA-512',
      createHmac('sha512', SECRET).update(`${TIMESTAMP}.${BODY}`).digest('hex'),
      /has 128 hexadecimal digits, and HMAC-SHA256 has 64: it seems to be SHA-512/,
      undefined,
    ],
    ['of an unknown prefix', `hmac=${hex()}`, /has the prefix `hmac=`/, RIGHT],
    ['encoded twice', Buffer.from(hex()).toString('base64'), /base64 of 64 bytes/, RIGHT],
    ['of the name of another brand', `X-Acme-Signature: ${hex()}`, /give what follows the colon/, RIGHT],
    ['of a time in seconds', `t=1760000000,v1=${hex()}`, TIME, RIGHT],
    ['of a time after the code', `v1=${hex()},t=${TIMESTAMP}`, TIME, RIGHT],
    ['of two times', `t=${TIMESTAMP},t=${TIMESTAMP},v1=${hex()}`, TIME, RIGHT],
    ['of a time alone', `t=${TIMESTAMP}`, TIME, undefined],
    ['a list of nine', Array(9).fill(hex()).join(' '), /in 9 parts/, RIGHT],
    ['a word', 'signature', /base64 of 6 bytes/, undefined],
  ])('a signature header that is %s is malformed, and says how', (_how, signature, words, remark) => {
    const found = capture({ signature });
    expect(found).toMatchObject({ authentic: false, verdict: 'malformed_signature' });
    expect(found.answer).toMatch(words);
    expect(found.remarks.join(' ')).toContain(remark ?? '');
    if (remark === undefined) expect(found.remarks).toEqual([]);
  });

  it.each([
    ['1760000000', /has 10 digits, so it seems to be in seconds/],
    ['1760000000000000', /16 digits, so it seems to be in microseconds/],
    ['1760000000.000', /does not consist of digits/],
    ['-1760000000000', /does not consist of digits/],
    ['2025-10-09T08:53:20Z', /does not consist of digits/],
    ['x-service-timestamp: 1760000000000', /without the name of the header/],
  ])('the timestamp %s is malformed, and says how', (timestamp, words) => {
    const found = capture({ timestamp, signature: hex({ timestamp }) });
    expect(found).toMatchObject({ authentic: false, verdict: 'malformed_timestamp' });
    expect(found.answer).toMatch(words);
    expect(found.remarks.join(' ')).toContain(RIGHT);
  });

  it('a secret that is too short is unusable, though it matches', () => {
    const found = capture({ secret: 'short', signature: hex({ secret: 'short' }) });
    expect(found).toMatchObject({ authentic: false, verdict: 'unusable_secret' });
    expect(found.answer).toMatch(/has 5 bytes.*fewer than 16/);
  });

  it('works from files without a server, and ends with 65 for what is not authentic', async () => {
    const folder = testFolder();
    const body = join(folder, 'body');
    writeFileSync(body, BODY);
    const timestamp = String(Date.now());
    const args = ['verify', '--body', body, '--secret-file', secretFile(), '--timestamp', timestamp, '--signature'];
    const right = await say([...args, signatureHex(SECRET, timestamp, BODY)], {});
    expect(right.text).toMatch(/^authentic: The signature is right, and fresh\./);
    expect(right.data).toMatchObject({ authentic: true });
    const wrong = await say([...args, signatureHex(SECRET, timestamp, `${BODY}\n`)], {}, EXIT.notAuthentic);
    expect(wrong.text).toMatch(/^altered_body: .*with a final line end/);
    expect(wrong.data).toMatchObject({ authentic: false, verdict: 'altered_body' });
    expect(wrong.text + JSON.stringify(wrong.data)).not.toContain(SECRET);
  });

  it('verifies with --order without showing the secret or the right code', async () => {
    const reference = freshReference();
    const link = await settled().reserve(reference);
    const folder = testFolder();
    const body = join(folder, 'body');
    writeFileSync(body, BODY);
    const timestamp = String(Date.now());
    const right = signatureHex(link.webhookSecret, timestamp, BODY);
    const verify = (signature: string, over: string[] = [], exit?: number) => {
      const args = ['verify', '--order', reference, '--body', body, '--timestamp', timestamp];
      return say([...args, '--signature', signature, ...over], environmentOf(settled()), exit);
    };
    expect((await verify(right)).text).toMatch(/^authentic: The signature is right, and fresh\./);
    const stale = await verify(right, ['--now', String(Number(timestamp) + 301_000)], EXIT.notAuthentic);
    expect(stale.data).toMatchObject({ authentic: false, verdict: 'stale_clock' });
    const altered = signatureHex(link.webhookSecret, timestamp, BODY.trimEnd());
    const found = await verify(altered, [], EXIT.notAuthentic);
    expect(found.text).toMatch(/^altered_body: .*without its final line end/);
    expect(found.data).toMatchObject({ authentic: false, verdict: 'altered_body' });
    for (const secret of [link.webhookSecret, right]) {
      expect(found.text + JSON.stringify(found.data)).not.toContain(secret);
    }
    expect((await settled().api('/v1/rejections')).body.rejections).toEqual([]);
  });

  it('takes --order or a secret, and says so', async () => {
    const given = ['verify', '--body', '-', '--signature', hex(), '--timestamp', TIMESTAMP];
    for (const secrets of [[], ['--order', 'order-1', '--secret-file', secretFile()]]) {
      expect(await misunderstood([...given, ...secrets])).toMatch(/either --order REFERENCE or --secret-file/);
    }
  });

  it('names a file that cannot be read', async () => {
    const given = ['--signature', hex(), '--timestamp', TIMESTAMP, '--secret-file', secretFile()];
    const end = await runSettled(['verify', '--body', '/nowhere/body', ...given]);
    expect(end).toMatchObject({ code: EXIT.usage, stdout: '' });
    expect(end.stderr).toBe('settled: --body /nowhere/body does not exist.\n');
  });
});
