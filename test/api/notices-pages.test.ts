import { expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { get, paidOrder } from './client.ts';

it('lists notices by pages that stay in step while notices arrive: every one once, none left out', async () => {
  const app = await startTestApp();
  const references = ['a', 'b', 'c', 'd', 'e'];
  for (const reference of references) await paidOrder(app, reference);
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const { body } = await get(app, `/v1/notices?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`);
    seen.push(...body.notices.map(({ reference }: { reference: string }) => reference));
    cursor = body.nextCursor;
    await paidOrder(app, `later-${seen.length}`);
  } while (cursor !== null);
  expect(seen).toEqual(references.toReversed());
});
