import type { Request } from 'express';
import { type BulkRunDocument, listBulk, showBulk } from '../api/bulk.ts';
import { listEvents } from '../api/events.ts';
import type { CountDocument } from '../api/lists.ts';
import { listNotices } from '../api/notices.ts';
import { BULK, capital, WHY_CANCELLED } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { actionForm, definitions } from './components.ts';
import type { PageParts, Shown } from './layout.ts';
import { listPage } from './listing.ts';
import { age, count, lasting, type Noun, stateBadge, time, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type QueryValues, type View } from './view.ts';

/** Bulk work on all rows of a filter: first a count, then a confirmation, then the progress. */

type BulkAction = BulkRunDocument['action'];

/** Counts the dead rows of a list. */
type CountDead = (options: ConsoleOptions) => Promise<{ count?: CountDocument | undefined }>;

type Words = {
  /** The verb for the action. */
  verb: string;
  /** The list that its filter narrows. */
  list: '/deliveries' | '/shop' | '/orders' | '/attention';
  /** What the page of that list adds to each filter: that of deliveries shows no answers of the API. */
  implied?: QueryValues;
  /** Only for rows that can become dead again after they were queued again. */
  countDead?: CountDead;
};

const DEAD = { status: 'dead', count: 'true', limit: '1' };

/** One row of an action, and several. */
const nounOf = (action: BulkAction): Noun => ({ one: BULK[action].one, many: `${BULK[action].one}s` });

const WORDS: Readonly<Record<BulkAction, Words>> = {
  replay_events: {
    verb: 'replay',
    list: '/deliveries',
    implied: { kind: 'event' },
    countDead: (options) => listEvents.load(options, { query: { ...DEAD, kind: 'event' } }),
  },
  resend_notices: { verb: 'resend', list: '/shop', countDead: (options) => listNotices.load(options, { query: DEAD }) },
  check_orders: { verb: 'ask the service about', list: '/orders' },
  accept_orders: { verb: 'accept the money of', list: '/orders' },
  end_attention: { verb: 'end', list: '/attention' },
};

function placeOf({ list }: Words): NonNullable<PageParts['here']> {
  return list === '/attention' ? '/' : list;
}

/** The form of the first step, which only counts. `filter`: the list's parameters, as the API takes them. */
export function bulkForm(view: View, { action, filter }: { action: BulkAction; filter: QueryValues }): Html | null {
  const names = Object.keys(filter).filter((name) => !['limit', 'cursor', 'count'].includes(name));
  if (!mayDo(view, 'operator') || names.length === 0) return null;
  const { verb, implied = {} } = WORDS[action];
  const all = { ...Object.fromEntries(names.map((name) => [name, filter[name] ?? null])), ...implied };
  const fields = Object.fromEntries(Object.entries(all).map(([name, value]) => [`filter.${name}`, value]));
  return actionForm(view, {
    id: `bulk-${action}`,
    action: '/v1/bulk',
    summary: `${capital(verb)} all ${nounOf(action).many} that this filter lets through`,
    preview: 'settled only counts them first, and changes nothing yet.',
    button: 'Count them',
    values: { action, ...fields, preview: 'true' },
  });
}

/** The second step: the API's answer to the first form, or the address of the started run. */
export function bulkAnswer(
  view: View,
  document: { count: { n: number; isMore: boolean } } | { run: BulkRunDocument },
  typed: ReadonlyMap<string, string>,
): Shown {
  if ('run' in document) return { goTo: hrefOf(view, `/bulk/${document.run.id}`) };
  const action = typed.get('action') as BulkAction;
  const { verb, list } = WORDS[action];
  const noun = nounOf(action);
  const here = placeOf(WORDS[action]);
  const { n, isMore } = document.count;
  const counted = count(document.count, noun);
  const values = Object.fromEntries([...typed].filter(([name]) => name !== 'back' && name !== 'preview'));
  const path = view.prefix === '' ? (typed.get('back') ?? '') : (typed.get('back') ?? '').slice(view.prefix.length);
  const back = html`<p><a href="${hrefOf(view, list)}">Back to the list</a></p>`;
  const title = `${capital(verb)} ${counted}?`;
  if (n === 0) {
    const body = html`<h1>${capital(verb)}: nothing</h1><p class="lead">The filter lets no ${noun.one} through.</p>${back}`;
    return { title: 'Nothing to do', here, body, isStill: true };
  }
  const body = html`<h1>${title}</h1>
<p class="lead">The filter lets ${counted} through. Nothing was done so far.</p>
${definitions(filterFacts(values))}
${actionForm(view, {
  id: 'bulk-start',
  action: '/v1/bulk',
  summary: `${capital(verb)} ${counted}`,
  isOpen: true,
  preview: html`settled lists them now and goes through them one by one in the background. What comes under the filter later is not touched.${
    isMore ? ' It takes the newest: start it again for the others.' : null
  }`,
  button: `${capital(verb)} ${counted}`,
  reason: BULK[action].needsReason ? 'required' : 'optional',
  values,
  back: path,
})}${back}`;
  return { title, here, body, isStill: true };
}

function filterFacts(values: Readonly<Record<string, string>>): (readonly [string, HtmlValue])[] {
  const shown = Object.entries(values).filter(([name]) => name.startsWith('filter.'));
  return shown.map(([name, value]) => [`Filter: ${name.slice('filter.'.length)}`, html`<bdi>${value}</bdi>`] as const);
}

export async function showBulkRun(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { run } = await showBulk.load(options, { id: String(request.params.id) });
  const { verb, list, countDead } = WORDS[run.action];
  const noun = nounOf(run.action);
  const dead = (await countDead?.(options))?.count ?? null;
  const isRunning = run.status === 'running';
  const title = `${capital(verb)}: ${count(run.total, noun)}`;
  const body = html`<h1>${title} ${stateBadge(run.status)}</h1>
<p class="lead">${whole(run.done)} of ${count(run.total, noun)} processed.</p>
<p><progress max="${Math.max(1, run.total)}" value="${run.done}" aria-label="Progress">${run.done} of ${run.total}</progress></p>
${runFacts(view, run)}
${dead === null ? null : html`<p>Dead rows now: <a href="${hrefOf(view, list, { status: 'dead' })}">${count(dead, noun)}</a></p>`}
${isRunning && mayDo(view, 'operator') ? cancellation(view, run) : null}
<p class="actions">${isRunning ? html`<a class="button quiet" href="${hrefOf(view, `/bulk/${run.id}`)}">See the progress</a>` : null}
${listLink(view, run)}
<a href="${hrefOf(view, '/bulk')}">All bulk work</a></p>`;
  return { title, here: placeOf(WORDS[run.action]), body };
}

function runFacts(view: View, run: BulkRunDocument): Html {
  const { changed, skipped, failed, detail, isMore, reason, by, startedAt, endedAt, expectedEndAt } = run;
  return definitions([
    ['Cancelled', detail === null ? null : `by settled: ${WHY_CANCELLED[detail]}`],
    [capital(BULK[run.action].changed), whole(changed)],
    ['Skipped', skipped === 0 ? null : `${whole(skipped)}: ${BULK[run.action].skipped}`],
    ['Failed', failed === 0 ? null : whole(failed)],
    ['More', isMore ? 'more rows match the filter: start the work again for them' : null],
    ['By', by === null ? 'the shop' : html`<bdi>${by}</bdi>`],
    ['Reason', reason === null ? null : html`<bdi>${reason}</bdi>`],
    ['Started', time(view, startedAt)],
    ['Ended', time(view, endedAt)],
    ['Lasts so far', endedAt === null ? lasting(view, startedAt) : null],
    ['Ends about', time(view, expectedEndAt)],
    ...filterFacts(
      Object.fromEntries(Object.entries(run.filter).map(([name, value]) => [`filter.${name}`, `${value}`])),
    ),
  ]);
}

/** Links to the filtered list; a search has no link, because settled does not keep its text. */
function listLink(view: View, run: BulkRunDocument): Html | null {
  if ('q' in run.filter) return null;
  const { list } = WORDS[run.action];
  return html`<a href="${hrefOf(view, list, listQuery(run))}">See the ${nounOf(run.action).many} of this filter</a>`;
}

/** The filter in the form that the list's page takes. */
function listQuery({ action, filter }: BulkRunDocument): QueryValues {
  const { implied = {} } = WORDS[action];
  const given = Object.entries(filter).filter(([name]) => !Object.hasOwn(implied, name));
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

function cancellation(view: View, { id, total, done }: BulkRunDocument): Html {
  return actionForm(view, {
    id: 'bulk-cancel',
    action: `/v1/bulk/${id}/cancel`,
    summary: 'Cancel',
    preview: `What was done stays. The other ${whole(total - done)} are not touched.`,
    button: 'Cancel the rest',
    isDanger: true,
  });
}

export async function showBulkRuns(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { list, status } = await listPage({
    ...{ view, request, path: '/bulk' },
    label: 'Filter',
    noun: { one: 'run', many: 'runs' },
    load: (query) => listBulk.load(options, { query }),
    caption: 'Bulk work',
    columns: [
      {
        head: 'What',
        cell: ({ id, action, total }: BulkRunDocument) =>
          html`<a href="${hrefOf(view, `/bulk/${id}`)}">${capital(WORDS[action].verb)}: ${count(total, nounOf(action))}</a>`,
      },
      { head: 'State', cell: ({ status }) => stateBadge(status) },
      { head: 'Processed', isNumber: true, cell: ({ done }) => whole(done) },
      { head: 'By', cell: ({ by }) => (by === null ? 'the shop' : html`<bdi>${by}</bdi>`) },
      { head: 'Started', cell: ({ startedAt }) => age(view, startedAt) },
    ],
    rows: ({ runs }) => runs,
    rowId: ({ id }) => id,
    nothing: () => 'There has been no bulk work so far.',
  });
  const body = html`<h1>Bulk work</h1><p class="soft">Actions on all rows of a filter at once. They run in the background.</p>${list}`;
  return { title: 'Bulk work', here: '/system', body, status };
}
