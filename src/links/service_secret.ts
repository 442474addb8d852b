import { Fault } from '../fault.ts';
import type { LinkMade } from '../paylink/service.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Keyring } from '../secrets/keyring.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedOpening } from '../store/verbs/intents.ts';
import type { Clock } from '../work/clock.ts';

/** Shorter secrets can be guessed. The same minimum holds for secrets from a shop. */
const BYTES_MIN = 16;
const LENGTH_MAX = 512;
/** Sixteen random characters have more distinct ones than most placeholders for a secret. */
const DIFFERENT_MIN = 5;
/**
 * Placeholders for hidden characters, and words for them. Each is long enough that none of 10⁹ random secrets in
 * hexadecimal or base64 matches: a random secret may contain any short word, or a digit four times in a row.
 */
const MASKED = [
  /\*{3}|[.#?]{4}|([xX_-])\1{6}|(.)\2{9}/,
  /^[<[({].*[>\])}]$/,
  /redacted|undefined|placeholder|not[-_.]?shown|withheld|encrypted|unavailable|changeme/i,
  /(?:^|[^A-Za-z0-9])(?:hidden|masked|omitted)(?:[^A-Za-z0-9]|$)/i,
];

export type KeepOptions = {
  store: Pick<Store, 'keepServiceSecret'>;
  keyring: Pick<Keyring, 'open' | 'seal'>;
  credentials: Pick<Credentials, 'forget'>;
  clock: Pick<Clock, 'nowMs' | 'after'>;
};

/** Delays before retries if the store fails. The lease lasts longer, and the secret is stored nowhere else. */
const AGAIN_AFTER_MS = [100, 500, 2_500] as const;

/**
 * Stores a signing secret that the service named when it created a link, unless it equals ours: the service may sign
 * with either. The service never names it again (spec §2), so settled stores it before doing anything else.
 */
export async function keepServiceSecret(
  { store, keyring, credentials, clock }: KeepOptions,
  opening: ClaimedOpening,
  { webhookSecrets }: LinkMade,
): Promise<void> {
  const [first, ...others] = webhookSecrets;
  if (first === undefined) return;
  const { linkKey, token, reference } = opening;
  const usable = [first, ...others].find((secret) => secretFlaw(secret) === null);
  const found = usable === undefined ? secretFlaw(first) : null;
  const flaw = found === null ? null : FLAWS[found];
  const named = { linkKey, token, flaw, nowMs: clock.nowMs() };
  for (const againAfterMs of [...AGAIN_AFTER_MS, null]) {
    try {
      // Sealed again for each try, because the key may be changed meanwhile.
      const secret = usable === undefined ? null : keyring.seal(usable, reference, 'service');
      await store.keepServiceSecret({ ...named, secret });
      break;
    } catch (error) {
      if (againAfterMs === null || (error instanceof Fault && error.kind === 'terminal')) throw error;
      await new Promise<void>((resolve) => clock.after(againAfterMs, resolve));
    }
  }
  // The cached credentials lack the new secret.
  if (usable !== undefined) credentials.forget(token);
}

/** Why a text cannot be a signing secret, without quoting it. */
const FLAWS = {
  long: `it has more than ${LENGTH_MAX} characters`,
  masked: 'it is masked',
  odd: 'it holds white space, or characters that no secret has',
  short: `it has fewer than ${BYTES_MIN} bytes`,
} as const;

/** Null if a text can be a signing secret. */
export function secretFlaw(secret: string): keyof typeof FLAWS | null {
  if (secret.length > LENGTH_MAX) return 'long';
  if (isMasked(secret.replace(/^whsec_/i, ''))) return 'masked';
  if (/[^\x21-\x7e]/.test(secret)) return 'odd';
  return secret.length < BYTES_MIN ? 'short' : null;
}

function isMasked(text: string): boolean {
  const counts = new Map<string, number>();
  for (const c of text) counts.set(c, (counts.get(c) ?? 0) + 1);
  const isOneCharacter = Math.max(...counts.values()) * 2 >= text.length;
  return counts.size < DIFFERENT_MIN || isOneCharacter || MASKED.some((pattern) => pattern.test(text));
}
