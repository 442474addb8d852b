import { inWords } from '../work/clock.ts';
import { type Mistake, matched } from './causes.ts';
import type { BodyDamage, Diagnosis } from './diagnosis.ts';
import { faultWords } from './malformed.ts';

/** A diagnosis for a person: what is wrong, in a sentence or two; then what else was noticed and what to do. */
export type Explained = { answer: string; advice: string[] };

function said(answer: string, ...advice: string[]): Explained {
  return { answer, advice };
}

export function explainDiagnosis(diagnosis: Diagnosis): Explained {
  switch (diagnosis.code) {
    case 'authentic':
      return said(`The signature is right, and fresh. ${signedAt(diagnosis)}.`);
    case 'stale_clock':
      return said(
        `The signature is right, but its clock is not. ${signedAt(diagnosis)}; ${diagnosis.toleranceSeconds} s are tolerated.`,
        'If it came at another time, give that as --now. If it came now, compare the clocks of both machines, or have the ' +
          'service sign it again.',
      );
    case 'malformed_signature':
      return said(faultWords('signature', diagnosis.fault), ...otherwiseRight(diagnosis.besides));
    case 'malformed_timestamp':
      return said(faultWords('timestamp', diagnosis.fault), ...otherwiseRight(diagnosis.besides));
    case 'unusable_secret':
      return said(
        `The secret has ${diagnosis.bytes} bytes. settled refuses secrets of fewer than ${diagnosis.bytesMin}, because ` +
          'they can be guessed. Is it whole?',
        ...otherwiseRight(diagnosis.besides),
      );
    case 'wrong_secret_or_altered_body':
      return said(
        'The signature matches neither this body under this secret nor any of the usual mistakes with them.',
        'Either the secret is of another link, or the body was changed on its way.',
        'To tell them apart, verify another delivery of the same link with this secret: if that one is authentic, this ' +
          'body was altered; if it is not either, the secret is wrong.',
      );
    case 'other_header_names':
      return headerNamesWords(diagnosis);
    case 'other_method':
      return methodWords(diagnosis);
    case 'content_encoding':
      return said(
        `It was sent with Content-Encoding: ${diagnosis.encoding}.`,
        'Have it sent as it was signed: find what compresses it between the service and settled.',
      );
    case 'body_size':
      return said(
        `Its body has ${diagnosis.bytes === null ? 'more than 262144' : diagnosis.bytes} bytes.`,
        'Nothing that the service sends is so large: find out who sends it.',
      );
    default:
      return 'mistake' in diagnosis
        ? said(`The signature matches ${matched(diagnosis.mistake)}.`, ADVICE[diagnosis.code])
        : said(
            `The signature does not match, and the body ${DAMAGE[diagnosis.damage]}.`,
            ADVICE.altered_body,
            'If the body is surely as it came, then the secret is of another link.',
          );
  }
}

function signedAt({ clockAheadMs, nowMs }: { clockAheadMs: number; nowMs: number }): string {
  const [signed, now] = [nowMs - clockAheadMs, nowMs].map((ms) => new Date(ms).toISOString());
  return `It was signed at ${signed}, ${inWords(Math.abs(clockAheadMs))} ${clockAheadMs < 0 ? 'after' : 'before'} ${now}`;
}

function otherwiseRight(mistake: Mistake | null): string[] {
  if (mistake === null) return [];
  const words = matched(mistake);
  return words === ''
    ? ['Apart from that the signature is right: the body and the secret are those that were signed with.']
    : [`Besides, the signature matches ${words}.`];
}

const DAMAGE: Record<BodyDamage, string> = {
  empty: 'is empty',
  no_text: 'is not UTF-8 text, so it was cut or decoded on its way',
  replaced: 'holds replacement characters (U+FFFD), so it was decoded wrongly on its way',
  no_json: 'is not JSON, so it was cut or changed on its way',
};

const ADVICE: Record<Mistake['verdict'], string> = {
  altered_body: 'The body is not what was signed. Find what changes it between the service and settled.',
  altered_timestamp: 'The timestamp is not what was signed. Find what changes the header on its way.',
  wrong_secret:
    'The secret is not used as it was given out: its own characters, in UTF-8, are the key. If the shop made ' +
    'the link, correct it with: settled links add',
  signed_otherwise:
    "The signer does not sign as the service does: HMAC-SHA256 over the timestamp header's characters, a full stop, and " +
    'the raw body.',
};

type Of<Code> = Extract<Diagnosis, { code: Code }>;

function headerNamesWords({ names, wanted, prefix }: Of<'other_header_names'>): Explained {
  const list = (all: string[]) => new Intl.ListFormat('en-GB').format(all.map((name) => `\`${name}\``));
  const carried = `Deliveries carried ${list(names)}, and settled looked for ${list(wanted)}.`;
  const advice =
    prefix === null
      ? "If one of them is the service's, set SETTLED_HEADER_PREFIX to what comes before -signature and -timestamp in its " +
        'name, and restart settled. If not, find what removes the headers on their way.'
      : `If these are the service's own, set SETTLED_HEADER_PREFIX=${prefix} and restart settled.`;
  return said(carried, advice);
}

function methodWords({ method, origin }: Of<'other_method'>): Explained {
  return method === 'OPTIONS' && origin !== null
    ? said(
        `A page of ${origin} asked whether it may deliver from a browser, and was refused.`,
        `If that page is the service's, set SETTLED_HOOKS_CORS=${origin} and restart settled.`,
      )
    : said(
        `It was sent with ${method}, and deliveries are taken with POST.`,
        'Find out who sends it so: a redirect on its way makes a GET of a POST.',
      );
}
