import { expect, it, onTestFinished } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { expectToFit, LOOKS, useBrowser } from '../support/browser.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually, itAtLength } from '../support/timing.ts';

const settled = sharedApp();
const open = useBrowser();

it('the stream of changes needs a session, tells of changes, and ends with the session', async () => {
  const { apiUrl, api } = settled();
  expect((await fetch(`${apiUrl}/live`, { redirect: 'manual' })).status).toBe(303);
  const { own } = await signIn(settled(), await namedToken(settled(), 'viewer', 'live'));
  const response = await fetch(`${apiUrl}/live`, { headers: own });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  let text = '';
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += decoder.decode(chunk);
  })();
  await eventually(() => expect(text).toContain('event: ready'));
  await settled().reserve('live-1');
  await eventually(() => expect(text).toContain('event: changed'));
  await api('/v1/tokens/live/revoke', { method: 'POST' });
  await reading;
  expect(text).toContain('event: ended');
});

it('one person follows 20 pages at most, in all browsers together, until one is closed; others do not count', async () => {
  const token = await namedToken(settled(), 'viewer', 'ana');
  const [here, there, other] = await Promise.all([
    signIn(settled(), token),
    signIn(settled(), token),
    signIn(settled(), await namedToken(settled(), 'viewer', 'bruno')),
  ]);
  const follow = async ({ cookie }: typeof here) => {
    const { status, body } = await fetch(`${settled().apiUrl}/live`, { headers: { cookie } });
    // Held by a reader: a body that nobody reads is cancelled when its response is collected as garbage.
    const reader = body?.getReader();
    const leave = () => reader?.cancel();
    if (status === 200) onTestFinished(leave);
    else await leave();
    return { status, leave };
  };
  const statuses = async (...sessions: (typeof here)[]) => {
    const found: number[] = [];
    for (const session of sessions) found.push((await follow(session)).status);
    return found;
  };
  const first = await follow(here);
  expect(await statuses(...Array(9).fill(here), ...Array(9).fill(there))).toEqual(Array(18).fill(200));
  // One below, reached, reached in each browser; the other person has none so far.
  expect(await statuses(there, there, here, other)).toEqual([200, 503, 503, 200]);
  await first.leave();
  await eventually(async () => expect((await follow(there)).status).toBe(200));
  expect(await statuses(here, there, other)).toEqual([503, 503, 200]);
});

itAtLength.each(LOOKS)('the way in fits %i px (%s), and has no fault that axe finds', async (...look) => {
  const tab = await open({ width: look[0] });
  await expectToFit(tab, [`${settled().apiUrl}/`], look);
  await tab.getByRole('heading', { name: 'Sign in' }).waitFor();
});
