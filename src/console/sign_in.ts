import express, { type Request, type Response, type Router } from 'express';
import { cookieName, safeBack, sessionCookie } from '../access/browser.ts';
import type { NewSession } from '../access/identify.ts';
import { readBody, typedFields } from '../api/body.ts';
import { requireOwnBrowser } from '../api/guard.ts';
import { type Html, html } from '../http/app.ts';
import { releaseVersion } from '../release.ts';
import { page } from './layout.ts';
import { sendConsolePage } from './send.ts';
import { type ConsoleOptions, hrefOf, requestView, type View } from './view.ts';

/** Signing in with a token or with a link that works once, and signing out. */
export function signInRoutes(options: ConsoleOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/sign-in', (request, response) => {
    requireOwnBrowser(request, options.access);
    const { back, link } = request.query;
    const asked = { back: safeBack(back, options.access.prefix), link: typeof link === 'string' ? link : null };
    return sendSignIn(options, request, response, asked);
  });
  router.post('/sign-in', ...readBody, async (request, response) => {
    requireOwnBrowser(request, options.access);
    const typed = typedFields(request);
    const back = safeBack(typed.get('back'), options.access.prefix);
    const [token, link] = [typed.get('token')?.trim() ?? '', typed.get('link')];
    const signed = await signIn(options, request, token, link);
    if (typeof signed === 'string') {
      const { status, fault } = REFUSED[signed];
      if (status === 429) response.setHeader('retry-after', '60');
      return sendSignIn(options, request, response, { back, link: null, fault }, status);
    }
    await endOldSession(options, request);
    await options.onAudited();
    setCookie(options, request, response, signed.id);
    response.redirect(303, back);
  });
  router.post('/sign-out', ...readBody, async (request, response) => {
    requireOwnBrowser(request, options.access);
    await endOldSession(options, request);
    await options.onAudited();
    setCookie(options, request, response, null);
    response.redirect(303, hrefOf({ prefix: options.access.prefix }, '/sign-in'));
  });
  return router;
}

type Refused = Exclude<Awaited<ReturnType<ConsoleOptions['access']['signIn']>>, NewSession>;

const REFUSED: Readonly<Record<Refused | 'link', { status: number; fault: string }>> = {
  unknown: { status: 401, fault: 'settled does not know this token: it may have been revoked, or have expired.' },
  shop: {
    status: 403,
    fault:
      "This is the shop's token. Sign in with a person's token. An administrator creates one with: settled tokens add NAME --role viewer",
  },
  limited: {
    status: 429,
    fault: 'This token or link is wrong, as were many others from this address. Check it, and try again in a minute.',
  },
  link: { status: 401, fault: 'This link has been used, or is older than a minute. Create a new one: settled console' },
};

async function signIn({ access }: ConsoleOptions, request: Request, token: string, link: string | null) {
  if (link === null) return access.signIn(request, token);
  const signed = await access.useLink(request, link);
  return signed === 'unknown' ? 'link' : signed;
}

/** Signing in ends the session that the browser had, so that none can be planted. */
async function endOldSession({ access, store, clock }: ConsoleOptions, request: Request): Promise<void> {
  const caller = await access.identify(request);
  if (caller === null || caller.session === null || caller.author === null) return;
  await store.endSession({ key: caller.session.key, by: caller.author, atMs: clock.nowMs() });
}

function setCookie({ access }: ConsoleOptions, request: Request, response: Response, id: string | null): void {
  const isSecure = access.address?.origin.startsWith('https:') === true;
  const name = cookieName(access.address, request.socket.localPort);
  response.append('set-cookie', sessionCookie(name, id, { isSecure }));
}

type Asked = { back: string; link: string | null; fault?: string };

async function sendSignIn(
  options: ConsoleOptions,
  request: Request,
  response: Response,
  asked: Asked,
  status = 200,
): Promise<void> {
  const view = requestView(options, request, response);
  const { fault } = asked;
  const notice = fault === undefined ? null : { text: fault, isProblem: true };
  const body = html`<div class="sign-in"><h1>Sign in</h1>
<p class="lead">settled opens payment links for a shop's orders, and marks each order paid: once, durably, and for the right money.</p>
${asked.link === null ? tokenForm(view, asked) : linkForm(view, asked)}
<p class="soft">For programs: <a href="${hrefOf(view, '/openapi.json')}">the private API</a> as OpenAPI 3.1. Version ${releaseVersion()}</p></div>`;
  await sendConsolePage(request, response, page(view, { title: 'Sign in', here: null, body, notice }), status);
}

function tokenForm(view: View, { back }: Asked): Html {
  return html`<form method="post" action="${hrefOf(view, '/sign-in')}" class="card">
<input type="hidden" name="back" value="${back}">
<div class="field"><label for="token">Token</label>
<input class="input" id="token" name="token" type="password" autocomplete="current-password" spellcheck="false" maxlength="512" required aria-describedby="token-hint">
<p class="hint" id="token-hint">Paste the token that your administrator gave you (<code>settled tokens add</code>). On the machine of settled, <code>settled console</code> prints a link that signs you in.</p></div>
<button class="button">Sign in</button></form>`;
}

/** A link is used by a button, not by opening it: programs that look at links before people do would use it up. */
function linkForm(view: View, { back, link }: Asked): Html {
  return html`<form method="post" action="${hrefOf(view, '/sign-in')}" class="card">
<input type="hidden" name="back" value="${back}"><input type="hidden" name="link" value="${link}">
<p>The link works once.</p><button class="button">Sign in</button></form>`;
}
