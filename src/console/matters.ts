import type { Request } from 'express';
import { listAttention, type MatterDocument } from '../api/attention.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { type HtmlValue, html } from '../http/app.ts';
import { bulkForm } from './bulk_page.ts';
import { actionForm, type Column } from './components.ts';
import type { Shown } from './layout.ts';
import { choices, listPage, orderLink, type Typed } from './listing.ts';
import { nameOfMatter } from './overview.ts';
import { lasting, money, prose, stateBadge } from './values.ts';
import { type ConsoleOptions, mayDo, type View } from './view.ts';

const PATH = '/attention';
const TITLE = 'Needs attention';

/** The matters and the held orders, row by row: what a line of the overview leads to. */
export async function showMatters(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { list, document, status } = await listPage({
    ...{ view, request, path: PATH },
    label: 'Filter the list',
    noun: { one: 'matter', many: 'matters' },
    load: (query) => listAttention.load(options, { query }),
    filters: [
      { name: 'kind', label: 'Kind', options: choices(MATTER_KINDS) },
      { name: 'reason', label: 'Reason of a hold', options: choices(HOLD_REASONS) },
      { name: 'state', label: 'State of the order', options: choices(ORDER_STATES) },
    ],
    above: (asked) => (canEndAll(asked) ? bulkForm(view, { action: 'end_attention', filter: asked }) : null),
    caption: TITLE,
    columns: columns(view),
    rows: ({ attention }) => attention,
    rowId: ({ id, kind, subject }) => `${kind}-${id ?? subject}`,
    nothing: (_isFiltered, { summary }) => summary.sentence,
  });
  const [group, ...others] = document?.groups ?? [];
  const body = html`<h1>${TITLE}</h1>
${document === null ? null : html`<p class="lead">${prose(view, document.summary.sentence)}</p>`}
${group === undefined || others.length > 0 ? null : html`<p>${nameOfMatter(group)}: ${group.meaning}.</p>`}
${list}`;
  return { title: TITLE, here: '/', body, status };
}

function columns(view: View): Column<MatterDocument>[] {
  return [
    { head: 'Matter', cell: (matter) => nameOfMatter(matter) },
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
    { head: 'Waiting', isNumber: true, cell: ({ openedAt }) => lasting(view, openedAt) },
    { head: 'What happened, and what to do', cell: (matter) => aboutMatter(view, matter) },
  ];
}

/** Matters are ended by kind; a hold ends when it is decided. */
function canEndAll({ kind, reason, state }: Typed): boolean {
  return kind !== undefined && kind !== 'hold' && reason === undefined && state === undefined;
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
