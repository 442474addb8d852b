import { type Html, html } from '../http/app.ts';
import type { ApiOperation, ApiResponse, OpenApi } from './openapi.ts';

/** The page of `/docs`: every route with who may use it, a call and its answer. The document itself has the fields. */
export function documentPage({ info, paths, tags }: OpenApi): Html {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  return html`<main>
<h1>settled</h1>
<p class="soft">${info.summary}, version ${info.version}. Every field, answer and problem is in the <a
href="openapi.json">OpenAPI 3.1 document</a>, which any viewer or generator of OpenAPI reads.</p>
${prose(info.description)}
${tags.map(
  ({ name, description }) => html`<h2>${name}</h2>
<p class="soft">${description}</p>
${routes
  .filter(({ operation }) => operation.tags.includes(name))
  .map(
    ({ method, path, operation }) => html`<section class="card" id="${operation.operationId}">
<h3><code>${method.toUpperCase()} ${path}</code></h3>
<p>${operation.summary}. <span class="soft">${whoMay(operation)}</span></p>
<details><summary>Call and answer</summary>
${prose(operation.description ?? '')}
<pre>${operation['x-codeSamples'][0]?.source ?? ''}</pre>
<pre>${sampleAnswer(operation)}</pre></details>
</section>`,
  )}`,
)}
</main>`;
}

function whoMay({ security }: ApiOperation): string {
  const roles = security.flatMap((one) => Object.keys(one));
  return roles.length === 0 ? 'No token needed' : `Role: ${roles.join(', ')}`;
}

/** The sample of the first answer, which is a good one. */
function sampleAnswer({ responses }: ApiOperation): string {
  const [first] = Object.values(responses) as ApiResponse[];
  const { example } = Object.values(first?.content ?? {})[0] ?? {};
  return typeof example === 'string' ? example.trimEnd() : JSON.stringify(example, null, 2);
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
