import type { ClockSteps } from './clock_steps.ts';
import type { Config } from './config.ts';
import type { Connections } from './http/connections.ts';
import type { Life } from './life.ts';
import type { LinkOpener } from './links/opener.ts';
import type { Activity } from './observe/activity.ts';
import type { Log } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { RefusalCounts } from './observe/refusals.ts';
import type { OpenedService } from './paylink/client.ts';
import type { BodyReader } from './receive/body.ts';
import type { Reconciler } from './reconcile/reconciler.ts';
import type { Retention } from './retention.ts';
import type { Rotation } from './rotation.ts';
import type { Settler } from './settle/settler.ts';
import type { Credentials } from './store/credentials.ts';
import type { Keyring } from './store/keyring.ts';
import type { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';
import type { Bell } from './work/bell.ts';
import type { Clock } from './work/clock.ts';
import type { BackgroundWorker } from './work/loop.ts';

export type AppOptions = {
  config: Config;
  clock: Clock;
  random: () => number;
  newId: () => string;
  log: Log;
  /** In place of the store that the configuration names. */
  open?: typeof openStore;
  /** In place of the number of files that the system lets this process open. */
  openFiles?: number;
};

/** What settled is made of, once it is put together. */
export type Parts = AppOptions & {
  /** Whether other processes work on the store as well. */
  isShared: boolean;
  /** What this process is called among those; null where it is alone. */
  replica: string | null;
  restoredFromMs: number | null;
  life: Life;
  keyring: Keyring;
  metrics: Metrics;
  activity: Activity;
  /** What is logged of deliveries that were refused or not recorded. */
  refusals: RefusalCounts;
  store: Store;
  credentials: Credentials;
  settler: Settler;
  /** Of the public listener. */
  connections: Connections;
  bodies: BodyReader;
  /** What speaks to the service; null where no API is configured. */
  asking: Asking | null;
  /** What tells the shop; null where it has no callback. */
  notifier: BackgroundWorker | null;
  retention: Retention;
  rotation: Rotation;
  clockSteps: ClockSteps;
  /** Rings when there may be a new notice. */
  notices: Bell;
  onNotices: () => void;
};

export type Asking = { service: OpenedService; opener: LinkOpener; reconciler: Reconciler };
