import { type Html, html } from '../../http/html.ts';
import type { JsonSchema } from './json_schema.ts';

/** A description: paragraphs and lists, with names in backticks and what matters in two stars. */
export function prose(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => {
    if (!paragraph.startsWith('- ')) return html`<p>${inline(paragraph)}</p>`;
    const items = paragraph.split('\n').map((line) => html`<li>${inline(line.slice(2))}</li>`);
    return html`<ul>${items}</ul>`;
  });
}

export function inline(text: string): Html[] {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return parts.map((part) => {
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`;
    return part.startsWith('**') ? html`<strong>${part.slice(2, -2)}</strong>` : html`${part}`;
  });
}

type Field = { name: string; needed: boolean; description?: string | undefined; schema: JsonSchema };

/** Whether the reader sends it or gets it: of the one the fields that must be there are marked, of the other those that may not. */
export type Way = 'sent' | 'got';

/** Fields with their types and meanings, those within them below them. */
export function fieldList(fields: readonly Field[], way: Way): Html | null {
  return fields.length === 0 ? null : html`<dl>${fields.map((one) => field(one, way))}</dl>`;
}

/** The fields of an object; of several, of each; of anything else its type. */
export function schemaFields(schema: JsonSchema, way: Way): Html | null | (Html | null)[] {
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => fieldList(fieldsOf(one), way));
  if (schema.properties === undefined) return html`<p>${typeOf(schema)}</p>`;
  return fieldList(fieldsOf(schema), way);
}

function fieldsOf({ properties = {}, required = [] }: JsonSchema): Field[] {
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    needed: required.includes(name),
    description,
    schema,
  }));
}

function field({ name, needed, description, schema }: Field, way: Way): Html {
  const mark = way === 'sent' ? (needed ? 'needed' : null) : needed ? null : 'not always';
  const inner = innerObject(schema);
  return html`<div class="field"><dt><code>${name}</code> <span class="type">${typeOf(schema)}</span>${
    mark === null ? null : html` <span class="needed">${mark}</span>`
  }</dt><dd>${description === undefined ? null : prose(description)}${
    inner === null ? null : fieldList(fieldsOf(inner), way)
  }</dd></div>`;
}

/** The object that stands in a field by itself, in a list, or beside null. */
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
