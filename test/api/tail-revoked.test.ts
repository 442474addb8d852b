import { expect, it } from 'vitest';
import { namedToken } from '../support/access.ts';
import { sharedApp } from '../support/shared.ts';

const settled = sharedApp();

it('a reader of the tail whose token is revoked reads no further', async () => {
  const { apiUrl, api } = settled();
  const token = await namedToken(settled(), 'viewer', 'tail');
  const response = await fetch(`${apiUrl}/v1/tail`, { headers: { authorization: `Bearer ${token}` } });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  expect((await reader.read()).done).toBe(false);
  await api('/v1/tokens/tail/revoke', { method: 'POST' });
  while (!(await reader.read()).done);
  expect((await fetch(`${apiUrl}/v1/tail`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
});
