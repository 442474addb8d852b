import type { Request } from 'express';
import { type GroupDocument, listAttention } from '../api/attention.ts';
import { doctor } from '../api/doctor.ts';
import type { Finding } from '../api/doctor_store.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Column, definitions, link, table } from './components.ts';
import { loadFlow, showFlow } from './flow.ts';
import type { PageParts } from './layout.ts';
import { badge, clockTime, lasting, money, prose, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, type View } from './view.ts';

/** Answers one question: is any money in a wrong state, and why? */
export async function showOverview(options: ConsoleOptions, view: View, _request: Request): Promise<PageParts> {
  const [{ summary, groups }, { checks }, flow] = await Promise.all([
    listAttention.load(options, { query: { limit: '1' } }),
    doctor.load(options, { query: { probe: 'false' } }),
    loadFlow(options, view),
  ]);
  const body = html`<h1 class="unseen">Overview</h1>
<p class="lead">${prose(view, summary.sentence)} <span class="soft">As of ${clockTime(view, view.nowMs)}.</span></p>
${queue(view, groups)}
${whatIsNotKnown(view, checks)}
${showFlow(view, flow, checks)}`;
  return { title: 'Overview', here: '/', body };
}

/** If there are more groups than this, their meanings are folded below, so that all groups fit on the first screen. */
const EXPLAINED_MAX = 10;

type Sum = GroupDocument['sums'][number];

/** The matters by kind: money on one side, everything else on the other. */
function queue(view: View, groups: readonly GroupDocument[]): Html | null {
  if (groups.length === 0) return null;
  const isShort = groups.length > EXPLAINED_MAX;
  const isOfMoney = ({ concern }: GroupDocument) => concern === 'money';
  const sides = { Money: groups.filter(isOfMoney), 'Everything else': groups.filter((group) => !isOfMoney(group)) };
  const shown = Object.entries(sides).filter(([, side]) => side.length > 0);
  const tables = shown.map(([title, side]) => matterTable(view, title, side, isShort));
  return html`<section class="queue${isShort ? ' short' : ''}${tables.length > 1 ? ' two' : ''}" id="queue" aria-label="Needs attention">${tables}</section>${isShort ? meanings(groups) : null}`;
}

function meanings(groups: readonly GroupDocument[]): Html {
  return html`<details id="meanings"><summary>What each kind means</summary>
${definitions(groups.map((group) => [nameOfMatter(group), group.meaning]))}</details>`;
}

function matterTable(view: View, title: string, rows: readonly GroupDocument[], isShort: boolean): Html {
  const balance: Column<GroupDocument> = { head: 'Balance', isNumber: true, cell: ({ sums }) => sumsOf(view, sums) };
  return table<GroupDocument>({
    caption: title,
    columns: [
      { head: title, cell: (group) => matterCell(view, group, isShort) },
      ...(rows.some(({ sums }) => sums.length > 0) ? [balance] : []),
      { head: 'Count', isNumber: true, cell: ({ count }) => whole(count) },
      { head: 'Oldest', isNumber: true, cell: ({ oldestAt }) => lasting(view, oldestAt) },
    ],
    rows,
    rowId: ({ kind, reason }) => `${kind}-${reason ?? 'any'}`,
  });
}

function matterCell(view: View, group: GroupDocument, isShort: boolean): Html {
  const { kind, reason, meaning } = group;
  const name = link(view, '/attention', nameOfMatter(group), { kind, reason });
  return isShort ? name : html`${name}<br><span class="soft">${meaning}</span>`;
}

/** A kind of matter, and for holds the reason. */
export function nameOfMatter({ kind, reason }: Pick<GroupDocument, 'kind' | 'reason'>): string {
  const words = kind.replaceAll('_', ' ');
  return reason === null ? words : `${words}: ${reason.replaceAll('_', ' ')}`;
}

/** The balance of the orders: what was captured, less what went back. */
function sumsOf(view: View, sums: readonly Sum[]): HtmlValue {
  const balances = sums.filter(({ balance }) => balance === null || Number(balance) !== 0);
  const shown = [
    ...balances.map(({ balance, currency }) => (balance === null ? 'not readable' : money(view, balance, currency))),
    ...sums
      .filter(({ reported }) => Number(reported) !== 0)
      .map(({ reported, currency }) => html`${money(view, reported, currency)} reported`),
  ];
  if (shown.length > 0) return shown.map((one, at) => html`${at === 0 ? null : ' + '}${one}`);
  return sums.length === 0 ? html`<span class="soft">–</span>` : html`<span class="soft">none</span>`;
}

/** Checks about what settled cannot know or do now. Checks about matters are missing: the queue above shows them. */
const ABOUT_KNOWING: ReadonlySet<string> = new Set([
  'ready',
  'clock steps',
  'clock',
  'database',
  'database clock',
  'servers',
  'replicas',
  'settings',
  'leases',
  'disk',
  'other addresses',
  'service',
  'asking',
  'secrets',
  'restore',
]);

function whatIsNotKnown(view: View, checks: readonly Finding[]): Html {
  const wrong = checks.filter(({ name, status }) => ABOUT_KNOWING.has(name) && status !== 'ok');
  const all = html`<a href="${hrefOf(view, '/system/doctor')}">All checks</a>`;
  if (wrong.length === 0) {
    return html`<section id="unknown"><h2>What settled cannot know now</h2><p>Nothing: settled can read its store, ask the service and trust its clock. ${all}</p></section>`;
  }
  return html`<section id="unknown"><h2>What settled cannot know now</h2><ul class="findings">${wrong.map(
    ({ name, status, detail }) =>
      html`<li>${badge(status, status === 'failing' ? 'bad' : 'wait')} <strong>${name}</strong>: ${prose(view, detail)}</li>`,
  )}</ul><p>${all}</p></section>`;
}
