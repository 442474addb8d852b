import type { RequestLog } from './api/request_log.ts';
import type { TurnableClock } from './clock.ts';
import type { Dispatcher } from './dispatch/dispatcher.ts';
import type { FaultPlans } from './fault_plans.ts';
import type { SandboxOptions, Switches } from './options.ts';
import type { Service } from './service.ts';
import type { SandboxStore } from './store/store.ts';

/** What every route works with. Built once, by `startSandbox`. */
export type Context = {
  readonly options: SandboxOptions;
  /** Where this sandbox is reached: `http://127.0.0.1:8790`. */
  readonly url: string;
  readonly apiKey: string;
  readonly store: SandboxStore;
  readonly clock: TurnableClock;
  readonly service: Service;
  readonly dispatcher: Dispatcher;
  readonly faults: FaultPlans;
  readonly requests: RequestLog;
  /** The switches as they are set now. */
  switches(): Switches;
  setSwitches(switches: Switches): void;
  /** Turns the clock forward. Resolves once everything that fell due is done. */
  advance(byMs: number): Promise<void>;
};
