import type { ClockSteps } from '../app/clock_steps.ts';
import type { Readiness } from '../http/app.ts';
import type { LinkOpener } from '../links/opener.ts';
import type { Activity } from '../observe/activity.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { HeaderNames } from '../paylink/events.ts';
import type { Service } from '../paylink/service.ts';
import type { Reconciler } from '../reconcile/reconciler.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Keyring } from '../secrets/keyring.ts';
import type { Rotation } from '../secrets/rotation.ts';
import type { StoreAddress } from '../store/address.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import type { Signal } from '../work/signal.ts';
import type { Tokens } from './auth.ts';

/** What the API's handlers are made of. */
export type ApiOptions = {
  store: Store;
  keyring: Keyring;
  credentials: Pick<Credentials, 'find' | 'keep' | 'forget' | 'noteLinkId'>;
  tokens: Tokens;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  activity: Activity;
  readiness: Readiness;
  publicUrl: string;
  /** Of deliveries. */
  headerNames: HeaderNames;
  /** How far a signed timestamp may be from our clock. */
  toleranceSeconds: number;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
  /** What speaks to the service's API; null where none is configured. */
  asking: { service: Service; opener: LinkOpener; reconciler: Reconciler } | null;
  /** All slots of the API budget. */
  apiSlots: number;
  /** Codes, a space between two: the first is that of an order that names none. */
  currency: string;
  storeAddress: StoreAddress;
  /** The store, by a name that is the same in every folder. */
  storeName: string;
  /** What this process is called among those that work on the store; null where it is alone. */
  replica: string | null;
  /** Where the secrets key is kept, in words for a person. */
  secretsKeyPlace: string;
  rotation: Pick<Rotation, 'rotate'>;
  clockSteps: Pick<ClockSteps, 'latest' | 'isTrusted'>;
  /** Called when an event was made pending again. */
  onRequeued: () => void;
  /** Whether the shop has a callback; without one it reads the feed. */
  canTell: boolean;
  /** The callback as a person may see it, without what may be secret; null if there is none. */
  shopAddress: string | null;
  /** Rings when there may be a new notice. */
  notices: Signal;
  /** Called when a notice is due that was not, or was made. */
  onNotices: () => void;
};
