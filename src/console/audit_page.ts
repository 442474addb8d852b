import type { Request } from 'express';
import { type AuditDocument, listAudit, verifyAudit } from '../api/audit.ts';
import { iso } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Column, definitions, problemPanel } from './components.ts';
import type { Shown } from './layout.ts';
import { listPage, loaded, typedQuery } from './listing.ts';
import { badge, count, shortened, time, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, type View } from './view.ts';

/** Who did what, and whether the audit chain is intact. */

const PATH = '/audit';
const VERIFICATION = '/audit/verification';

export async function showAudit(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { list, status } = await listPage({
    ...{ view, request, path: PATH },
    label: 'Filter the audit',
    noun: { one: 'row', many: 'rows' },
    load: (query) => listAudit.load(options, { query }),
    filters: [
      { name: 'actor', label: 'Who' },
      { name: 'subject', label: 'Changed object', hint: 'A reference, an id or a name' },
    ],
    caption: 'What people did',
    columns: columns(view),
    rows: ({ audit }) => audit,
    rowId: ({ number }) => String(number),
    nothing: (isFiltered) => (isFiltered ? 'No change of that kind.' : 'No changes so far.'),
  });
  const body = html`<h1>Audit</h1><p class="soft">Every change by a person or a named token. Changes by the shop's token are in the history of its orders.</p>
${list}
<section><h2>Is the chain intact?</h2>${verifyForm(view, '')}</section>`;
  return { title: 'Audit', here: '/audit', body, status };
}

function columns(view: View): Column<AuditDocument>[] {
  return [
    { head: 'Number', isNumber: true, cell: ({ number }) => whole(number) },
    { head: 'When', cell: ({ at }) => time(view, at) },
    { head: 'Who', cell: (row) => who(view, row) },
    { head: 'Did', cell: ({ action }) => action.replaceAll('_', ' ') },
    { head: 'To', cell: (row) => subjectLink(view, row) },
    { head: 'Reason', cell: ({ reason }) => (reason === null ? null : html`<bdi>${reason}</bdi>`) },
    { head: 'Change', cell: change },
  ];
}

function who(view: View, { actor, role, origin, address }: AuditDocument): Html {
  return html`<a href="${hrefOf(view, PATH, { actor })}"><bdi>${actor}</bdi></a> <span class="soft">${role}</span><br><span class="soft">${origin}, ${address}</span>`;
}

/** Kinds of objects that have a number instead of a name. */
const NUMBERED: Readonly<Partial<Record<AuditDocument['action'], string>>> = {
  sign_in: 'session',
  sign_out: 'session',
  end_session: 'session',
  replay_event: 'event',
  end_attention: 'matter',
  start_bulk: 'run',
  cancel_bulk: 'run',
};

function subjectLink(view: View, { action, subject }: AuditDocument): HtmlValue {
  if (subject === '') return null;
  const what = NUMBERED[action];
  return html`<a href="${hrefOf(view, PATH, { subject })}">${what === undefined ? null : `${what} `}<bdi>${subject}</bdi></a>`;
}

const VALUE_SHOWN_MAX = 200;

/** The fields that changed, with their values before and after. */
function change({ before, after }: AuditDocument): HtmlValue {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const pairs = names.map((name) => ({ name, was: written(before, name), is: written(after, name) }));
  const changed = pairs.filter(({ was, is }) => was !== is);
  if (changed.length === 0) return null;
  return html`<ul class="changes">${changed.map(
    ({ name, was, is }) =>
      html`<li><span class="soft">${name}</span> ${was === null ? null : html`<del><bdi>${was}</bdi></del>`}${was === null || is === null ? null : ' → '}${
        is === null ? null : html`<ins><bdi>${is}</bdi></ins>`
      }</li>`,
  )}</ul>`;
}

function written(row: Readonly<Record<string, unknown>> | null, name: string): string | null {
  const value = row === null || !Object.hasOwn(row, name) ? null : row[name];
  if (value === null || value === undefined || value === '') return null;
  if (Array.isArray(value) && value.length === 0) return null;
  const isTime = name.endsWith('At') && Number.isSafeInteger(value);
  const text = isTime ? iso(Number(value)) : typeof value === 'string' ? value : JSON.stringify(value);
  return shortened(text, VALUE_SHOWN_MAX);
}

/** Verifies the chain on a page of its own that does not refresh itself, because it reads the whole chain. */
export async function showVerification(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const query = typedQuery(request);
  const { document, refused } = await loaded(verifyAudit.load(options, { query }));
  const content =
    document === null
      ? problemPanel({ title: 'This is not a head of the chain', detail: refused?.detail ?? '' })
      : verdict(document);
  const body = html`<h1>The audit chain</h1>${content}
<section><h2>Verify it again</h2>${verifyForm(view, query.head ?? '', refused?.faultOf('head') ?? null)}</section>
<p><a href="${hrefOf(view, PATH)}">Back to the audit</a></p>`;
  return { title: 'The audit chain', here: '/audit', body, isStill: true, status: refused?.status ?? 200 };
}

function verdict({ isWhole, rows, detail, head }: Awaited<ReturnType<typeof verifyAudit.load>>): Html {
  const facts = definitions([
    ['Verdict', isWhole ? badge('whole', 'good') : badge('not whole', 'bad')],
    ['Verified', count(rows, { one: 'row', many: 'rows' })],
    [
      'Head',
      html`<code>${head}</code><p class="soft">Keep it in another place. With it, settled finds rows that were removed from the end.</p>`,
    ],
  ]);
  return html`<p class="${isWhole ? 'notice done' : 'problem'}">${detail}</p>${facts}`;
}

function verifyForm(view: View, head: string, problem: string | null = null): Html {
  return html`<form class="filter" method="get" action="${hrefOf(view, VERIFICATION)}" aria-label="Verify the chain">
<div class="field wide"><label for="head">A head that you kept <span class="soft">optional</span></label>
<input class="input" id="head" name="head" value="${head}" autocomplete="off" spellcheck="false" placeholder="NUMBER:MAC" aria-describedby="head-hint"${
    problem === null ? null : html` aria-invalid="true"`
  }>
<p class="hint" id="head-hint">The log has one after each change. With it, settled finds rows that were removed from the end.</p>
${problem === null ? null : html`<p class="wrong">${problem}</p>`}</div>
<div class="actions"><button class="button quiet">Verify the chain</button></div></form>`;
}
