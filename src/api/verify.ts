import type { RequestHandler } from 'express';
import { Fault } from '../fault.ts';
import { sendProblem } from '../http/problem.ts';
import { type Diagnosis, diagnose } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { Clock } from '../work/clock.ts';
import type { ApiOptions } from './options.ts';
import { noSuchOrder } from './orders.ts';
import { read, readReference, verifyRequest } from './requests.ts';

/** Each may compute two thousand codes: so many at once, and one more in each of these times. */
const BURST = 10;
const ONE_MORE_MS = 2_000;

/**
 * `POST /v1/orders/:reference/verify`: whether a captured delivery is authentic for the order's link, and if not, what is
 * wrong with it. Neither the signing secret nor the code that would be right is ever answered, and nothing is kept.
 */
export function verifyDelivery(options: ApiOptions): RequestHandler {
  const { credentials, clock, toleranceSeconds } = options;
  const mayVerify = limit(clock);
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const asked = read(verifyRequest, request.body, response);
    if (asked === null) return;
    if (!mayVerify()) {
      const detail = `${BURST} deliveries were verified just now. Verify the next one in ${ONE_MORE_MS / 1000} s.`;
      return sendProblem(response, { status: 429, code: 'rate_limited', detail });
    }
    const secrets = await secretsOf(credentials, reference);
    if (secrets === null) return noSuchOrder(response, reference);
    const found = diagnose({
      body: Buffer.from(asked.bodyBase64, 'base64'),
      signature: asked.signature,
      timestamp: asked.timestamp,
      secrets,
      nowMs: asked.atMs ?? clock.nowMs(),
      toleranceSeconds,
      effort: 'little',
    });
    response.json({ verdict: verdictDocument(found) });
  };
}

/** The link's signing secret, and the service's beside it; null if there is no such order. */
async function secretsOf(credentials: ApiOptions['credentials'], reference: string): Promise<string[] | null> {
  try {
    const link = await credentials.find({ reference });
    if (link === null) return null;
    const { secret, serviceSecret } = link;
    return [secret, ...(serviceSecret === undefined ? [] : [serviceSecret()])];
  } catch (error) {
    // Whoever reads the answer can bring the key back; then it can be asked again.
    if (error instanceof Fault) throw new Fault('transient', error.code, error.message, { cause: error });
    throw error;
  }
}

function verdictDocument(found: Diagnosis): object {
  const { code, ...details } = found;
  return { code, authentic: code === 'authentic', details, ...explainDiagnosis(found) };
}

function limit(clock: Pick<Clock, 'monotonicMs'>): () => boolean {
  let freeAtMs: number[] = [];
  return () => {
    const nowMs = clock.monotonicMs();
    freeAtMs = freeAtMs.filter((atMs) => atMs > nowMs);
    if (freeAtMs.length >= BURST) return false;
    freeAtMs.push(Math.max(nowMs, freeAtMs.at(-1) ?? 0) + ONE_MORE_MS);
    return true;
  };
}
