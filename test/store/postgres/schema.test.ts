import { expect, it } from 'vitest';
import { connectTo, newDatabase } from './opening.ts';

/** Foreign keys of one column for which no index finds every row. */
const UNINDEXED = `SELECT conrelid::regclass::text AS "table", conname AS name FROM pg_constraint
  WHERE contype = 'f' AND NOT EXISTS (
    SELECT 1 FROM pg_index WHERE indrelid = conrelid AND indpred IS NULL AND indkey[0] = conkey[1])`;

it('finds every row that names another by an index, so that nothing reads a whole table to take a row away', async () => {
  const client = await connectTo(await newDatabase());
  expect((await client.query(UNINDEXED)).rows).toEqual([]);
  // Not for lack of any.
  const { rows } = await client.query("SELECT 1 FROM pg_constraint WHERE contype = 'f'");
  expect(rows.length).toBeGreaterThan(10);
});
