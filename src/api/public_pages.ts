import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Html, html, sendPage, showLive, showReadiness } from '../http/app.ts';
import { releaseVersion } from '../release.ts';
import { documentPage } from './docs_page.ts';
import type { OpenApi } from './openapi.ts';
import { answer, type Operation, ok, operation } from './route.ts';

/** What monitors and readers of the document ask for. All but the metrics need no token: a browser has none to send. */

export const livez: Operation = {
  summary: 'Whether the process answers',
  answers: ok('It does.', { live: z.literal(true) }, { live: true }),
  handle: () => showLive,
};

export const readyz: Operation = {
  summary: 'Whether it should get deliveries',
  answers: {
    200: answer('It should.', { ready: z.literal(true) }, { ready: true }),
    503: answer(
      'It should not: its store cannot be written, or it is stopping.',
      { ready: z.literal(false), reason: z.string() },
      { ready: false, reason: 'the process is stopping' },
    ),
  },
  handle: ({ readiness }) => showReadiness(readiness),
};

export const metrics = operation({
  summary: 'Metrics for Prometheus',
  // Prometheus may add its own parameters.
  query: z.looseObject({}),
  answers: {
    200: {
      when: 'The metrics.',
      schema: z.string(),
      sample: `# HELP settled_orders Orders by state.
# TYPE settled_orders gauge
settled_orders{state="paid"} 240
settled_orders{state="held"} 1
`,
      type: 'text/plain',
    },
  },
  answer: async ({ metrics }, _asked, response) => {
    const { contentType, text } = await metrics.scrape();
    response.setHeader('content-type', contentType);
    response.end(text);
    return undefined;
  },
});

/** `describe` makes the document of every route, this one among them; it is called on the first request. */
export function showDocument(describe: () => OpenApi): Operation {
  let text: string | null = null;
  return {
    summary: 'This document as OpenAPI 3.1',
    answers: {
      200: {
        when: 'The document.',
        schema: z.looseObject({ openapi: z.string() }),
        sample: { openapi: '3.1.0', info: { title: 'settled' } },
      },
    },
    handle: () => (_request, response) => {
      text ??= JSON.stringify(describe());
      response.type('json').send(text);
    },
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

const STYLE = readFileSync(new URL('pages.css', import.meta.url), 'utf8');

/** `describe` is called on the first request. */
export function showDocs(describe: () => OpenApi): Operation {
  let body: Html | null = null;
  return {
    summary: 'This document for people',
    answers: PAGE,
    handle: () => (_request, response) => {
      body ??= documentPage(describe());
      sendPage(response, { title: 'settled: the private API', style: STYLE, body });
    },
  };
}

export const index: Operation = {
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
