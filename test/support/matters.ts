import type { ListedMatter, Queries } from '../../src/store/queries.ts';

/** The open matters of attention, newest first. */
export async function openAttention(
  store: Pick<Queries, 'listMatters'>,
): Promise<(ListedMatter & { reference: string | null })[]> {
  const { rows } = await store.listMatters({ limit: 1_000, after: null, kind: null, state: null });
  return rows
    .filter(({ kind }) => kind !== 'hold')
    .map((row) => ({ ...row, reference: row.order?.reference ?? null }))
    .toSorted((a, b) => b.key - a.key);
}
