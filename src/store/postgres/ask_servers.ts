import { Fault, transientFault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { ServerAddress } from '../address.ts';
import { ask, type Inspected } from './connection.ts';
import { connectionFault, storeFault } from './faults.ts';
import type { Durability } from './transaction.ts';

/** Once a primary is found, the other servers have this long to claim that they are one too. */
const OTHERS_WITHIN_MS = 250;
/** How long to wait for silent servers. */
const SILENT_MS = 3_000;
/** The interval between two questions to one server. */
export const ASK_AGAIN_MS = 100;

/** A server with its answer, or the fault that it gave none. */
export type Found = { server: ServerAddress; said: Inspected | Fault };

type AskOptions = {
  clock: Pick<Clock, 'after'>;
  durability: Durability;
  /** Waits for slow servers too: for the first search, or after one that found two primaries. */
  waitsForAll: boolean;
  /** Called with each answer, even if it comes too late. */
  onSaid: (said: Inspected) => void;
};

/**
 * Returns what each server said, in their order. Asks again until a primary is found and the others had time to answer,
 * or until all have answered: a standby may be promoted while another server is silent, which is unreachable.
 */
export async function askServers(servers: readonly ServerAddress[], options: AskOptions): Promise<Found[]> {
  const { clock, durability, waitsForAll, onSaid } = options;
  const enough = Promise.withResolvers<void>();
  const found = servers.map((server): Found => ({ server, said: silent(server) }));
  const answered = new Set<Found>();
  let isOver = false;

  async function askAgain(one: Found): Promise<void> {
    while (!isOver) {
      one.said = await ask(one.server, durability).catch((error) => asFault(error, one.server));
      answered.add(one);
      if (!(one.said instanceof Fault)) {
        onSaid(one.said);
        if (!one.said.isStandby && !waitsForAll) clock.after(OTHERS_WITHIN_MS, enough.resolve);
      }
      if (answered.size === found.length) enough.resolve();
      await new Promise<void>((resume) => clock.after(ASK_AGAIN_MS, resume));
    }
  }

  for (const one of found) void askAgain(one);
  const cancel = clock.after(SILENT_MS, enough.resolve);
  await enough.promise;
  isOver = true;
  cancel();
  return found.map((one) => ({ ...one }));
}

function silent({ name }: ServerAddress): Fault {
  return transientFault(
    'store_unreachable',
    `${name} does not answer. Check that PostgreSQL runs there and that nothing stands between.`,
  );
}

function asFault(error: unknown, server: ServerAddress): Fault {
  const fault = storeFault(connectionFault(error, server), server.name);
  if (fault instanceof Fault) return fault;
  return transientFault('store_unreachable', `${server.name}: ${String(fault)}`, { cause: fault });
}
