import { expect, it } from 'vitest';
import { signIn } from '../support/access.ts';
import { useBrowser } from '../support/browser.ts';
import { serveHere } from '../support/http.ts';
import { sharedApp } from '../support/shared.ts';

const settled = sharedApp();
const open = useBrowser();

/** A page of somebody else on this machine: another origin, but for a browser the same site, so that cookies are sent. */
const hostilePage = (html: string): Promise<string> =>
  serveHere((_request, response) => response.setHeader('content-type', 'text/html').end(html));
/** A tab of a person who is signed in. */
async function signedInTab() {
  const tab = await open();
  const { cookie } = await signIn(settled());
  const [name = '', value = ''] = cookie.split('=');
  await tab.context().addCookies([{ name, value, url: settled().apiUrl, httpOnly: true, sameSite: 'Lax' }]);
  return tab;
}

it('a form of another page of the same machine changes nothing, although the browser sends the session', async () => {
  const { apiUrl, api } = settled();
  const form = `<form method="post" action="${apiUrl}/v1/links"><input name="reference" value="forged"><input name="amount" value="100"><button>Win</button></form>`;
  const tab = await signedInTab();
  await tab.goto(await hostilePage(form));
  const [answer] = await Promise.all([tab.waitForResponse(`${apiUrl}/v1/links`), tab.click('button')]);
  expect(await answer.request().headerValue('cookie')).toContain('settled-');
  expect(answer.status()).toBe(403);
  expect((await api('/v1/orders/forged')).status).toBe(404);
});

it('a script of another page of the same machine reads nothing', async () => {
  const tab = await signedInTab();
  await tab.goto(await hostilePage('<p>hello</p>'));
  const read = (path: string) =>
    tab.evaluate(
      (url) => fetch(url, { credentials: 'include' }).then((response) => response.text(), String),
      settled().apiUrl + path,
    );
  expect(await read('/v1/orders')).toContain('Failed to fetch');
  expect(await read('/')).toContain('Failed to fetch');
});

it('no page frames the console', async () => {
  const { apiUrl } = settled();
  const tab = await signedInTab();
  await tab.goto(await hostilePage(`<iframe src="${apiUrl}/"></iframe>`));
  const frame = tab.frames().find((one) => one !== tab.mainFrame());
  expect(frame?.url()).toMatch(/^chrome-error:/);
});

it('nothing is changed by opening an address', async () => {
  const { apiUrl, api } = settled();
  const tab = await signedInTab();
  const before = (await api('/v1/audit?limit=1')).body.audit[0]?.number ?? 0;
  for (const path of ['/v1/links?reference=x&amount=100', '/v1/admin/backup', '/sign-out', '/v1/bulk']) {
    const answer = await tab.goto(apiUrl + path);
    expect([404, 405, 200]).toContain(answer?.status());
  }
  expect((await api('/v1/audit?limit=1')).body.audit[0]?.number ?? 0).toBe(before);
});
