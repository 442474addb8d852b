import { titleOf } from '../api/problem.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { assetHref } from './assets.ts';
import { clockTime } from './values.ts';
import { hrefOf, type View } from './view.ts';

/** The places of the console, in the order of its menu. */
export const PLACES = [
  ['Overview', '/'],
  ['Orders', '/orders'],
  ['Deliveries', '/deliveries'],
  ['Shop', '/shop'],
  ['Service', '/service'],
  ['Audit', '/audit'],
  ['System', '/system'],
  ['Help', '/help'],
] as const;

type MenuPlace = (typeof PLACES)[number][1];

export type PageParts = {
  /** Without the product's name. */
  title: string;
  /** The place of the menu that the page belongs to; null if it belongs to none. */
  here: MenuPlace | null;
  /** Markup of `main`. It begins with an `h1`. */
  body: HtmlValue;
  /** The result of the last action, shown above the body. */
  notice?: { text: HtmlValue; isProblem?: boolean } | null;
  /** The text in the search box. */
  search?: string;
  /** Set if the script must not reload the page, because it is expensive or shows something only once. */
  isStill?: true;
};

/** A page, with the API's status if it is not 200; or the address to redirect to. */
export type Shown = (PageParts & { status?: number }) | { goTo: string };

/** A whole page of the console. Its `main` is what the script refreshes; without a script every link and form works. */
export function page(view: View, parts: PageParts): Html {
  const { title, here, body, notice = null, search = '', isStill } = parts;
  const { prefix, session } = view;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · settled</title>
<link rel="icon" type="image/svg+xml" href="${assetHref(view, 'icon.svg')}">
<link rel="stylesheet" href="${assetHref(view, 'console.css')}">
${session === null ? null : html`<script type="module" src="${assetHref(view, 'console.js')}"></script>`}
</head>
<body data-prefix="${prefix}"${isStill === true ? html` data-still` : null}>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<p class="name"><a href="${hrefOf(view, '/')}">settled</a>${environmentBadge(view)}</p>
${
  session === null
    ? null
    : html`${searchBox(view, search)}
${status(view)}
${person(view, session)}
${menu(view, here)}`
}
</header>
<main id="main" tabindex="-1">
${notice === null ? null : html`<p class="${notice.isProblem === true ? 'problem' : 'notice done'}" role="status">${notice.text}</p>`}
${body}
</main>
${session === null ? null : keyboardHelp()}
</body>
</html>
`;
}

function environmentBadge({ environment }: View): Html | null {
  return environment === null ? null : html` <span class="badge wait environment">${environment}</span>`;
}

function searchBox(view: View, search: string): Html {
  return html`<form class="find" role="search" method="get" action="${hrefOf(view, '/orders')}" aria-label="Find">
<label class="unseen" for="find">Find an order by its reference, title, customer, an id or an amount</label>
<input class="input" id="find" name="q" type="search" value="${search}" placeholder="Reference, title, customer, id or amount" autocomplete="off" spellcheck="false">
<button class="button quiet">Find</button></form>`;
}

/** The time of the page's data. The script shows next to it whether the page is live. */
function status(view: View): Html {
  return html`<div class="status"><p title="Time zone: ${view.zone}">As of <span id="as-of">${clockTime(view, view.nowMs)}</span></p>
<p role="status" id="live-state" hidden></p>
<button type="button" class="button quiet small" id="live-pause" hidden>Pause</button></div>`;
}

function person(view: View, { name, role }: NonNullable<View['session']>): Html {
  return html`<div class="person"><p><bdi>${name}</bdi> <span class="soft">${role}</span></p>
<form method="post" action="${hrefOf(view, '/sign-out')}"><button class="button quiet small">Sign out</button></form></div>`;
}

function menu(view: View, here: MenuPlace | null): Html {
  return html`<nav class="menu" aria-label="Console"><ul>${PLACES.map(
    ([name, path]) =>
      html`<li><a href="${hrefOf(view, path)}"${path === here ? html` aria-current="page"` : null}>${name}</a></li>`,
  )}</ul></nav>`;
}

const KEYS = [
  ['/', 'go to the search box'],
  ['j', 'go to the next row'],
  ['k', 'go to the row before'],
  ['Enter', 'open the row'],
  ['?', 'show these keys'],
  ['Esc', 'close them'],
] as const;

/** The script opens it. */
function keyboardHelp(): Html {
  return html`<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2>
<dl class="facts">${KEYS.map(([key, does]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`)}</dl>
<form method="dialog"><button class="button quiet">Close</button></form></dialog>`;
}

/** What each operation did, by its id. An id that a page does not know says nothing. */
const WAS_DONE: Readonly<Record<string, string>> = {
  resolveOrder: 'The decision was made.',
  checkOrder: 'settled asked the service about the order, and settled what it said.',
  cancelOrder: 'The order was cancelled.',
  adoptLink: 'The order has its link.',
  endAttention: 'The matter has ended.',
  replayEvent: 'settled settles the event again now.',
  resendNotice: 'settled sends the notice again now.',
  addToken: 'The token was created.',
  revokeToken: 'The token was revoked.',
  endSession: 'The session has ended.',
  reconcile: 'settled asks the service now.',
  cancelBulk: 'The work was cancelled.',
};

/** Says what the last action did, or why it did nothing; null if there was none. `done`: the id of an operation. */
export function actionNotice(
  { refused = null }: Pick<View, 'refused'>,
  done: unknown,
): NonNullable<PageParts['notice']> | null {
  if (refused !== null) {
    const { status, detail, typed } = refused;
    const reason = typed.get('reason') ?? '';
    const kept = reason === '' ? null : html`<br>You had typed: <q>${reason}</q>`;
    return { text: html`<strong>${titleOf(status)}.</strong> ${detail}${kept}`, isProblem: true };
  }
  if (typeof done !== 'string' || !Object.hasOwn(WAS_DONE, done)) return null;
  return { text: WAS_DONE[done] as string };
}
