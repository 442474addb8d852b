import type { LinkMade } from '../paylink/service.ts';
import type { ClaimedOpening } from '../store/asking.ts';
import type { Keyring } from '../store/keyring.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';

/** As for the secrets that a shop gives: shorter ones can be guessed. */
const BYTES_MIN = 16;
const LENGTH_MAX = 512;
/** Sixteen random characters have more different ones; a text that stands in a secret's place often has not. */
const DIFFERENT_MIN = 5;

export type KeepOptions = {
  store: Pick<Store, 'keepServiceSecret'>;
  keyring: Pick<Keyring, 'open' | 'seal'>;
  clock: Pick<Clock, 'nowMs'>;
};

/**
 * Keeps a signing secret that the service named for a link of ours in its answer to the creation, unless it is the one that
 * it was given: it may sign with either. It is never named again (spec §2), so it is kept before anything else is done.
 */
export async function keepServiceSecret(
  { store, keyring, clock }: KeepOptions,
  opening: ClaimedOpening,
  { webhookSecrets }: LinkMade,
): Promise<void> {
  const [first, ...others] = webhookSecrets;
  if (first === undefined) return;
  const { linkKey, token, reference } = opening;
  const usable = [first, ...others].find((secret) => secretFlaw(secret) === null);
  const secret = usable === undefined ? null : keyring.seal(usable, reference, 'service');
  const flaw = usable === undefined ? secretFlaw(first) : null;
  await store.keepServiceSecret({ linkKey, token, secret, flaw, nowMs: clock.nowMs() });
}

/** Why a text cannot be a signing secret, without a character of it; null if it can. */
function secretFlaw(secret: string): string | null {
  if (secret.includes('***') || new Set(secret).size < DIFFERENT_MIN) return 'it is masked';
  if (Buffer.byteLength(secret) < BYTES_MIN) return `it has fewer than ${BYTES_MIN} bytes`;
  if (secret.length > LENGTH_MAX) return `it has more than ${LENGTH_MAX} characters`;
  return /[\p{Cc}\p{Cs}]/u.test(secret) ? 'it holds characters that no secret has' : null;
}
