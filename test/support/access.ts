import type { Access, PersonRole } from '../../src/domain/access.ts';
import { OPERATOR_TOKEN, type TestApp } from './app.ts';
import type { Tab } from './browser.ts';

/** Who may use a route, as docs/api.md has it. */
export function accessWords(access: Access | null): string {
  if (access === null) return 'anyone';
  return access.shop ? `${access.least} or shop` : access.least;
}

/** Makes a named token, and returns its secret. */
export async function namedToken(
  { api }: Pick<TestApp, 'api'>,
  role: PersonRole,
  name = `some ${role}`,
): Promise<string> {
  const { status, body } = await api('/v1/tokens', { body: { name, role } });
  if (status !== 201) throw new Error(`no token was made: ${JSON.stringify(body)}`);
  return body.token.secret;
}

/** A browser's session: what it sends with each request, and with one that changes something. */
export type TestSession = { cookie: string; own: Record<string, string> };

/** Signs in with a token, as the page's form does. */
export async function signIn({ apiUrl }: Pick<TestApp, 'apiUrl'>, token = OPERATOR_TOKEN): Promise<TestSession> {
  const response = await fetch(`${apiUrl}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }),
  });
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0];
  if (response.status !== 303 || cookie === undefined)
    throw new Error(`not signed in: ${response.status} ${await response.text()}`);
  return { cookie, own: { cookie, 'sec-fetch-site': 'same-origin' } };
}

/** Signs a tab in, and opens a page of the console in it. */
export async function enter(tab: Tab, app: Pick<TestApp, 'apiUrl'>, path: string, token?: string): Promise<void> {
  const { cookie } = await signIn(app, token);
  const [name = '', value = ''] = cookie.split('=');
  await tab.context().addCookies([{ name, value, url: app.apiUrl, httpOnly: true, sameSite: 'Lax' }]);
  await tab.goto(`${app.apiUrl}${path}`);
}
