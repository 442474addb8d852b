import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express';
import { hasBearer, safeBack } from '../access/browser.ts';
import { typedFields } from '../api/body.ts';
import { callerOf, refuseMethod, requireOwnBrowser } from '../api/guard.ts';
import { ProblemError, problem, titleOf } from '../api/problem.ts';
import type { ApiOptions, FormViews } from '../api/route.ts';
import { Fault } from '../fault.ts';
import { html } from '../http/app.ts';
import { answerPage } from './answer_pages.ts';
import { assetRoutes } from './assets.ts';
import { problemPanel } from './components.ts';
import { actionNotice, page } from './layout.ts';
import { openLive } from './live.ts';
import { PAGES } from './pages.ts';
import { sendConsolePage } from './send.ts';
import { signInRoutes } from './sign_in.ts';
import { type ConsoleOptions, DONE, hrefOf, type Refused, requestView } from './view.ts';

/** The pages for a person, on the private listener, at the path of SETTLED_CONSOLE_URL. `end` ends what they follow. */
export function consoleRoutes(options: ConsoleOptions): { router: Router; end: () => void } {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.use(assetRoutes());
  router.use(signInRoutes(options));
  router.use(pageRoutes(options));
  const live = openLive({
    onChange: options.pageLoads.forget,
    ...options,
    isStillValid: async (request) => (await options.access.identify(request, { isUse: false })) !== null,
    readerOf: (response) => callerOf(response)?.name ?? '',
  });
  router.get('/live', signedIn(options), live.route);
  router.get('/{*path}', refuseUnknown(options));
  router.use(showProblems(options));
  return { router, end: live.end };
}

/** The pages that need a session. */
function pageRoutes(options: ConsoleOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  for (const [path, show] of Object.entries(PAGES)) {
    router.get(path, signedIn(options), async (request, response) => {
      const view = requestView(options, request, response);
      const shown = await show(options, view, request);
      if ('goTo' in shown) return response.redirect(303, shown.goTo);
      const { status, ...parts } = shown;
      const notice = parts.notice ?? actionNotice(view, request.query[DONE]);
      // Its address is the action's, which is not to be asked for again.
      const still = view.refused == null ? {} : ({ isStill: true } as const);
      const made = page(view, { ...parts, notice, ...still });
      await sendConsolePage(request, response, made, view.refused?.status ?? status);
    });
  }
  for (const path of Object.keys(PAGES)) router.all(path, refuseMethod(['GET', 'HEAD']));
  router.use(showProblems(options));
  return router;
}

/** The page of each address that forms are sent to: if it answers a form itself, the browser shows its address. */
const PAGES_OF_FORMS: Readonly<Record<string, string>> = {
  '/v1/orders/:reference/check': '/orders/:reference',
  '/v1/orders/:reference/cancel': '/orders/:reference',
  '/v1/orders/:reference/resolve': '/orders/:reference',
  '/v1/events/:id/replay': '/events/:id',
  '/v1/notices/:id/resend': '/notices/:id',
  '/v1/attention/:id/end': '/attention',
  '/v1/bulk': '/bulk',
  '/v1/bulk/:id/cancel': '/bulk/:id',
  '/v1/admin/reconcile': '/system',
  '/v1/admin/backup': '/system',
  '/v1/admin/rotate-key': '/system',
  '/v1/tokens': '/system/people',
  '/v1/tokens/:id/revoke': '/system/people',
  '/v1/sessions/:id/end': '/system/people',
};

/** Leads a browser that opens the address of a form again to the form's page. It stands before the API. */
export function leadToPages(prefix: string): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  for (const [address, page] of Object.entries(PAGES_OF_FORMS)) {
    router.get(address, (request, response, next) => {
      if (!isForPerson(request)) return next();
      const given = Object.entries(request.params).map(([name, value]) => [`:${name}`, String(value)] as const);
      const path = given.reduce((made, [name, value]) => made.replace(name, () => encodeURIComponent(value)), page);
      response.redirect(303, prefix + path);
    });
  }
  return router;
}

/** Whether a browser asks, to show the answer to a person; programs get JSON. */
function isForPerson(request: Request): boolean {
  return !hasBearer(request.headers) && request.accepts(['json', 'html']) === 'html';
}

/** Answers a browser that asks for a page that is not there. A person who is signed in keeps search and menu. */
function refuseUnknown({ access }: Pick<ApiOptions, 'access'>): RequestHandler {
  return async (request, response, next) => {
    if (request.path.startsWith('/v1/') || !isForPerson(request)) return next();
    requireOwnBrowser(request, access);
    response.locals.caller = (await access.identify(request)) ?? undefined;
    throw problem(404, 'not_found', 'There is no page at this address.');
  };
}

/** Takes the path of the console's address off a request, whether a proxy before settled has left it there or not. */
export function withoutPrefix(prefix: string): RequestHandler {
  return (request, response, next) => {
    const { url } = request;
    if (prefix === '' || !url.startsWith(prefix)) return next();
    const rest = url.slice(prefix.length);
    if (rest === '') return response.redirect(308, `${prefix}/`);
    if (rest.startsWith('/')) request.url = rest;
    else if (rest.startsWith('?')) request.url = `/${rest}`;
    next();
  };
}

/**
 * Passes on a request of a person who signed in; a person who has not is sent to sign in, and comes back here. Every page
 * shows what a viewer may see. Its forms are for those who may do what they do.
 */
function signedIn({ access }: Pick<ApiOptions, 'access'>): RequestHandler {
  return async (request, response, next) => {
    requireOwnBrowser(request, access);
    const caller = await access.identify(request);
    const { prefix } = access;
    const stranger = caller === null ? access.proxyStranger(request) : null;
    if (stranger !== null) throw problem(403, 'forbidden', withoutRole(stranger));
    if (caller === null)
      return response.redirect(303, `${prefix}/sign-in?back=${encodeURIComponent(prefix + request.url)}`);
    if (caller.role === 'shop') {
      throw problem(403, 'forbidden', `This page needs the role viewer; ${caller.name} has the role ${caller.role}.`);
    }
    response.locals.caller = caller;
    next();
  };
}

function withoutRole({ name, roles }: NonNullable<ReturnType<ConsoleOptions['access']['proxyStranger']>>): string {
  const groups = Object.entries(roles).map(([role, group]) => `${group} (${role})`);
  return (
    `You are signed in as ${name}, and none of your groups may use this console. These groups may: ${groups.join(', ')}. ` +
    'Ask those who manage your groups to add you to one.'
  );
}

/** Answers problems of the console's own addresses with a page. */
function showProblems(options: ConsoleOptions): ErrorRequestHandler {
  return async (error, request, response, next) => {
    if (error instanceof ProblemError) return sendProblemPage(options, request, response, error.problem);
    if (!(error instanceof Fault) || error.kind !== 'transient' || !isForPerson(request)) return next(error);
    response.set('retry-after', String(RETRY_SECONDS));
    const detail = response.locals.caller === undefined ? STORE_AWAY : error.message;
    await sendProblemPage(options, request, response, { status: 503, code: 'unavailable', detail });
  };
}

const RETRY_SECONDS = 5;
/** To a browser of which settled cannot find out who signed in: the fault itself may name servers. */
const STORE_AWAY =
  'settled cannot use its database at the moment, so it cannot find out who you are, and shows nothing. `settled doctor` and the ' +
  'log say why. Load this page again when that is repaired. Deliveries that come meanwhile are sent again by the service.';

async function sendProblemPage(
  options: ConsoleOptions,
  request: Request,
  response: Response,
  { status, code, detail, errors = [] }: ProblemError['problem'],
): Promise<void> {
  const view = requestView(options, request, response);
  const isMissing = code === 'not_found';
  const title = isMissing ? detail : titleOf(status);
  const missing =
    view.session === null
      ? html`<p class="lead"><a href="${hrefOf(view, '/sign-in')}">Sign in</a> to see the console.</p>`
      : html`<p class="lead">The search above finds an order by its reference, an id, an amount, a name or an e-mail address.</p>`;
  const body = html`<h1>${title}</h1>${
    isMissing ? missing : problemPanel({ title: code.replaceAll('_', ' '), detail, errors })
  }`;
  await sendConsolePage(request, response, page(view, { title, here: null, body, isStill: true }), status);
}

/**
 * How the console answers the forms of its pages: by going back to the page, which says what was done, or by the page as it
 * is now, with why nothing was done and with what was typed. A person whose session ended signs in and comes back.
 */
export function formViews(options: () => ConsoleOptions): FormViews {
  const prefix = () => options().access.prefix;
  const backOf = (request: Request) => new URL(safeBack(typedFields(request).get('back'), prefix()), 'http://settled');
  let pages: Router | undefined;
  return {
    answered: async (request, response, document) => {
      const operation = String(response.locals.operation);
      const view = requestView(options(), request, response);
      const shown = answerPage(view, { operation, document, typed: new Map(typedFields(request)) });
      if (shown !== null && 'goTo' in shown) return response.redirect(303, shown.goTo);
      if (shown !== null) return sendConsolePage(request, response, page(view, shown), response.statusCode);
      const to = backOf(request);
      to.searchParams.set(DONE, operation);
      response.redirect(303, to.pathname + to.search);
    },
    refused: async (request, response, { status, code, detail }) => {
      const { pathname, search } = backOf(request);
      if (status === 401) {
        return response.redirect(303, `${prefix()}/sign-in?back=${encodeURIComponent(pathname + search)}`);
      }
      const typed = new Map(typedFields(request));
      const refused: Refused = { status, code, detail, action: request.url, typed };
      response.locals.refused = refused;
      request.method = 'GET';
      request.url = pathname.slice(prefix().length) + search;
      pages ??= pageRoutes(options());
      pages(request, response, () => sendProblemPage(options(), request, response, { status, code, detail }));
    },
  };
}
