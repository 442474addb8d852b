import { statement } from '../transaction.ts';
import type { Database } from './database.ts';

// Every changing transaction has a number. None is under way if the oldest running number is the next one to be given.
const NEWEST = statement(`
  SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next,
    pg_snapshot_xmin(pg_current_snapshot()) = pg_snapshot_xmax(pg_current_snapshot()) AS isQuiet`);
const BEATS = statement('SELECT name, alive_at_ms AS aliveAtMs FROM replica');

type Newest = { next: string; isQuiet: boolean };
type Seen = { next: bigint; isQuiet: boolean; beats: ReadonlyMap<string, number> };

/**
 * Detects commits by PostgreSQL's transaction numbers: also those of other replicas and, harmlessly, of other databases
 * on the server. A position in the log would not do, because a commit is there before others see it.
 */
export function watchChanges(db: Pick<Database, 'read'>): { mark(): Promise<string> } {
  let seen: Seen | null = null;
  let changes = 0;

  async function look(): Promise<Seen> {
    const [newest, beats] = await db.read(function* (tx) {
      const asked = tx.one<Newest>(NEWEST);
      const replicas = tx.all<{ name: string; aliveAtMs: number }>(BEATS);
      return [(yield* asked) as Newest, yield* replicas] as const;
    });
    const byName = new Map(beats.map(({ name, aliveAtMs }) => [name, aliveAtMs]));
    return { next: BigInt(newest.next), isQuiet: newest.isQuiet, beats: byName };
  }

  return {
    mark: async () => {
      const found = await look();
      if (seen !== null && !isOnlyAlive(seen, found)) changes++;
      seen = found;
      return String(changes);
    },
  };
}

/** Whether only heartbeats were committed between the two. Each heartbeat is one transaction. */
function isOnlyAlive(before: Seen, after: Seen): boolean {
  if (!before.isQuiet || !after.isQuiet || before.beats.size !== after.beats.size) return false;
  const beats = [...after.beats].filter(([name, aliveAtMs]) => before.beats.get(name) !== aliveAtMs);
  return after.next - before.next === BigInt(beats.length);
}
