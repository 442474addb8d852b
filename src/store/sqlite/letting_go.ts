import type { Clock } from '../../work/clock.ts';
import { openForReading } from './file.ts';
import { tryLockStore } from './open.ts';

/** How often a process that released the database checks whether the mover has released it too. */
const LOOK_EVERY_MS = 50;
/** A mover that does not take the database within this time is gone. */
const TAKEN_WITHIN_MS = 5_000;

export type GivenBackOptions = {
  path: string;
  clock: Clock;
  /** Ends the wait; the result is then null. */
  signal: AbortSignal;
  /** Called once a mover has the database. */
  onTaken: () => void;
};

/**
 * Waits for the end of a move for which this process has closed the database: until no process holds its lock. Killing
 * the mover releases the lock. Returns the database that the store was moved to; null if the move was not completed.
 */
export async function whenGivenBack({ path, clock, signal, onTaken }: GivenBackOptions): Promise<string | null> {
  const mustBeTakenAtMs = clock.monotonicMs() + TAKEN_WITHIN_MS;
  let wasTaken = false;
  while (!signal.aborted) {
    await new Promise<void>((resume) => clock.after(LOOK_EVERY_MS, resume));
    const lock = tryLockStore(path);
    lock?.close();
    if (lock !== null) {
      const to = movedTo(path);
      // A fast mover has come and gone.
      if (to !== null || wasTaken || clock.monotonicMs() > mustBeTakenAtMs) return to;
    } else if (!wasTaken) {
      wasTaken = true;
      onTaken();
    }
  }
  return null;
}

function movedTo(path: string): string | null {
  const db = openForReading(path);
  try {
    return (db.prepare('SELECT moved_to AS movedTo FROM instance').get() as { movedTo: string | null }).movedTo;
  } finally {
    db.close();
  }
}
