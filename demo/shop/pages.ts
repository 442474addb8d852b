import type { Order } from '../clients.ts';
import type { KnownOrder } from './notices.ts';
import {
  GOODS,
  type Good,
  isOpen,
  learnedWords,
  money,
  newReference,
  stateAtShop,
  toldWords,
  wordsOf,
} from './texts.ts';

const CURRENCY = 'BRL';

export type Typed = { title: string; amount: string; reference: string };

/** The goods, and the orders as settled shows them. `problem` says why the last order could not be opened. */
export function frontPage({
  orders,
  problem,
  typed,
}: {
  orders: readonly Order[];
  problem: string | null;
  typed: Typed;
}): string {
  return page({
    title: 'A tiny shop',
    body: html`<main>
<header><h1>A tiny shop</h1><p>Buy something. The shop opens every order in settled, and you pay it in the sandbox.</p></header>
${problem !== null && html`<p class="problem" role="alert">${problem}</p>`}
<ul class="goods">${GOODS.map(goodCard)}</ul>
${anythingElse(typed)}
${orderList(orders)}
${behindTheCounter()}
</main>`,
  });
}

/** In a new tab, so that the shop and the console can stand side by side. */
function behindTheCounter(): Html {
  return html`<section class="card"><h2>Behind the counter</h2>
<p>Is any money in a wrong state, and why? settled's console shows it to the people of the shop.</p>
${consoleButton()}</section>`;
}

function consoleButton(): Html {
  return html`<form method="post" action="/console" target="_blank"><button class="button quiet">Open the console</button></form>`;
}

function goodCard({ id, title, about, amount }: Good): Html {
  return html`<li class="card"><h2>${title}</h2><p>${about}</p>
<form method="post" action="/orders"><input type="hidden" name="good" value="${id}">
<input type="hidden" name="reference" value="${newReference(id)}">
<button class="button" aria-label="Pay ${money(amount, CURRENCY)} for: ${title}">Pay ${money(amount, CURRENCY)}</button></form></li>
`;
}

function anythingElse({ title, amount, reference }: Typed): Html {
  return html`<details class="card"${title !== '' && html` open`}><summary>Something else, at your price</summary>
<form class="own" method="post" action="/orders">
<label>What <input class="input" name="title" value="${title}" required autocomplete="off"></label>
<label>Price in ${CURRENCY} <input class="input" name="amount" value="${amount}" required inputmode="decimal" autocomplete="off"></label>
<label>Order <input class="input" name="reference" value="${reference}" required autocomplete="off"></label>
<button class="button">Pay</button></form>
<p class="hint">The service takes more than ${money('25', CURRENCY)} only. Try less, or the same order at another price, and see what settled says.</p>
</details>`;
}

function orderList(orders: readonly Order[]): Html | false {
  if (orders.length === 0) return false;
  return html`<section class="card"><h2 id="orders">Orders</h2><ul class="orders" aria-labelledby="orders">
${orders.map(
  (order) => html`<li><a href="${addressOf(order.reference)}"><bdi>${order.reference}</bdi></a>
<span>${money(order.amount, order.currency)}</span>${badge(order.state)}</li>
`,
)}</ul></section>`;
}

/** One order as the shop knows it from notices, beside what settled says now. While it is open, the page reloads. */
export function orderPage({
  order,
  told,
  title,
  problem,
}: {
  order: Order;
  /** What signed notices said of it; null if none came. */
  told: KnownOrder | null;
  /** What was bought; null if this shop did not sell it. */
  title: string | null;
  problem: string | null;
}): string {
  const { reference, amount, currency, link } = order;
  const state = stateAtShop(told);
  const words = wordsOf(state);
  const learned = learnedWords(order.learnedBy);
  const action = `${addressOf(reference)}/check`;
  return page({
    title: `${words.title} · A tiny shop`,
    refreshes: isOpen(state),
    body: html`<main class="narrow" data-state="${stateOf(order, told)}"${isOpen(state) && html` data-open`}>
<p><a href="/">A tiny shop</a></p>
${problem !== null && html`<p class="problem" role="alert">${problem}</p>`}
<section class="card order ${words.tone}"><div role="status"><h1>${words.title}</h1><p>${words.text}</p></div>
<dl>${title !== null && html`<div><dt>What</dt><dd><bdi>${title}</bdi></dd></div>`}
<div><dt>Order</dt><dd><bdi>${reference}</bdi></dd></div>
<div><dt>Price</dt><dd>${money(amount, currency)}</dd></div></dl>
${isOpen(state) && ways(link, action)}
</section>
<section class="card"><h2>Behind the counter</h2>
<dl><div><dt>The shop was told</dt><dd>${told === null ? 'nothing yet' : toldWords(told)}</dd></div>
<div><dt>State at settled</dt><dd><code>${order.state}</code>${learned !== null && html`, ${learned}`}</dd></div></dl>
${consoleButton()}</section></main>`,
  });
}

function ways(link: Order['link'], action: string): Html {
  return html`${
    link?.url == null
      ? html`<p class="hint">The payment page is not ready yet.</p>`
      : html`<a class="button" href="${link.url}">Pay now</a>`
  }
<form method="post" action="${action}"><button class="button quiet">I have paid: ask the service now</button></form>
<p class="hint">This page reloads on its own. If no webhook reports a payment, settled finds it by asking.</p>`;
}

/** What the page shows, in short. The page's script reloads it when this changes. */
export function stateOf({ state, link, version }: Order, told: KnownOrder | null): string {
  return [state, version, told?.count ?? 0, link?.url == null ? 'without link' : 'with link'].join(' ');
}

/** A page with nothing but a message. */
export function messagePage({ title, text }: { title: string; text: string }): string {
  return page({
    title,
    body: html`<main class="narrow"><section class="card"><h1>${title}</h1><p>${text}</p><p><a href="/">To the shop</a></p></section></main>`,
  });
}

export function addressOf(reference: string): string {
  return `/orders/${encodeURIComponent(reference)}`;
}

function badge(state: string): Html {
  const { short, tone } = wordsOf(state);
  return html`<span class="badge ${tone}">${short}</span>`;
}

function page({ title, body, refreshes = false }: { title: string; body: Html; refreshes?: boolean }): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refreshes && html`<noscript><meta http-equiv="refresh" content="3"></noscript>`}
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/shop.css">
<script type="module" src="/assets/shop.js"></script>
</head>
<body>
<header class="banner"><p><strong>Demo.</strong> Nothing is for sale, and no money is real.</p></header>
${body}
</body>
</html>
`.markup;
}

/** Markup that is safe to send. Only the tag `html` makes it. */
type Html = { readonly markup: string };

type Part = Html | string | number | null | false | readonly Part[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A template of markup. Escapes every value that is not markup itself. Attributes must be quoted. */
function html({ raw }: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { markup: raw.map((text, at) => text + (at < parts.length ? write(parts[at] as Part) : '')).join('') };
}

function write(part: Part): string {
  if (part === null || part === false) return '';
  if (typeof part === 'string' || typeof part === 'number') {
    return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character] as string);
  }
  return 'markup' in part ? part.markup : part.map(write).join('');
}
