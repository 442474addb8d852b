import type { Readiness } from '../http/health.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Credentials } from '../store/credentials.ts';
import type { Keyring } from '../store/keyring.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import type { Tokens } from './auth.ts';

/** What the API's handlers are made of. */
export type ApiOptions = {
  store: Store;
  keyring: Keyring;
  credentials: Pick<Credentials, 'keep' | 'forget'>;
  tokens: Tokens;
  clock: Clock;
  metrics: Metrics;
  readiness: Readiness;
  publicUrl: string;
  currency: string;
  storePath: string;
  /** Where the secrets key is kept, in words for a person. */
  secretsKeyPlace: string;
  /** Called when an event was made pending again. */
  onRequeued: () => void;
};
