import { z } from 'zod';
import { words } from '../explain/glossary.ts';
import { readDiagnosis } from '../explain/refused_deliveries.ts';
import { Fault, transientFault } from '../fault.ts';
import { type Diagnosis, diagnose } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { RejectionSummary } from '../store/verbs/lists.ts';
import { KEPT_REASONS } from '../vocabulary.ts';
import * as field from './fields.ts';
import { listAnswer, listQuery, readList, referenceFilter } from './lists.ts';
import { found } from './problem.ts';
import { type ApiOptions, ok, operation } from './route.ts';

const diagnosis = field.component('Diagnosis', 'What a delivery turned out to be.', {
  code: z.string().describe('What it is: see "Verdicts" in docs/errors.md.'),
  details: z.looseObject({}).describe('What belongs to the code. Nothing of it is secret.'),
  answer: z.string().describe('What is wrong, in a sentence or two.'),
  advice: z.array(z.string()).describe('What else settled noticed, and what to do.'),
});

const rejection = field.component(
  'Rejection',
  "Deliveries to one order's link that were refused for one reason. Their bodies are not kept.",
  {
    id: field.rowId,
    reference: field.reference,
    reason: field.names('RejectionReason', KEPT_REASONS, words.rejection),
    count: field.count.describe('The number of deliveries.'),
    diagnosis: diagnosis.nullable().describe('Of the last delivery that settled examined; of many, it examines some.'),
    firstAt: field.time,
    lastAt: field.time,
  },
);

export type RejectionDocument = z.infer<typeof rejection>;

export const listRejections = operation({
  summary: 'List deliveries that settled rejected',
  description: 'They never touch an order.',
  query: z.strictObject({
    ...listQuery,
    reason: z.enum(KEPT_REASONS).optional().describe('Only those for this reason.'),
    reference: referenceFilter,
  }),
  answers: ok('A page, one row per order and reason.', { rejections: z.array(rejection), ...listAnswer }),
  answer: async ({ store }, { query }) => {
    const { reason = null, reference: of = null } = query;
    const { rows, more } = await readList(query, (at) => store.listRejections({ ...at, reason, reference: of }));
    return { rejections: rows.map(rejectionDocument), ...more };
  },
});

function rejectionDocument(rejection: RejectionSummary): object {
  const found = readDiagnosis(rejection.diagnosis);
  return field.rowDocument({ ...rejection, diagnosis: found === null ? null : diagnosisDocument(found) });
}

function diagnosisDocument(found: Diagnosis): z.infer<typeof diagnosis> {
  const { code, ...details } = found;
  return { code, details, ...explainDiagnosis(found) };
}

const CAPTURED = { signature: 'ab'.repeat(32), timestamp: '1760000000000', bodyBase64: 'eyJpZCI6ImV2dF8xIn0=' };
const atMost = (max: number) => z.string().max(max, `must have at most ${max} characters`);
const base64 = atMost(60_000).regex(
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  'must be base64, with its padding',
);

/** A delivery as it was captured. A larger body does not fit into a request to this API. */
const captured = z.strictObject({
  signature: field.described(atMost(2048), 'The value of the signature header.', CAPTURED.signature),
  timestamp: field.described(atMost(256), 'The value of the timestamp header.', CAPTURED.timestamp),
  bodyBase64: field.described(base64, 'The raw body in base64: 45000 bytes at most.', CAPTURED.bodyBase64),
  atMs: z
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .max(8_640_000_000_000_000, 'must be epoch milliseconds that a date can have')
    .optional()
    .describe('When it came, in epoch milliseconds; by default now.'),
});

export const verifyDelivery = operation({
  summary: 'Say what is wrong with a captured delivery',
  description:
    "Verifies it with the signing secret of the order's link, and tries the usual mistakes. It answers neither the secret " +
    'nor the right code, and keeps nothing. `settled verify --order ORDER` calls it.',
  body: captured,
  answers: ok('What the delivery turned out to be.', {
    verdict: z.strictObject({ ...diagnosis.shape, authentic: z.boolean() }),
  }),
  example: CAPTURED,
  answer: async (options, { reference: of, body }) => {
    const { code, ...rest } = diagnosisDocument(
      diagnose({
        body: Buffer.from(body.bodyBase64, 'base64'),
        signature: body.signature,
        timestamp: body.timestamp,
        secrets: await secretsOf(options.credentials, of),
        nowMs: body.atMs ?? options.clock.nowMs(),
        toleranceSeconds: options.toleranceSeconds,
      }),
    );
    return { verdict: { code, authentic: code === 'authentic', ...rest } };
  },
});

/** The link's signing secret, and the one that the service named, if any. */
async function secretsOf(credentials: ApiOptions['credentials'], name: string): Promise<string[]> {
  try {
    const { secret, serviceSecret } = found(await credentials.find({ reference: name }), 'order', name);
    return [secret, ...(serviceSecret === undefined ? [] : [serviceSecret()])];
  } catch (error) {
    // A person who reads the answer can bring the key back, and ask again.
    if (error instanceof Fault) throw transientFault(error.code, error.message, { cause: error });
    throw error;
  }
}
