import type { Request } from 'express';
import { listAttention, type MatterDocument } from '../api/attention.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { type HtmlValue, html } from '../http/app.ts';
import { bulkForm } from './bulk_page.ts';
import { actionForm, filterForm, pagination, problemPanel, table } from './components.ts';
import type { Shown } from './layout.ts';
import { orderLink } from './listing.ts';
import { nameOfMatter } from './overview.ts';
import { asked, choices, given, loaded } from './query.ts';
import { lasting, money, prose, stateBadge } from './values.ts';
import { type ConsoleOptions, mayDo, type View } from './view.ts';

const PATH = '/attention';
const TITLE = 'Needs attention';
const NAMES = ['kind', 'reason', 'state', 'cursor'] as const;

/** The matters and the held orders, row by row: what a line of the overview leads to. */
export async function showMatters(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { cursor, ...query } = given(request, NAMES);
  const { document, refused } = await loaded(listAttention.load(options, { query: asked({ ...query, cursor }) }));
  const fault = (name: string) => refused?.faultOf(name) ?? null;
  const filters = filterForm(view, {
    path: PATH,
    label: 'Filter the list',
    filters: [
      { name: 'kind', label: 'Kind', value: query.kind, options: choices(MATTER_KINDS), problem: fault('kind') },
      {
        name: 'reason',
        label: 'Reason of a hold',
        value: query.reason,
        options: choices(HOLD_REASONS),
        problem: fault('reason'),
      },
      {
        name: 'state',
        label: 'State of the order',
        value: query.state,
        options: choices(ORDER_STATES),
        problem: fault('state'),
      },
    ],
  });
  if (document === null) {
    const { status, detail } = refused;
    return {
      title: TITLE,
      here: '/',
      status,
      body: html`<h1>${TITLE}</h1>${filters}${problemPanel({ title: 'settled cannot show this list', detail })}`,
    };
  }
  const { summary, groups, attention, nextCursor } = document;
  const [group] = groups;
  const body = html`<h1>${TITLE}</h1>
<p class="lead">${prose(view, summary.sentence)}</p>
${groups.length === 1 && group !== undefined ? html`<p>${nameOfMatter(group)}: ${group.meaning}.</p>` : null}
${filters}
${canEndAll(query) ? bulkForm(view, { action: 'end_attention', filter: { kind: query.kind } }) : null}
${table({
  caption: TITLE,
  hidesCaption: true,
  columns: [
    { head: 'Matter', cell: (matter: MatterDocument) => nameOfMatter(matter) },
    {
      head: 'Order',
      cell: ({ reference, order }) =>
        reference === null
          ? null
          : html`${orderLink(view, reference)} ${order === null ? null : stateBadge(order.state)}`,
    },
    {
      head: 'Asked',
      isNumber: true,
      cell: ({ order }) => (order === null ? null : money(view, order.amount, order.currency)),
    },
    { head: 'Waiting', isNumber: true, cell: ({ openedAt }) => lasting(view, Date.parse(openedAt)) },
    { head: 'What happened, and what to do', cell: (matter) => aboutMatter(view, matter) },
  ],
  rows: attention,
  rowId: ({ id, kind, subject }) => `${kind}-${id ?? subject}`,
  empty: summary.sentence,
})}
${pagination(view, { path: PATH, query, cursor: cursor === '' ? null : cursor, next: nextCursor })}`;
  return { title: TITLE, here: '/', body };
}

/** Matters are ended by kind; a hold ends when it is decided. */
function canEndAll({ kind, reason, state }: { kind: string; reason: string; state: string }): boolean {
  return kind !== '' && kind !== 'hold' && reason === '' && state === '';
}

function aboutMatter(view: View, { id, kind, detail, reference }: MatterDocument): HtmlValue {
  const said = prose(view, detail, reference ?? '');
  return id === null || kind === 'hold' || !mayDo(view, 'operator') ? said : html`${said} ${endMatterForm(view, id)}`;
}

/** Says that a matter is over. */
export function endMatterForm(view: View, id: string): HtmlValue {
  return actionForm(view, {
    id: `end-${id}`,
    action: `/v1/attention/${id}/end`,
    summary: 'End this matter',
    preview:
      'settled no longer lists it. The order and its money stay as they are. If the cause comes again, settled raises the matter again.',
    button: 'End it',
    reason: 'required',
  });
}
