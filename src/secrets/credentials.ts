import { Fault, LinkFault } from '../fault.ts';
import type { CredentialsKey, SealedCredentials, Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import type { Keyring } from './keyring.ts';

/** What deliveries for one link are verified with. The secret is open: never log or return this. */
export type LinkCredentials = {
  readonly linkKey: number;
  /** Of its order. */
  readonly reference: string;
  readonly token: string;
  readonly secret: string;
  /** The link's id at the service; null or absent if it was not known when these were read. */
  readonly linkId?: string | null;
  /**
   * The secret that the service named beside it: a delivery carries either. Opened when it is asked for first; throws as
   * `Credentials.find` does.
   */
  readonly serviceSecret?: () => string;
  /**
   * The service's answer to the link's creation was not recorded when these were read, here or by another replica. It may
   * name a secret: a delivery that they do not verify is looked up again.
   */
  readonly isProvisional?: true;
  /** They are no link's: settled sends such deliveries to itself, to see whether they arrive. None is recorded. */
  readonly isProbe?: true;
};

/** Links whose opened secrets are kept in memory, about 300 bytes each. */
const CACHED_MAX = 100_000;

/** Finds and opens links' credentials, from a bounded cache where possible. Absence is never cached. */
export type Credentials = {
  /** The cached credentials of a token; undefined means: ask `find`. */
  cachedByToken(token: string): LinkCredentials | undefined;
  cachedByLinkKey(linkKey: number): LinkCredentials | undefined;
  /** As by token, of the link that has an id at the service. */
  cachedByLinkId(linkId: string): LinkCredentials | undefined;
  /** Whether a link had this token, or this id, when the store was asked last. */
  knows(tokenOrId: string): boolean;
  /** Throws the `LinkFault` `secret_undecipherable` where no key that is known opens its secret. */
  find(by: CredentialsKey): Promise<LinkCredentials | null>;
  /** Takes in the credentials of a link that was made just now: its first delivery should not have to look them up. */
  keep(credentials: LinkCredentials): void;
  /** Takes in the id of a link that is bound now. */
  noteLinkId(token: string, linkId: string): void;
  /** Drops a link's cached secret after it was corrected. */
  forget(token: string): void;
};

export type CredentialsOptions = {
  store: Pick<Store, 'findCredentials'>;
  keyring: Keyring;
  clock: Pick<Clock, 'monotonicMs'>;
  /** How long after it was read a secret is used from memory: a store that others change as well may have another one. */
  freshMs: number;
};

/** Credentials, and when the store was asked for them. */
type Kept = { credentials: LinkCredentials; atMs: number };

export function openCredentials({ store, keyring, clock, freshMs }: CredentialsOptions): Credentials {
  const byToken = new Map<string, Kept>();
  const byLinkKey = new Map<number, Kept>();
  const byLinkId = new Map<string, Kept>();
  let corrections = 0;

  function keep(credentials: LinkCredentials, atMs = clock.monotonicMs(), isFoundById = true): void {
    const [oldest] = byToken.size >= CACHED_MAX ? byToken.values() : [];
    if (oldest !== undefined) drop(oldest.credentials);
    put({ credentials, atMs }, isFoundById);
  }

  /** A link whose deliveries bring its token is not looked for by its id. */
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
    const { serviceSealedSecret, serviceKeyId: keyId } = sealed;
    const opened = (open: () => string): string => {
      try {
        return open();
      } catch (error) {
        throw error instanceof Fault ? new LinkFault(sealed, error) : error;
      }
    };
    let serviceSecret: string | undefined;
    const openService = (sealedSecret: Uint8Array, keyId: string) => () => {
      serviceSecret ??= opened(() => keyring.open({ sealedSecret, keyId, reference }, 'service'));
      return serviceSecret;
    };
    return {
      linkKey,
      reference,
      token,
      linkId,
      secret: opened(() => keyring.open(sealed)),
      ...(serviceSealedSecret && keyId ? { serviceSecret: openService(serviceSealedSecret, keyId) } : {}),
      ...(isProvisional ? { isProvisional: true } : {}),
    };
  }

  return {
    cachedByToken: (token) => fresh(byToken.get(token)),
    cachedByLinkKey: (linkKey) => fresh(byLinkKey.get(linkKey)),
    cachedByLinkId: (linkId) => fresh(byLinkId.get(linkId)),
    knows: (tokenOrId) => byToken.has(tokenOrId) || byLinkId.has(tokenOrId),
    find: async (by) => {
      const probe = 'token' in by ? keyring.findProbe(by.token) : undefined;
      if (probe !== undefined) return { linkKey: 0, reference: '', isProbe: true, ...probe };
      const correctionsBefore = corrections;
      const askedAtMs = clock.monotonicMs();
      const sealed = await store.findCredentials(by);
      if (sealed === null) return null;
      const credentials = open(sealed);
      // A secret that was corrected while this lookup ran must not come back through the cache.
      if (corrections === correctionsBefore) keep(credentials, askedAtMs, !('token' in by));
      return credentials;
    },
    keep: (credentials) => keep(credentials),
    noteLinkId: (token, linkId) => {
      const kept = byToken.get(token);
      if (kept === undefined) return;
      const credentials = { ...kept.credentials, linkId };
      put({ ...kept, credentials }, true);
    },
    forget: (token) => {
      corrections++;
      const kept = byToken.get(token);
      if (kept !== undefined) drop(kept.credentials);
    },
  };
}
