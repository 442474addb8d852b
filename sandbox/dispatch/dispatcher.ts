import type { Chance } from '../chance.ts';
import type { TurnableClock } from '../clock.ts';
import type { Silences } from '../silences.ts';
import type { SandboxStore } from '../store/store.ts';
import type { FaultPlans } from './faults.ts';

export type DispatcherOptions = {
  store: SandboxStore;
  chance: Chance;
  clock: TurnableClock;
  faults: FaultPlans;
  silences: () => Silences;
};

export type Dispatcher = {
  /** There may be a delivery that is due. Cheap. */
  wake(): void;
  /** Resolves when nothing that is due is still waiting or on its way. */
  idle(): Promise<void>;
  /** Ends after the attempts in hand. */
  stop(): Promise<void>;
};

export function openDispatcher(_options: DispatcherOptions): Dispatcher {
  throw new Error('being built');
}
