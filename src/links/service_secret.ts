import { Fault } from '../fault.ts';
import type { LinkMade } from '../paylink/service.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Keyring } from '../secrets/keyring.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedOpening } from '../store/contract_links.ts';
import type { Clock } from '../work/clock.ts';

/** The minimum for the secrets that a shop gives, too: shorter ones can be guessed. */
const BYTES_MIN = 16;
const LENGTH_MAX = 512;
/** Sixteen random characters have more different ones than a placeholder for a secret usually has. */
const DIFFERENT_MIN = 5;
/**
 * Placeholders for characters that are not shown, and words for them. Each is long enough that of 10⁹ random secrets in
 * hexadecimal or base64 none matches: a random secret may hold any short word, or four of a digit in a row.
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

/** Delays before retries if the store fails. The lease lasts longer, and the secret exists nowhere else. */
const AGAIN_AFTER_MS = [100, 500, 2_500] as const;

/**
 * Keeps a signing secret that the service named in its answer to the creation of a link, unless it is the one that we
 * gave: the service may sign with either. The service never names it again (spec §2), so settled keeps it before it
 * does anything else.
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
  const flaw = usable === undefined ? secretFlaw(first) : null;
  const named = { linkKey, token, flaw, nowMs: clock.nowMs() };
  for (const againAfterMs of [...AGAIN_AFTER_MS, null]) {
    try {
      // Sealed for each try: the key may be changed meanwhile.
      const secret = usable === undefined ? null : keyring.seal(usable, reference, 'service');
      await store.keepServiceSecret({ ...named, secret });
      break;
    } catch (error) {
      if (againAfterMs === null || (error instanceof Fault && error.kind === 'terminal')) throw error;
      await new Promise<void>((resolve) => clock.after(againAfterMs, resolve));
    }
  }
  // The cached credentials lack this secret.
  if (usable !== undefined) credentials.forget(token);
}

/** Why a text cannot be a signing secret, without quoting it; null if it can be one. */
function secretFlaw(secret: string): string | null {
  if (secret.length > LENGTH_MAX) return `it has more than ${LENGTH_MAX} characters`;
  if (isMasked(secret.replace(/^whsec_/i, ''))) return 'it is masked';
  if (/[^\x21-\x7e]/.test(secret)) return 'it holds white space, or characters that no secret has';
  return secret.length < BYTES_MIN ? `it has fewer than ${BYTES_MIN} bytes` : null;
}

function isMasked(text: string): boolean {
  const counts = new Map<string, number>();
  for (const c of text) counts.set(c, (counts.get(c) ?? 0) + 1);
  const isOneCharacter = Math.max(...counts.values()) * 2 >= text.length;
  return counts.size < DIFFERENT_MIN || isOneCharacter || MASKED.some((pattern) => pattern.test(text));
}
