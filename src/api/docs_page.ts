import { type Html, html } from '../http/app.ts';
import { PROBLEM_CODES, type ProblemCode } from '../http/problem.ts';
import { type ApiOperation, type ApiResponse, type Field, fieldsOf, type JsonSchema, type OpenApi } from './openapi.ts';
import { PROBLEM_WORDS } from './problem.ts';

type Placed = { method: string; path: string; operation: ApiOperation };

/** The page of `/docs`: an index, every route, every problem and every object of the document. */
export function documentPage(document: OpenApi): Html {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Placed => ({ method, path, operation })),
  );
  const groups = document.tags.map((tag) => ({
    ...tag,
    routes: all.filter((one) => one.operation.tags.includes(tag.name)),
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
<a class="up" href="#top">Contents</a>
</main>`;
}

/** The page has it twice and shows it once: folded if the page is narrow, unfolded if it is wide. */
function contentsOf(groups: readonly { name: string; routes: Placed[] }[]): Html {
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
<li><a href="#notice">Callback: what settled tells the shop</a></li>
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
<p class="soft">${who.length === 0 ? 'No token needed' : `Role: ${who.join(', ')}`}</p>
${description === undefined ? null : prose(description)}
${parameters.length === 0 ? null : html`<h4>Parameters</h4>`}
${fieldList(parameters, 'sent')}
${body === undefined ? null : html`<h4>Body</h4>${schemaFields(body, 'sent')}`}
<h4>Answers</h4>
${answers.filter((one) => !isProblem(one)).map((one) => answer(one.status, one))}
${refusals(answers.filter(isProblem))}
<h4>Example</h4>
<pre><code>${operation['x-codeSamples'][0]?.source ?? ''}</code></pre>
${answers.map(sampleAnswer)}
</section>`;
}

/** Lines of a sample that the page shows unfolded. */
const LINES_SHOWN_MAX = 14;

function sampleAnswer({ status, content }: ApiResponse & { status: string }): Html | null {
  const { example: sample } = Object.values(content)[0] ?? {};
  if (sample === undefined) return null;
  const text = typeof sample === 'string' ? sample.trimEnd() : JSON.stringify(sample, null, 2);
  const shown = html`<summary>Sample answer, ${status}</summary><pre><code>${text}</code></pre>`;
  const isShort = text.split('\n').length <= LINES_SHOWN_MAX;
  return isShort ? html`<details open>${shown}</details>` : html`<details>${shown}</details>`;
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
<h3>Headers</h3>
${fieldList(parameters, 'got')}
<h3>Body</h3>
${schemaFields(schema, 'got')}
<h3>What the shop answers</h3>
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
${schema.examples === undefined ? null : html`<pre><code>${JSON.stringify(schema.examples[0], null, 2)}</code></pre>`}
</section>`,
)}`;
}

/** A description: paragraphs and lists, with names in backticks and what matters in two stars. */
function prose(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => {
    if (!paragraph.startsWith('- ')) return html`<p>${inline(paragraph)}</p>`;
    const items = paragraph.split('\n').map((line) => html`<li>${inline(line.slice(2))}</li>`);
    return html`<ul>${items}</ul>`;
  });
}

function inline(text: string): Html[] {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return parts.map((part) => {
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`;
    return part.startsWith('**') ? html`<strong>${part.slice(2, -2)}</strong>` : html`${part}`;
  });
}

/** Whether the reader sends the fields or gets them: the page marks those that must be sent, or those that may be missing. */
type Way = 'sent' | 'got';

/** Fields with their types and meanings, inner fields below their own. */
function fieldList(fields: readonly Field[], way: Way): Html | null {
  return fields.length === 0 ? null : html`<dl>${fields.map((one) => field(one, way))}</dl>`;
}

/** The fields of an object, or of each of several; the type of anything else. */
function schemaFields(schema: JsonSchema, way: Way): Html | null | (Html | null)[] {
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => fieldList(fieldsOf(one), way));
  if (schema.properties === undefined) return html`<p>${typeOf(schema)}</p>`;
  return fieldList(fieldsOf(schema), way);
}

function field({ name, required, description, schema }: Field, way: Way): Html {
  const mark = way === 'sent' ? (required ? 'needed' : null) : required ? null : 'not always';
  const inner = innerObject(schema);
  return html`<div class="field"><dt><code>${name}</code> <span class="type">${typeOf(schema)}</span>${
    mark === null ? null : html` <span class="needed">${mark}</span>`
  }</dt><dd>${description === undefined ? null : prose(description)}${
    inner === null ? null : fieldList(fieldsOf(inner), way)
  }</dd></div>`;
}

/** The object in a field: alone, in a list, or beside null. */
function innerObject(schema: JsonSchema): JsonSchema | null {
  if (schema.properties !== undefined) return schema;
  if (schema.items !== undefined) return innerObject(schema.items);
  return schema.anyOf?.find((one) => one.properties !== undefined) ?? null;
}

function typeOf(schema: JsonSchema): Html[] {
  const { $ref, anyOf, type, items, default: usual } = schema;
  if ($ref !== undefined) return [componentLink($ref)];
  if (anyOf !== undefined) return joined(anyOf.map(typeOf), ' or ');
  if (schema.const !== undefined) return [html`<code>${String(schema.const)}</code>`];
  if (schema.enum !== undefined) {
    const names = schema.enum.map((name) => [html`<code>${String(name)}</code>`]);
    return [html`one of `, ...joined(names, ', ')];
  }
  if (type === 'array') return [html`list of `, ...(items === undefined ? [html`anything`] : typeOf(items))];
  const base = Array.isArray(type) ? type.map((one) => nameOfType(one)).join(' or ') : nameOfType(type, schema);
  return [html`${[base, limits(schema), usual === undefined ? '' : `, ${usual} if left out`].join('')}`];
}

function nameOfType(type: string | undefined, { format }: JsonSchema = {}): string {
  if (format === 'date-time') return 'time';
  if (format === 'uri') return 'web address';
  return { string: 'text', integer: 'whole number', boolean: 'true or false' }[type ?? ''] ?? type ?? 'anything';
}

function limits({ type, minLength, maxLength, minimum, maximum }: JsonSchema): string {
  if (type === 'string' && maxLength !== undefined) {
    if (minLength === undefined) return ` of at most ${maxLength} characters`;
    return minLength === maxLength ? ` of ${maxLength} characters` : ` of ${minLength} to ${maxLength} characters`;
  }
  return minimum !== undefined && maximum !== undefined ? ` from ${minimum} to ${maximum}` : '';
}

function componentLink(ref: string): Html {
  const name = ref.split('/').at(-1) ?? '';
  return html`<a href="#schema-${name}">${name}</a>`;
}

function joined(parts: readonly Html[][], by: string): Html[] {
  return parts.flatMap((part, at) => (at === 0 ? part : [html`${by}`, ...part]));
}
