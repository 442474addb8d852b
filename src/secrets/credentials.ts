import { Fault, LinkFault } from '../fault.ts';
import type { Store } from '../store/contract.ts';
import type { CredentialsKey, SealedCredentials } from '../store/verbs/secrets.ts';
import type { Clock } from '../work/clock.ts';
import { type Keyring, type StoredSecret, secretsOf } from './keyring.ts';

/** The secrets that verify a link's deliveries, unsealed: never log or return them. */
export type LinkCredentials = {
  readonly linkKey: number;
  /** The order's reference. */
  readonly reference: string;
  readonly token: string;
  readonly secret: string;
  /** The link's id at the service; null or absent if unknown. */
  readonly linkId?: string | null;
  /** The secret that the service named; it may sign with either. Opened on first use; may throw as `find` does. */
  readonly serviceSecret?: () => string;
  /**
   * Whether the service's answer to the link's creation is still to be recorded, and may name a secret. A delivery that
   * these secrets do not verify is then looked up again.
   */
  readonly isProvisional?: true;
  /** Whether these are a probe's: settled sends itself such deliveries to check that they arrive, and records none. */
  readonly isProbe?: true;
};

/** The most links whose unsealed secrets are in memory, about 300 bytes each. */
const CACHED_MAX = 100_000;

export type Credentials = ReturnType<typeof openCredentials>;

export type CredentialsOptions = {
  store: Pick<Store, 'findCredentials'>;
  keyring: Keyring;
  clock: Pick<Clock, 'monotonicMs'>;
  /** How long a cached secret is used: in a shared store another process may correct it. */
  freshMs: number;
};

/** Credentials, and when the store was asked. */
type Kept = { credentials: LinkCredentials; atMs: number };

/** Finds and unseals links' credentials, from a bounded cache if possible. Unknown links are never cached. */
export function openCredentials({ store, keyring, clock, freshMs }: CredentialsOptions) {
  const byToken = new Map<string, Kept>();
  const byLinkKey = new Map<number, Kept>();
  const byLinkId = new Map<string, Kept>();
  let corrections = 0;

  // Goes on where it was: a new one would pass every entry that was dropped before.
  const oldestFirst = byToken.values();

  function keep(credentials: LinkCredentials, atMs = clock.monotonicMs(), isFoundById = true): void {
    const oldest = byToken.size >= CACHED_MAX ? oldestFirst.next().value : undefined;
    if (oldest !== undefined) drop(oldest.credentials);
    put({ credentials, atMs }, isFoundById);
  }

  /** A link whose deliveries carry its token is not looked up by its id. */
  function put(kept: Kept, isFoundById: boolean): void {
    const { token, linkKey, linkId } = kept.credentials;
    const before = byToken.get(token);
    if (before !== undefined) drop(before.credentials);
    byToken.set(token, kept);
    byLinkKey.set(linkKey, kept);
    if (isFoundById && linkId != null) byLinkId.set(linkId, kept);
  }

  function fresh(kept: Kept | undefined): LinkCredentials | undefined {
    if (kept === undefined) return undefined;
    return freshMs === Number.POSITIVE_INFINITY || clock.monotonicMs() - kept.atMs < freshMs
      ? kept.credentials
      : undefined;
  }

  function drop({ token, linkKey, linkId }: LinkCredentials): void {
    byToken.delete(token);
    byLinkKey.delete(linkKey);
    if (linkId != null) byLinkId.delete(linkId);
  }

  function open(sealed: SealedCredentials): LinkCredentials {
    const { linkKey, reference, token, linkId = null, isProvisional } = sealed;
    const [ours, named] = secretsOf(sealed);
    let serviceSecret: string | undefined;
    const openOnce = (one: StoredSecret) => () => {
      serviceSecret ??= openOne(one);
      return serviceSecret;
    };
    return {
      linkKey,
      reference,
      token,
      linkId,
      secret: openOne(ours),
      ...(named === undefined ? {} : { serviceSecret: openOnce(named) }),
      ...(isProvisional ? { isProvisional: true } : {}),
    };
  }

  function openOne(one: StoredSecret): string {
    try {
      return keyring.open(one, one.whose);
    } catch (error) {
      throw error instanceof Fault ? new LinkFault(one, error) : error;
    }
  }

  return {
    /** The cached credentials of a token. If undefined, call `find`. */
    cachedByToken: (token: string) => fresh(byToken.get(token)),
    cachedByLinkKey: (linkKey: number) => fresh(byLinkKey.get(linkKey)),
    cachedByLinkId: (linkId: string) => fresh(byLinkId.get(linkId)),
    /** Whether a cached link has this token or id, whatever the age of the entry. */
    knows: (tokenOrId: string) => byToken.has(tokenOrId) || byLinkId.has(tokenOrId),
    /** Throws the `LinkFault` `secret_undecipherable` if no known key opens the link's secret. */
    find: async (by: CredentialsKey): Promise<LinkCredentials | null> => {
      const probe = 'token' in by ? keyring.findProbe(by.token) : undefined;
      if (probe !== undefined) return { linkKey: 0, reference: '', isProbe: true, ...probe };
      const correctionsBefore = corrections;
      const askedAtMs = clock.monotonicMs();
      const sealed = await store.findCredentials(by);
      if (sealed === null) return null;
      const credentials = open(sealed);
      // A secret corrected during this look-up must not return through the cache.
      if (corrections === correctionsBefore) keep(credentials, askedAtMs, !('token' in by));
      return credentials;
    },
    /** Caches the credentials of a new link, to save its first delivery a look-up. */
    keep: (credentials: LinkCredentials): void => keep(credentials),
    noteLinkId: (token: string, linkId: string): void => {
      const kept = byToken.get(token);
      if (kept === undefined) return;
      const credentials = { ...kept.credentials, linkId };
      put({ ...kept, credentials }, true);
    },
    /** Drops a link's cached secret after it was corrected. */
    forget: (token: string): void => {
      corrections++;
      const kept = byToken.get(token);
      if (kept !== undefined) drop(kept.credentials);
    },
  };
}
