import type { Server } from '../bench/servers.ts';

/** Signs in to the console of a server by its operator's token; returns the cookie that the browser keeps. */
export async function signIn({ url, token }: NonNullable<Server['operator']>): Promise<string> {
  const response = await fetch(`${url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ token }),
  });
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0];
  if (cookie === undefined) throw new Error(`not signed in: ${response.status}`);
  return cookie;
}
