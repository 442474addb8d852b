import type { Request } from 'express';
import { loadStatsDocument, type StatsDocument } from '../api/admin.ts';
import { listEvents } from '../api/events.ts';
import { type DriftDocument, listChecks, listDrift, type NextRequestsDocument } from '../api/service_state.ts';
import { words } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Column, table, tabs } from './components.ts';
import { EVENT_FILTERS, eventColumns } from './deliveries.ts';
import type { PageParts, Shown } from './layout.ts';
import { listPage, ORDER_FILTER, orderLink } from './listing.ts';
import { age, badge, count, duration, prose, time, whole } from './values.ts';
import type { ConsoleOptions, View } from './view.ts';

/** How settled asks the service: the budget, what it asks next and when, and what the answers changed. */

const PATH = '/service';
const READINGS = '/service/readings';
const DRIFT = '/service/drift';

/** Rows of each kind that the page shows. */
const ROWS_MAX = 25;

export async function showService(options: ConsoleOptions, view: View): Promise<Shown> {
  const [stats, { next }] = await Promise.all([
    loadStatsDocument(options),
    listChecks.load(options, { query: { limit: String(ROWS_MAX) } }),
  ]);
  const canAsk = options.asking !== null;
  const content = html`<p class="lead">${summary(view, stats, canAsk)}</p>
<section><h2>Asked next</h2>${classes(stats)}${queue(view, next)}</section>
<section><h2>On schedule</h2><p class="soft">settled asks about each link now and then if it hears nothing.</p>${schedule(view, next)}</section>
<section><h2>Links that settled is opening</h2><p class="soft">${inOpening(stats)}</p>${openings(view, next)}</section>`;
  return partsOf(view, PATH, content, stats);
}

function summary(view: View, { api, checks }: StatsDocument, canAsk: boolean): HtmlValue {
  if (!canAsk)
    return 'No API is configured: settled learns of payments only from webhooks, and cannot ask the service.';
  const waiting = checks === 0 ? 'No link waits for a check' : `${count(checks, LINKS)} to ask about`;
  const pausedUntil = api.pausedUntil === null ? null : Date.parse(api.pausedUntil);
  if (pausedUntil !== null && pausedUntil > view.nowMs) {
    return html`settled asks the service nothing until ${time(view, pausedUntil)}. ${waiting}.`;
  }
  return `${waiting}; ${whole(api.slotsInUse)} of ${whole(api.slots)} requests a minute are in use.`;
}

const LINKS = { one: 'link', many: 'links' };

const CLASS_WORDS: Readonly<Record<string, string>> = {
  confirm: 'doubts about money',
  hint: 'something was heard of the link',
  janitor: 'new links, and the schedule',
};

/** How many checks wait, by the class of the API budget that they take. */
function classes({ checksByClass, checksLagSeconds }: StatsDocument): Html {
  const rows = Object.entries(checksByClass).map(([name, waiting]) => {
    return { name, waiting, lagMs: (checksLagSeconds[name] ?? 0) * 1000 };
  });
  return table({
    caption: 'Checks by what they are for',
    showsCaption: true,
    columns: [
      { head: 'What for', isText: true, cell: ({ name }) => CLASS_WORDS[name] ?? name },
      { head: 'Waiting', isNumber: true, cell: ({ waiting }) => whole(waiting) },
      {
        head: 'Overdue by',
        isNumber: true,
        cell: ({ lagMs }) => (lagMs < 1000 ? 'nothing is overdue' : duration(lagMs)),
      },
    ],
    rows,
    rowId: ({ name }) => `class-${name}`,
  });
}

function queue(view: View, { queue: rows }: NextRequestsDocument): Html {
  return table({
    caption: `The first ${ROWS_MAX} in turn`,
    showsCaption: true,
    columns: [
      { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
      { head: 'Why', isText: true, cell: ({ reason }) => words.asked(reason) },
      { head: 'What for', isText: true, cell: (check) => CLASS_WORDS[check.class] ?? check.class },
      { head: 'Requested', cell: ({ requestedAt }) => age(view, requestedAt) },
      { head: 'Asked', cell: ({ dueAt }) => when(view, dueAt) },
      { head: 'Failures', isNumber: true, cell: ({ failures }) => whole(failures) },
    ],
    rows,
    rowId: ({ reference }) => `check-${reference}`,
    empty: 'No check is requested.',
  });
}

function schedule(view: View, { schedule: rows }: NextRequestsDocument): Html {
  return table({
    caption: `The next ${ROWS_MAX}`,
    showsCaption: true,
    columns: [
      { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
      {
        head: 'Link',
        cell: ({ linkId }) =>
          linkId === null ? html`<span class="soft">not known yet</span>` : html`<code>${linkId}</code>`,
      },
      { head: 'Asked', cell: ({ dueAt }) => when(view, dueAt) },
      { head: 'Failures', isNumber: true, cell: ({ failures }) => whole(failures) },
    ],
    rows,
    rowId: ({ reference }) => `scheduled-${reference}`,
    empty: 'No link is on the schedule.',
  });
}

/** All of them: the table has the first. */
function inOpening({ openings: { pending = 0, leased = 0, taken = 0 } }: StatsDocument): string {
  return `${whole(pending + leased)}${taken > 0 ? `, and ${whole(taken)} wait for a person` : ''}`;
}

function openings(view: View, { openings: rows }: NextRequestsDocument): Html {
  return table({
    caption: 'Links that settled is opening',
    columns: [
      { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
      { head: 'Status', cell: ({ status }) => OPENING_BADGES[status] },
      { head: 'Attempts', isNumber: true, cell: ({ attempt }) => whole(attempt) },
      { head: 'Next attempt', cell: ({ status, dueAt }) => (status === 'pending' ? when(view, dueAt) : null) },
      {
        head: 'Why it waits',
        cell: ({ fault }) => (fault === null ? null : html`<code>${fault.code}</code> ${fault.message}`),
      },
    ],
    rows,
    rowId: ({ reference }) => `opening-${reference}`,
    empty: 'settled is opening no link.',
  });
}

const OPENING_BADGES = {
  pending: badge('waiting', 'wait'),
  leased: badge('in work', 'wait'),
  taken: badge('waits for a person', 'bad'),
} as const;

/** When settled asks at the earliest: what is due already waits for its turn. */
function when(view: View, dueAt: string): HtmlValue {
  return Date.parse(dueAt) < view.nowMs + 1000 ? 'now' : age(view, dueAt);
}

export async function showDrift(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const columns: Column<DriftDocument>[] = [
    { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
    { head: 'Found', cell: ({ at }) => age(view, at) },
    { head: 'settled knew', cell: ({ ours }) => prose(view, ours) },
    { head: 'The service said', cell: ({ theirs }) => prose(view, theirs) },
    { head: 'Right', cell: ({ rightSide }) => (rightSide === 'service' ? 'the service' : badge('undecided', 'bad')) },
    { head: 'Rule', isText: true, cell: ({ rule }) => words.rule(rule) },
    {
      head: 'Reading',
      cell: ({ reading, learnedBy }) =>
        html`${whole(reading)}, asked <span class="soft">${words.asked(learnedBy)}</span>`,
    },
  ];
  const stats = await loadStatsDocument(options);
  const { list, status } = await listPage({
    ...{ view, request, path: DRIFT },
    label: 'Filter differences',
    noun: { one: 'difference', many: 'differences' },
    load: (query) => listDrift.load(options, { query }),
    filters: [ORDER_FILTER],
    caption: 'Differences between the service and settled',
    columns,
    rows: ({ drift }) => drift,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No such difference.' : 'settled has found no differences so far.'),
  });
  const about = html`<p class="soft">Differences that settled found by asking: the service said more or less than its webhooks.</p>`;
  return { ...partsOf(view, DRIFT, html`${about}${list}`, stats), status };
}

/** What the service answered when settled asked. */
export async function showReadings(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const stats = await loadStatsDocument(options);
  const { list, status } = await listPage({
    ...{ view, request, path: READINGS },
    label: 'Filter readings',
    noun: { one: 'reading', many: 'readings' },
    load: (query) => listEvents.load(options, { query: { ...query, kind: 'reading', count: 'true' } }),
    filters: EVENT_FILTERS.filter(({ name }) => name !== 'type'),
    caption: 'Readings',
    columns: eventColumns(view, { ofReadings: true }),
    rows: ({ events }) => events,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No such reading.' : 'settled has asked the service about no link so far.'),
  });
  return { ...partsOf(view, READINGS, list, stats), status };
}

function partsOf(view: View, path: string, content: HtmlValue, { drift }: StatsDocument): PageParts {
  const pages = { Now: PATH, Readings: READINGS, Differences: DRIFT };
  const shown = tabs(view, { label: 'Service', pages, path, counts: { Differences: whole(drift) } });
  const body = html`<h1>Service</h1>${shown}${content}`;
  return { title: 'Service', here: '/service', body };
}
