import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { Store } from './contract.ts';
import type { Opened } from './instance.ts';

/** What each engine carries out calls with. */
export type CallOptions = {
  clock: Clock;
  /** A call unanswered for so long is refused as `store_busy`. It may still be carried out. */
  callTimeoutMs: number;
  /** A commit was made: how many calls shared it and how long it took. */
  onBatch: (calls: number, seconds: number) => void;
};

/** What opening each engine gives. */
export type OpenedEngine = {
  store: Store;
  opened: Opened;
  /** Refuses every call that waits for an answer. */
  abandon(): void;
};

/** Calls that may wait at once; beyond it they are refused, so that a stuck disk or server cannot fill memory. */
export const WAITING_MAX = 20_000;

export function stopped(): Fault {
  return new Fault('transient', 'store_stopped', 'The store is closed because this process is stopping.');
}
