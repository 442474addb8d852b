import type { Request } from 'express';
import { type EventDocument, listEvents } from '../api/events.ts';
import { listRejections, type RejectionDocument } from '../api/rejections.ts';
import { type HintDocument, listHints } from '../api/service_state.ts';
import { words } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { KEPT_REASONS, OUTCOME_WORDS } from '../vocabulary.ts';
import { bulkForm } from './bulk_page.ts';
import { type Column, tabs } from './components.ts';
import type { PageParts, Shown } from './layout.ts';
import {
  breakable,
  choices,
  listPage,
  ORDER_FILTER,
  orderLink,
  rowStatus,
  SINCE,
  STATUS_FILTER,
  UNTIL,
} from './listing.ts';
import { replayForm } from './rows.ts';
import { age, badge, shortened, time, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type View } from './view.ts';

/** What the service sent: recorded events, rejected deliveries, and stale deliveries. */

const EVENTS = '/deliveries';
const REJECTIONS = '/deliveries/rejections';
const STALE = '/deliveries/stale';

/** Of events and readings. */
export const EVENT_FILTERS = [
  STATUS_FILTER,
  { name: 'outcome', label: 'Result', options: OUTCOME_WORDS },
  { name: 'type', label: 'Type' },
  ORDER_FILTER,
  SINCE,
  UNTIL,
] as const;

export async function showEvents(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { list, status } = await listPage({
    ...{ view, request, path: EVENTS },
    label: 'Filter events',
    noun: { one: 'delivery', many: 'deliveries' },
    load: (query) => listEvents.load(options, { query: { ...query, kind: 'event', count: 'true' } }),
    filters: EVENT_FILTERS,
    above: (filter) => bulkForm(view, { action: 'replay_events', filter }),
    caption: 'Recorded events',
    columns: eventColumns(view),
    rows: ({ events }) => events,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No event matches.' : 'The service has delivered nothing so far.'),
  });
  return { ...partsOf(view, EVENTS, list), status };
}

/** Columns of recorded events; of readings, if `ofReadings`. */
export function eventColumns(view: View, { ofReadings = false } = {}): Column<EventDocument>[] {
  return [
    { head: ofReadings ? 'Reading' : 'Event', cell: (event) => eventName(view, event) },
    { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
    { head: 'Came', cell: ({ receivedAt }) => age(view, receivedAt) },
    { head: 'Status', cell: (event) => rowStatus(view, event) },
    { head: 'Result', isText: true, cell: becameOf },
    ...(mayDo(view, 'operator') ? [{ head: 'Action', cell: (event: EventDocument) => replayButton(view, event) }] : []),
  ];
}

/** A link to the event, named by its type or id, which are the sender's own words. */
function eventName(view: View, { id, type, eventId, reading }: EventDocument): Html {
  const what = reading === null ? (type ?? 'without a type') : `asked ${words.asked(type ?? '')}`;
  const named = reading === null ? html`<code>${short(eventId)}</code>` : html`reading ${whole(reading)}`;
  return html`<a href="${hrefOf(view, `/events/${id}`)}">${breakable(short(what))}</a><br><span class="soft">${named}</span>`;
}

const NAME_SHOWN_MAX = 96;

const short = (text: string) => shortened(text, NAME_SHOWN_MAX);

function becameOf({ outcome, rule, fault, attempt, conflict, duplicates, status }: EventDocument): HtmlValue {
  const notes = [
    ...(attempt > 1 ? [`${whole(attempt)} attempts`] : []),
    ...(duplicates > 0 ? [`came ${whole(duplicates)} more ${duplicates === 1 ? 'time' : 'times'}`] : []),
  ];
  return html`${fault === null ? null : html`<p><code>${fault.code}</code> ${fault.message}</p>`}
${outcome === null ? null : html`<p>${OUTCOME_WORDS[outcome]}${rule === null ? null : html`<span class="soft">: ${words.rule(rule)}</span>`}</p>`}
${outcome === null && fault === null && status === 'done' ? html`<p class="soft">It says nothing about the order's money.</p>` : null}
${conflict ? html`<p>${badge('conflict', 'bad')} This id came before with other content.</p>` : null}
${notes.length === 0 ? null : html`<p class="soft">${notes.join(', ')}</p>`}`;
}

function replayButton(view: View, { id, status }: EventDocument): HtmlValue {
  if (status !== 'done' && status !== 'dead') return null;
  return replayForm(view, id, 'Replay');
}

export async function showRejections(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const columns: Column<RejectionDocument>[] = [
    { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
    { head: 'Reason', isText: true, cell: ({ reason }) => html`${words.rejection(reason)}` },
    { head: 'Times', isNumber: true, cell: ({ count }) => whole(count) },
    { head: 'First', cell: ({ firstAt }) => age(view, firstAt) },
    { head: 'Last', cell: ({ lastAt }) => age(view, lastAt) },
    { head: 'Diagnosis of the last one', isText: true, cell: ({ diagnosis }) => diagnosed(diagnosis) },
  ];
  const { list, status } = await listPage({
    ...{ view, request, path: REJECTIONS },
    label: 'Filter rejections',
    noun: { one: 'order and reason', many: 'orders and reasons' },
    load: (query) => listRejections.load(options, { query: { ...query, count: 'true' } }),
    filters: [{ name: 'reason', label: 'Reason', options: choices(KEPT_REASONS) }, ORDER_FILTER],
    caption: 'Rejected deliveries',
    columns,
    rows: ({ rejections }) => rejections,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No rejection matches.' : 'No delivery was rejected.'),
  });
  return { ...partsOf(view, REJECTIONS, html`${ABOUT_REJECTIONS}${list}`), status };
}

const ABOUT_REJECTIONS = html`<p class="soft">Deliveries that settled rejected, by order and reason. They never change an order, and settled does not keep their bodies.</p>`;

/** The sentence of a diagnosis, with the expected and the actual value if the diagnosis has them. */
function diagnosed(diagnosis: RejectionDocument['diagnosis']): HtmlValue {
  if (diagnosis === null) return html`<span class="soft">settled has examined none of these deliveries.</span>`;
  const { wanted, names } = diagnosis.details as { wanted?: unknown; names?: unknown };
  const list = (what: string, given: unknown) =>
    Array.isArray(given) && given.length > 0
      ? html`<p class="soft">${what}: ${given.map((name, at) => html`${at === 0 ? '' : ', '}<code>${short(String(name))}</code>`)}</p>`
      : null;
  return html`<p>${diagnosis.answer}</p>${list('Expected', wanted)}${list('Got', names)}
${diagnosis.advice.map((one) => html`<p class="soft">${one}</p>`)}`;
}

export async function showStale(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const columns: Column<HintDocument>[] = [
    { head: 'Event id', cell: ({ eventId }) => html`<code>${short(eventId)}</code>` },
    { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
    { head: 'Signed', cell: ({ timestamp }) => time(view, Number(timestamp)) },
    { head: 'Came first', cell: ({ firstAt }) => age(view, firstAt) },
    { head: 'Came last', cell: ({ lastAt }) => age(view, lastAt) },
    { head: 'Times', isNumber: true, cell: ({ count }) => whole(count) },
  ];
  const { list, status } = await listPage({
    ...{ view, request, path: STALE },
    label: 'Filter stale deliveries',
    noun: { one: 'delivery', many: 'deliveries' },
    load: (query) => listHints.load(options, { query }),
    filters: [ORDER_FILTER],
    caption: 'Stale deliveries',
    columns,
    rows: ({ hints }) => hints,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No delivery matches.' : 'No delivery was stale.'),
  });
  return { ...partsOf(view, STALE, html`${ABOUT_STALE}${list}`), status };
}

const ABOUT_STALE = html`<p class="soft">Authentic deliveries whose timestamp is too old, or in the future. settled does not settle them: it asks the service about the order instead.</p>`;

function partsOf(view: View, path: string, content: HtmlValue): PageParts {
  const pages = { Events: EVENTS, Rejections: REJECTIONS, Stale: STALE };
  const body = html`<h1>Deliveries</h1>${tabs(view, { label: 'Deliveries', pages, path })}${content}`;
  return { title: 'Deliveries', here: '/deliveries', body };
}
