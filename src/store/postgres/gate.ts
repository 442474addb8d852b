import { stopped } from '../engine.ts';

/** Where the verbs of a store go in, until it is closed. */
export type Gate = {
  /** Carries out a call, or refuses it where the gate is shut. */
  enter<T>(call: () => Promise<T>): Promise<T>;
  /** Refuses later calls; resolves when those before have ended. */
  shut(): Promise<void>;
};

export function openGate(): Gate {
  let inside = 0;
  let isShut = false;
  const empty = Promise.withResolvers<void>();

  function leave(): void {
    inside--;
    if (isShut && inside === 0) empty.resolve();
  }

  return {
    enter: async (call) => {
      if (isShut) throw stopped();
      inside++;
      try {
        return await call();
      } finally {
        leave();
      }
    },
    shut: () => {
      isShut = true;
      if (inside === 0) empty.resolve();
      return empty.promise;
    },
  };
}
