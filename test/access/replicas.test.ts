import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { startTestApp, type TestApp } from '../support/app.ts';

/** What a browser gets that has a session, whichever replica it asks. */
async function statusAt({ apiUrl }: TestApp, cookie: string): Promise<number> {
  const { port } = new URL(apiUrl);
  const headers = { cookie: cookie.replace(/^settled-\d+/, `settled-${port}`) };
  return (await fetch(`${apiUrl}/v1/stats`, { headers })).status;
}

it('a session and a token are valid at every replica, and end at all of them at once', async () => {
  const environment = { SETTLED_SECRETS_KEY: randomBytes(32).toString('base64') };
  const one = await startTestApp({ engine: 'postgres', environment });
  const other = await startTestApp({ engine: 'postgres', environment, storePath: one.storePath });
  const token = await namedToken(one, 'operator', 'ana');
  expect((await other.api('/v1/stats', { token })).status).toBe(200);
  const { cookie } = await signIn(other, token);
  expect([await statusAt(one, cookie), await statusAt(other, cookie)]).toEqual([200, 200]);
  const [{ id }] = (await one.api('/v1/sessions')).body.sessions;
  await one.api(`/v1/sessions/${id}/end`, { method: 'POST' });
  expect([await statusAt(one, cookie), await statusAt(other, cookie)]).toEqual([401, 401]);
  await one.api('/v1/tokens/ana/revoke', { method: 'POST' });
  expect((await other.api('/v1/stats', { token })).status).toBe(401);
  // Both wrote to one chain.
  expect((await other.api('/v1/audit/verification')).body).toMatchObject({ isWhole: true, rows: 4 });
});
