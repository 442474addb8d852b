import { statement } from '../transaction.ts';
import type { Database } from './database.ts';

// Every transaction that changes something has a number. None is under way if the oldest that is stands for the next one.
const NEWEST = statement(`
  SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next,
    pg_snapshot_xmin(pg_current_snapshot()) = pg_snapshot_xmax(pg_current_snapshot()) AS isQuiet`);
const BEATS = statement('SELECT name, alive_at_ms AS aliveAtMs FROM replica');

type Newest = { next: string; isQuiet: boolean };
type Seen = { next: bigint; isQuiet: boolean; beats: ReadonlyMap<string, number> };

/**
 * Finds out whether anything was committed, by the numbers that PostgreSQL gives to transactions: also what other replicas
 * committed, and, harmlessly, what other databases of the server did. A place in the log would not do: a commit stands there
 * before others see it.
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

/** Whether nothing was committed between the two but signs of life, of which each is one transaction. */
function isOnlyAlive(before: Seen, after: Seen): boolean {
  if (!before.isQuiet || !after.isQuiet || before.beats.size !== after.beats.size) return false;
  const beats = [...after.beats].filter(([name, aliveAtMs]) => before.beats.get(name) !== aliveAtMs);
  return after.next - before.next === BigInt(beats.length);
}
