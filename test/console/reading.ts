import { signIn, type TestSession } from '../support/access.ts';
import { OPERATOR_TOKEN, type TestApp } from '../support/app.ts';
import { wordsOf } from '../support/plain_browser.ts';

/** Of each app, by token. */
const sessions = new WeakMap<object, Map<string, Promise<TestSession>>>();

type Asking = { token?: string | undefined; language?: string; fields?: Record<string, string> };

/** A page as this person gets it, or the answer to a form with these fields. Redirects are not followed. */
export async function see(
  app: Pick<TestApp, 'apiUrl'>,
  path: string,
  { token = OPERATOR_TOKEN, language = 'en', fields }: Asking = {},
) {
  const known = sessions.get(app) ?? new Map<string, Promise<TestSession>>();
  sessions.set(app, known);
  const session = known.get(token) ?? signIn(app, token);
  known.set(token, session);
  const headers = { ...(await session).own, 'accept-language': language };
  const form = fields === undefined ? {} : { method: 'POST', body: new URLSearchParams(fields) };
  const response = await fetch(app.apiUrl + path, { ...form, headers, redirect: 'manual' });
  const markup = await response.text();
  return { status: response.status, location: response.headers.get('location'), markup, text: textOf(markup) };
}

/** The words of a page, without its tags. */
export function textOf(markup: string): string {
  return wordsOf(markup.slice(markup.indexOf('<main')));
}

/** The tags of a page with the names of their attributes: what a text from outside must not change. */
export function skeleton(markup: string): string[] {
  return (markup.match(/<[^>]*>/g) ?? []).map((tag) => tag.replace(/="[^"]*"/g, ''));
}
