import { type Html, html } from '../../http/html.ts';
import { PROBLEM_CODES, type ProblemCode } from '../../http/problem.ts';
import type { ApiOperation, ApiResponse, OpenApi } from './document.ts';
import { fieldList, inline, prose, schemaFields, type Way } from './fields.ts';
import { PROBLEM_WORDS } from './problems.ts';

type Placed = { method: string; path: string; operation: ApiOperation };

/** The page of `/docs`: an index, every route, every problem and every object of the document. */
export function documentPage(document: OpenApi): Html {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Placed => ({ method, path, operation })),
  );
  const groups = document.tags.map((tag) => ({
    ...tag,
    routes: all.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const contents = contentsOf(groups);
  return html`<nav id="top" aria-label="Contents">
<h1>settled</h1>
<p class="soft">${document.info.summary}, version ${document.info.version}. As <a href="openapi.json">OpenAPI 3.1</a>.</p>
<details><summary>Contents</summary>${contents}</details>
<div class="unfolded">${contents}</div>
</nav>
<main>
<section id="rules">${prose(document.info.description)}</section>
${groups.map(
  ({ name, description, routes }) =>
    html`<h2 id="group-${name}">${name}</h2><p class="lead">${description}</p>
${routes.map((placed) => route(document, placed))}`,
)}
${callback(document)}
${problems()}
${objects(document)}
</main>
<a class="up" href="#top">Contents</a>`;
}

type Group = { name: string; routes: Placed[] };

/** It stands twice in the page, and is shown once: folded where the page is narrow, unfolded where it is wide. */
function contentsOf(groups: readonly Group[]): Html {
  return html`${groups.map(
    ({ name, routes }) => html`<h2>${name}</h2>
<ul>${routes.map(
      ({ method, path, operation }) =>
        html`<li><span class="verb ${method}">${method.toUpperCase()}</span> <a href="#${operation.operationId}">${path}</a></li>`,
    )}</ul>`,
  )}
<h2>More</h2>
<ul>
<li><a href="#rules">Rules for all routes</a></li>
<li><a href="#notice">Callback: what the shop is told</a></li>
<li><a href="#problems">Problems</a></li>
<li><a href="#objects">Objects</a></li>
</ul>`;
}

function route(document: OpenApi, { method, path, operation }: Placed): Html {
  const { operationId, summary, description, security, parameters, requestBody, responses } = operation;
  const who = security.flatMap((one) => Object.keys(one));
  const body = requestBody?.content['application/json']?.schema;
  const answers = Object.entries(responses).map(([status, given]) => ({ status, ...resolve(document, given) }));
  const isProblem = ({ content }: ApiResponse) => 'application/problem+json' in content;
  return html`<section id="${operationId}">
<h3><span class="verb ${method}">${method.toUpperCase()}</span> <code>${path}</code></h3>
<p class="title">${summary}</p>
<p class="soft">${who.length === 0 ? 'No token needed' : `Token: ${who.join(' or ')}`}</p>
${description === undefined ? null : prose(description)}
${parameters.length === 0 ? null : html`<h4>Parameters</h4>`}
${parameterList(parameters)}
${body === undefined ? null : html`<h4>Body</h4>${schemaFields(body, 'sent')}`}
<h4>Answers</h4>
${answers.filter((one) => !isProblem(one)).map((one) => answer(one.status, one))}
${refusals(answers.filter(isProblem))}
<h4>Example</h4>
<pre><code>${operation['x-codeSamples'][0]?.source ?? ''}</code></pre>
${answers.map(sampleAnswer)}
</section>`;
}

/** Lines of a sample that is shown at once. A longer one is unfolded by who wants it. */
const LINES_SHOWN_MAX = 14;

function sampleAnswer({ status, content }: ApiResponse & { status: string }): Html | null {
  const { example: sample } = Object.values(content)[0] ?? {};
  if (sample === undefined) return null;
  const text = typeof sample === 'string' ? sample.trimEnd() : JSON.stringify(sample, null, 2);
  const shown = html`<summary>Sample answer, ${status}</summary><pre><code>${text}</code></pre>`;
  const isShort = text.split('\n').length <= LINES_SHOWN_MAX;
  return isShort ? html`<details open>${shown}</details>` : html`<details>${shown}</details>`;
}

function parameterList(parameters: ApiOperation['parameters'], way: Way = 'sent'): Html | null {
  return fieldList(
    parameters.map((one) => ({ ...one, needed: one.required })),
    way,
  );
}

function resolve({ components }: OpenApi, given: ApiResponse | { $ref: string }): ApiResponse {
  return '$ref' in given ? (components.responses[given.$ref.split('/').at(-1) ?? ''] as ApiResponse) : given;
}

function answer(status: string, { description, content }: ApiResponse): Html {
  const [type = '', { schema } = { schema: {} }] = Object.entries(content)[0] ?? [];
  const isBad = Number(status) >= 400;
  return html`<p><span class="status${isBad ? ' bad' : ''}">${status}</span> ${description} ${
    type === 'application/json' ? null : html`<span class="soft">${type}</span>`
  }</p>
${type.startsWith('text/') ? null : schemaFields(schema, 'got')}`;
}

function refusals(answers: readonly (ApiResponse & { status: string })[]): Html | null {
  const rows = answers.flatMap(({ status, content }) => {
    const codes = content['application/problem+json']?.schema.properties?.title?.enum as ProblemCode[];
    return codes.map((code) => ({ status, code }));
  });
  if (rows.length === 0) return null;
  return html`<details><summary>${rows.length} problems</summary>
<dl>${rows.map(
    ({ status, code }) =>
      html`<div class="field"><dt><span class="status bad">${status}</span> <a href="#problem-${code}"><code>${code}</code></a></dt>
<dd>${inline(PROBLEM_WORDS[code].meaning)}</dd></div>`,
  )}</dl></details>`;
}

function callback({ webhooks }: OpenApi): Html {
  const { summary, description, parameters, requestBody, responses } = webhooks.notice.post;
  const schema = requestBody.content['application/json'].schema;
  return html`<h2 id="notice">Callback</h2>
<p class="lead">${inline(summary)}</p>
${prose(description)}
<h4>Headers</h4>
${parameterList(parameters, 'got')}
<h4>Body</h4>
${schemaFields(schema, 'got')}
<h4>What the shop answers</h4>
<ul>${Object.entries(responses).map(
    ([status, { description: means }]) =>
      html`<li><code>${status === 'default' ? 'anything else' : status}</code> ${means}</li>`,
  )}</ul>`;
}

function problems(): Html {
  return html`<h2 id="problems">Problems</h2>
<p class="lead">Every code that an answer may have, and what to do about it.</p>
<dl>${PROBLEM_CODES.map((code) => {
    const { meaning, remedy } = PROBLEM_WORDS[code];
    return html`<div class="field" id="problem-${code}"><dt><code>${code}</code></dt>
<dd><p>${inline(meaning)}</p><p class="soft">What to do: ${inline(remedy)}</p></dd></div>`;
  })}</dl>`;
}

function objects({ components }: OpenApi): Html {
  return html`<h2 id="objects">Objects</h2>
${Object.entries(components.schemas).map(
  ([name, schema]) => html`<section id="schema-${name}">
<h3>${name}</h3>
${schema.description === undefined ? null : prose(schema.description)}
${schema.enum === undefined ? schemaFields(schema, 'got') : null}
${example(schema.examples?.[0])}
</section>`,
)}`;
}

function example(value: unknown): Html | null {
  return value === undefined ? null : html`<pre><code>${JSON.stringify(value, null, 2)}</code></pre>`;
}
