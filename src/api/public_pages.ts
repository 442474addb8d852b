import type { RequestHandler } from 'express';
import { z } from 'zod';
import { type Html, html, sendPage, showLive, showReadiness } from '../http/app.ts';
import { releaseVersion } from '../release.ts';
import { documentPage } from './docs_page.ts';
import type { OpenApi } from './openapi.ts';
import type { Operation, Route } from './route.ts';

/**
 * The routes that need no token: nothing there is secret, and a browser or a monitor has none to send. `describe` makes the
 * document of every route, these among them; it is called on the first request.
 */
export function openRoutes(describe: () => OpenApi): Route[] {
  return [
    open('/livez', livez),
    open('/readyz', readyz),
    open('/openapi.json', { ...document, handle: () => showDocument(describe) }),
    open('/docs', { ...docs, handle: () => showPage(describe) }),
    open('/', index),
  ];
}

function open(path: string, operation: Operation): Route {
  return { method: 'get', path, allowed: [], operation };
}

const livez: Operation = {
  id: 'livez',
  group: 'Health',
  summary: 'Whether the process answers',
  answers: { 200: { when: 'It does.', schema: z.strictObject({ live: z.literal(true) }), sample: { live: true } } },
  handle: () => showLive,
};

const readyz: Operation = {
  id: 'readyz',
  group: 'Health',
  summary: 'Whether it should get deliveries',
  answers: {
    200: { when: 'It should.', schema: z.strictObject({ ready: z.literal(true) }), sample: { ready: true } },
    503: {
      when: 'It should not: its store cannot be written, or it is stopping.',
      schema: z.strictObject({ ready: z.literal(false), reason: z.string() }),
      sample: { ready: false, reason: 'the process is stopping' },
    },
  },
  handle: ({ readiness }) => showReadiness(readiness),
};

const document: Omit<Operation, 'handle'> = {
  id: 'openapi',
  group: 'Health',
  summary: 'This document as OpenAPI 3.1',
  answers: {
    200: {
      when: 'The document.',
      schema: z.looseObject({ openapi: z.string() }),
      sample: { openapi: '3.1.0', info: { title: 'settled' } },
    },
  },
};

function showDocument(describe: () => OpenApi): RequestHandler {
  let text: string | null = null;
  return (_request, response) => {
    text ??= JSON.stringify(describe());
    response.type('json').send(text);
  };
}

const PAGE = {
  200: {
    when: 'The page.',
    schema: z.string(),
    sample: '<!doctype html>\n<html lang="en">…</html>\n',
    type: 'text/html',
  },
};

const docs: Omit<Operation, 'handle'> = {
  id: 'docs',
  group: 'Health',
  summary: 'This document for people',
  answers: PAGE,
};

function showPage(describe: () => OpenApi): RequestHandler {
  let body: Html | null = null;
  return (_request, response) => {
    body ??= documentPage(describe());
    sendPage(response, { title: 'settled: the private API', style: STYLE, body });
  };
}

const index: Operation = {
  id: 'index',
  group: 'Health',
  summary: 'What is at this address, for people',
  answers: PAGE,
  handle: () => {
    const body = indexPage();
    return (_request, response) => sendPage(response, { title: 'settled', style: STYLE, body });
  },
};

const ADDRESSES = [
  ['docs', 'the private API, with every field, problem and a sample of every call'],
  ['openapi.json', 'the same as OpenAPI 3.1, for programs'],
  ['livez', 'whether the process answers'],
  ['readyz', 'whether it should get deliveries, or why not'],
  ['metrics', "for Prometheus. It needs the operator's token, which a browser does not send"],
] as const;

const COMMANDS = [
  ['settled attention', 'is any money in a wrong state, and what else needs a person?'],
  ['settled orders list --since 2d', 'what was asked, what was captured, and what is held or flagged?'],
  ['settled why ORDER', 'why is this order in its state?'],
  ['settled doctor', 'is this installation well?'],
  ['settled tail', 'what is happening now?'],
  ['settled help', 'which commands are there?'],
] as const;

/** It needs no token, so it says what is true of every settled of this version, and nothing of this one's orders or settings. */
function indexPage(): Html {
  return html`<main>
<h1>settled</h1>
<p class="title">settled is the merchant's side of a payment-link service: it opens links for a shop's orders, and marks each
order paid once, durably and for the right money.</p>
<p class="soft">Version ${releaseVersion()}. This is the private listener, for the shop and for the people who operate it.</p>
<h2>At this address</h2>
<dl>${ADDRESSES.map(
    ([path, about]) =>
      html`<div class="field"><dt><a href="${path}"><code>/${path}</code></a></dt><dd>${about}</dd></div>`,
  )}</dl>
<h2>In a terminal</h2>
<dl>${COMMANDS.map(
    ([command, asks]) => html`<div class="field"><dt><code>${command}</code></dt><dd>${asks}</dd></div>`,
  )}</dl>
<p class="soft">In a checkout, <code>settled</code> stands for <code class="whole">npm run -s settled --</code>.</p>
</main>`;
}

/** The style sheet of `/docs` and `/`. */
const STYLE = `
:root {
  --ink: #1c2024; --soft: #5c6670; --paper: #fdfdfc; --tint: #f3f4f2; --line: #dfe2e0;
  --link: #0b5f8a; --get: #1f6f43; --post: #8a4b08; --bad: #a1282f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7ea; --soft: #9aa4ad; --paper: #15181b; --tint: #1d2226; --line: #30373d;
    --link: #6bbbe3; --get: #74c897; --post: #e0a45c; --bad: #f08a8f;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .87em; }
code { overflow-wrap: anywhere; }
.whole { white-space: nowrap; }
/* The padding takes no room: a comma follows its name at once. */
p code, li code { background: var(--tint); padding: .08em .2em; margin: 0 -.2em; border-radius: 4px; }
pre {
  margin: .6rem 0 0; padding: .8rem 1rem; background: var(--tint); border: 1px solid var(--line); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5;
}
nav { padding: 1.5rem 1.25rem; border-bottom: 1px solid var(--line); }
nav h1 { margin: 0; font-size: 1.25rem; letter-spacing: -.01em; }
nav h2 { margin: 1.1rem 0 .25rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { display: flex; gap: .5rem; font-size: .875rem; padding: .1rem 0; }
nav li a { color: inherit; min-width: 0; overflow-wrap: anywhere; }
nav details { margin-top: .8rem; }
nav .unfolded { display: none; }
.up {
  position: fixed; right: 1rem; bottom: 1rem; padding: .45rem .8rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 8px; font-size: .875rem;
}
main { padding: 1.5rem 1.25rem 6rem; max-width: 60rem; }
main > h2 { margin: 3.5rem 0 .25rem; padding-top: 1.25rem; border-top: 1px solid var(--line); font-size: 1.5rem; }
section { margin-top: 2.75rem; }
#rules { margin-top: 0; }
h3 { margin: 0; font-size: 1.05rem; font-weight: 600; }
h3 code { font-size: 1em; }
h4 { margin: 1.4rem 0 .3rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); }
p { margin: .5rem 0; }
.lead { color: var(--soft); margin-top: 0; }
.title { margin: .3rem 0 0; font-size: 1.05rem; }
.soft { color: var(--soft); font-size: .875rem; }
.verb { flex: none; font: 600 .72rem/1.6 ui-monospace, Menlo, Consolas, monospace; color: var(--get); }
.verb.post { color: var(--post); }
nav .verb { width: 2.4rem; }
dl { margin: 0; border-top: 1px solid var(--line); }
dl + dl { margin-top: 1.75rem; }
dl dl { margin: .4rem 0 0; border-left: 2px solid var(--line); border-top: 0; padding-left: .9rem; }
.field { padding: .5rem 0; border-bottom: 1px solid var(--line); }
dl dl .field:last-child { border-bottom: 0; }
dt { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; }
dt code { font-weight: 600; }
dd { margin: .1rem 0 0; font-size: .9375rem; }
dd p { margin: .15rem 0; }
dd ul, section > ul { margin: .3rem 0; padding-left: 1.1rem; }
.type { color: var(--soft); font-size: .875rem; }
.needed { color: var(--bad); font-size: .75rem; font-weight: 600; }
.status { font: 600 .875rem ui-monospace, Menlo, Consolas, monospace; color: var(--get); }
.status.bad { color: var(--bad); }
details { margin-top: 1.2rem; }
pre + details, details + details { margin-top: .6rem; }
summary { cursor: pointer; color: var(--soft); font-size: .875rem; }
@media (min-width: 64rem) {
  body:has(> nav) { display: grid; grid-template-columns: 20rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-bottom: 0; border-right: 1px solid var(--line); }
  nav details, .up { display: none; }
  nav .unfolded { display: block; }
  main { padding: 2.5rem 3rem 8rem; }
}
@media print { nav, .up { display: none; } details > * { display: block; } }
`;
