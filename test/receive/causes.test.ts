import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/receive/diagnosis.ts';
import { explainDiagnosis } from '../../src/receive/diagnosis_words.ts';
import { signedHeaders } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

const settled = sharedApp();

const SECRET = 'c2VjcmV0IG9mIHRoZSB0ZXN0cyE=';
const TIMESTAMP = '1760000000000';
const BODY = '{"id":"evt_1","amount":100.00,\n "name":"São"}\n';

/** What came and what was signed, if they differ from the above. */
type Case = {
  came?: { body?: string; secret?: string };
  signed?: { body?: string; secret?: string | Buffer; before?: string };
};

const CASES: Record<string, [verdict: string, words: string, given: Case]> = {
  body_without_final_line_end: [
    'altered_body',
    'the body without its final line end',
    { signed: { body: BODY.trimEnd() } },
  ],
  body_with_final_line_end: [
    'altered_body',
    'the body with a final line end',
    { came: { body: BODY.trimEnd() }, signed: { body: BODY } },
  ],
  body_lf_for_crlf: [
    'altered_body',
    'the body with LF instead of CR LF',
    { came: { body: BODY.replaceAll('\n', '\r\n') }, signed: { body: BODY } },
  ],
  body_crlf_for_lf: [
    'altered_body',
    'the body with CR LF instead of LF',
    { signed: { body: BODY.replaceAll('\n', '\r\n') } },
  ],
  body_without_bom: [
    'altered_body',
    'the body without its byte order mark',
    { came: { body: `\uFEFF${BODY}` }, signed: { body: BODY } },
  ],
  body_before_double_encoding: [
    'altered_body',
    'the body before it was decoded as Latin-1 and encoded as UTF-8',
    { came: { body: Buffer.from(BODY).toString('latin1') }, signed: { body: BODY } },
  ],
  body_without_white_space: [
    'altered_body',
    'the body without the white space in its JSON',
    { signed: { body: '{"id":"evt_1","amount":100.00,"name":"São"}' } },
  ],
  body_compact_json: [
    'altered_body',
    'the body parsed and written again as compact JSON',
    { signed: { body: JSON.stringify(JSON.parse(BODY)) } },
  ],
  body_python_json: [
    'altered_body',
    'the body written as Python writes JSON',
    { signed: { body: '{"id": "evt_1", "amount": 100.00, "name": "São"}' } },
  ],
  timestamp_seconds: ['altered_timestamp', 'the timestamp in whole seconds', { signed: { before: '1760000000.' } }],
  timestamp_iso: [
    'altered_timestamp',
    'the timestamp as an ISO date',
    { signed: { before: '2025-10-09T08:53:20.000Z.' } },
  ],
  secret_trimmed: [
    'wrong_secret',
    'the secret without the white space around it',
    { came: { secret: ` ${SECRET}  ` }, signed: { secret: SECRET } },
  ],
  secret_with_line_end: ['wrong_secret', 'the secret with a line end after it', { signed: { secret: `${SECRET}\n` } }],
  secret_unquoted: [
    'wrong_secret',
    'the secret without its quotation marks',
    { came: { secret: `"${SECRET}"` }, signed: { secret: SECRET } },
  ],
  secret_without_whsec: [
    'wrong_secret',
    'the secret without its prefix whsec_',
    { came: { secret: `whsec_${SECRET}` }, signed: { secret: SECRET } },
  ],
  secret_from_base64: [
    'wrong_secret',
    'the secret decoded as base64',
    { came: { secret: `whsec_${SECRET}` }, signed: { secret: Buffer.from(SECRET, 'base64') } },
  ],
  body_alone: ['signed_otherwise', 'the body alone, without the timestamp', { signed: { before: '' } }],
  no_full_stop: [
    'signed_otherwise',
    'the timestamp and the body without the full stop between them',
    { signed: { before: TIMESTAMP } },
  ],
};

describe('receive: the causes of a wrong signature', () => {
  it.each(Object.entries(CASES))('%s is found and named', (name, [verdict, words, { came, signed }]) => {
    const { body = BODY, secret = SECRET } = came ?? {};
    const signature = createHmac('sha256', signed?.secret ?? secret)
      .update(signed?.before ?? `${TIMESTAMP}.`)
      .update(signed?.body ?? body)
      .digest('hex');
    const given = { signature, timestamp: TIMESTAMP, body: Buffer.from(body), secrets: [secret] };
    const found = diagnose({ ...given, nowMs: Number(TIMESTAMP) + 1000, toleranceSeconds: 300 });
    // 0.2.0, which may run beside, reads the last two.
    const mistake = { verdict, readings: [name], algorithm: null, change: null };
    expect(found).toEqual({ code: verdict, mistake, clockAheadMs: 1000 });
    const { answer, advice } = explainDiagnosis(found);
    expect([answer, advice]).toEqual([`The signature matches ${words}.`, [expect.any(String)]]);
  });

  it('is what the API answers about a captured delivery', async () => {
    const { reference, webhookSecret } = await settled().reserve(freshReference());
    const signature = createHmac('sha256', `${webhookSecret}\n`).update(`${TIMESTAMP}.${BODY}`).digest('hex');
    const captured = { signature, timestamp: TIMESTAMP, bodyBase64: Buffer.from(BODY).toString('base64') };
    const { status, body } = await settled().api(`/v1/orders/${reference}/verify`, { body: captured });
    expect([status, body.verdict]).toMatchObject([
      200,
      {
        ...{ code: 'wrong_secret', authentic: false, advice: [expect.any(String)] },
        answer: 'The signature matches the secret with a line end after it.',
        details: { mistake: { readings: ['secret_with_line_end'] } },
      },
    ]);
  });

  const OTHERS = 'another form of what was signed, which this version does not look for';
  const nothing = { readings: [], algorithm: null, change: null };
  const changed = { of: 'body', how: 'instead', at: 23, is: '9', shouldBe: '1' };
  it.each<[string, object, string, RegExp]>([
    ['a changed character', { verdict: 'altered_body', change: changed }, OTHERS, /Find what changes it/],
    ['a digit of the timestamp', { verdict: 'altered_timestamp', change: changed }, OTHERS, /what changes the header/],
    ['a secret in hex', { verdict: 'wrong_secret', readings: ['secret_from_hex'] }, OTHERS, /are the key/],
    ['another hash', { verdict: 'signed_otherwise', algorithm: 'sha512' }, OTHERS, /HMAC-SHA256 over/],
    [
      'two at once',
      { verdict: 'altered_body', readings: ['body_without_final_line_end', 'secret_from_base64'] },
      'the body without its final line end and the secret decoded as base64',
      /Find what changes it/,
    ],
    ['one of them unknown', { verdict: 'altered_body', readings: ['body_alone', 'body_empty'] }, OTHERS, /Find what/],
  ])('what 0.2.0 stored of %s is still read', async (_what, mistake, words, advice) => {
    const link = await settled().reserve(freshReference());
    await settled().deliver(link, BODY, signedHeaders('the-secret-of-another-link', BODY));
    const rejections = async () => (await settled().api(`/v1/rejections?reference=${link.reference}`)).body.rejections;
    await eventually(async () => expect(await rejections()).toMatchObject([{ count: 1, diagnosis: {} }]));
    const stored = { ...nothing, ...mistake };
    const { verdict: code } = stored as { verdict?: string };
    for (const found of [
      { code, mistake: stored, clockAheadMs: 5 },
      { code: 'malformed_signature', fault: { fault: 'quoted' }, besides: stored },
    ]) {
      const sql =
        'UPDATE rejection SET diagnosis = ? WHERE link_key = (SELECT l.key FROM link l WHERE l.token = ?) AND count = 1';
      tamper(settled().storePath, sql, JSON.stringify(found), link.webhookUrl.split('/').at(-1));
      const [{ diagnosis }] = await rejections();
      expect(`${diagnosis.answer} ${diagnosis.advice.join(' ')}`).toContain(`signature matches ${words}.`);
      if (found.code === code) expect(diagnosis.advice.join(' ')).toMatch(advice);
      const { answer } = (await settled().api(`/v1/orders/${link.reference}/timeline`)).body;
      expect(answer).toContain(diagnosis.answer);
    }
  });
});
