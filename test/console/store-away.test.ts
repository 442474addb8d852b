import { describe, expect, it } from 'vitest';
import { signIn } from '../support/access.ts';
import { startTestApp } from '../support/app.ts';
import { shutDatabase } from '../support/test_database.ts';
import { eventually } from '../support/timing.ts';
import { textOf } from './reading.ts';

describe('the console while its database is away', () => {
  it('answers a browser with a page that says so and names no server, and a program with JSON', async () => {
    const app = await startTestApp({ engine: 'postgres' });
    const { cookie } = await signIn(app);
    const open = (path: string, accept: string) => fetch(`${app.apiUrl}${path}`, { headers: { cookie, accept } });
    const admit = await shutDatabase(String(app.database?.url));
    await eventually(async () => expect((await open('/', 'text/html')).status).toBe(503));
    for (const path of ['/', '/orders', '/system']) {
      const answer = await open(path, 'text/html,*/*;q=0.8');
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect(answer.headers.get('content-type')).toContain('text/html');
      const text = textOf(await answer.text());
      expect(text).toContain('settled cannot use its database at the moment');
      expect(text).not.toContain('postgres');
    }
    const listed = await open('/v1/orders', 'application/json');
    expect([listed.status, await listed.json()]).toEqual([503, expect.objectContaining({ title: 'unavailable' })]);
    await admit();
    await eventually(async () => expect((await open('/orders', 'text/html')).status).toBe(200));
  });
});
