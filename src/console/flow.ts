import { loadStatsDocument, type StatsDocument } from '../api/admin.ts';
import type { Finding } from '../api/doctor_store.ts';
import { listEvents } from '../api/events.ts';
import type { CountDocument } from '../api/lists.ts';
import { listNotices } from '../api/notices.ts';
import { listOrders } from '../api/orders.ts';
import { iso } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { dayOf, momentOf } from '../work/zone.ts';
import { definitions, link, table } from './components.ts';
import { countOf, duration, prose, whole } from './values.ts';
import type { ConsoleOptions, View } from './view.ts';

/** How much was delivered, settled and told to the shop today, and what waits. */
export type Flow = {
  stats: StatsDocument;
  /** The day in the zone of the pages. */
  today: string;
  received: CountDocument;
  paid: CountDocument;
  told: CountDocument;
  /** How settled learned of the orders that were paid today, of the newest `PAID_READ_MAX`. */
  learned: { webhook: number; reconciliation: number; person: number };
  isPaidWhole: boolean;
};

/** The number of orders paid today that are read to say how settled learned of them. */
const PAID_READ_MAX = 50;

export async function loadFlow(options: ConsoleOptions, { nowMs, zone }: View): Promise<Flow> {
  const today = dayOf(zone, nowMs);
  const since = iso(momentOf(zone, today) ?? nowMs);
  const counted = { count: 'true', limit: '1' };
  const [stats, events, orders, notices] = await Promise.all([
    loadStatsDocument(options),
    listEvents.load(options, { query: { ...counted, since } }),
    listOrders.load(options, { query: { count: 'true', limit: String(PAID_READ_MAX), paidSince: since } }),
    listNotices.load(options, { query: { ...counted, since } }),
  ]);
  const none = { n: 0, isMore: false };
  const by = (how: keyof Flow['learned']) => orders.orders.filter(({ learnedBy }) => learnedBy === how).length;
  return {
    stats,
    today,
    received: events.count ?? none,
    paid: orders.count ?? none,
    told: notices.count ?? none,
    learned: { webhook: by('webhook'), reconciliation: by('reconciliation'), person: by('person') },
    isPaidWhole: orders.nextCursor === null,
  };
}

/** `today`, `waiting` and `dead` of one part of the way from the service to the shop. */
type Part = { name: string; today: HtmlValue; waiting: HtmlValue; dead: HtmlValue };

export function showFlow(view: View, flow: Flow, checks: readonly Finding[]): Html {
  const { stats, learned, isPaidWhole, paid } = flow;
  const detailOf = (name: string) => {
    const found = checks.find((check) => check.name === name);
    return found === undefined ? null : prose(view, found.detail);
  };
  const ways = `${whole(learned.webhook)} by webhook, ${whole(learned.reconciliation)} by asking, ${whole(learned.person)} by a person`;
  const states = Object.entries(stats.orders).filter(([, n]) => n > 0);
  return html`<section id="flow"><h2>Flow</h2>
${table<Part>({
  caption: 'Flow',
  columns: [
    { head: 'What', cell: ({ name }) => name },
    { head: 'Today', isNumber: true, cell: ({ today }) => today },
    { head: 'Waiting now', isNumber: true, cell: ({ waiting }) => waiting },
    { head: 'Dead', isNumber: true, cell: ({ dead }) => dead },
  ],
  rows: partsOf(view, flow),
  rowId: ({ name }) => name,
})}
${definitions([
  ['Learned', paid.n === 0 ? null : `${isPaidWhole ? '' : `of the newest ${PAID_READ_MAX} paid today: `}${ways}`],
  ['To ask the service', detailOf('asking')],
  ['API budget', detailOf('api budget')],
  [
    'Orders',
    states.length === 0
      ? null
      : html`${states.map(([state, n], at) => html`${at === 0 ? null : ', '}${link(view, '/orders', `${whole(n)} ${state.replaceAll('_', ' ')}`, { state })}`)}`,
  ],
])}</section>`;
}

function partsOf(view: View, { stats, today, received, paid, told }: Flow): Part[] {
  const { events, notices, lagSeconds, noticesLagSeconds } = stats;
  const dead = (path: string, counts: StatsDocument['events']) =>
    link(view, path, whole(counts.dead ?? 0), { status: 'dead' });
  return [
    {
      name: 'Events and answers received',
      today: link(view, '/deliveries', countOf(received), { since: today }),
      waiting: waitingOf(events, lagSeconds),
      dead: dead('/deliveries', events),
    },
    {
      name: 'Orders paid',
      today: link(view, '/orders', countOf(paid), { paidSince: today }),
      waiting: null,
      dead: null,
    },
    {
      name: noticesLagSeconds === null ? 'Notices written to the feed' : 'Notices for the shop',
      today: link(view, '/shop', countOf(told), { since: today }),
      waiting: noticesLagSeconds === null ? null : waitingOf(notices, noticesLagSeconds),
      dead: dead('/shop', notices),
    },
  ];
}

/** How many wait, and how late the oldest is. */
function waitingOf(counts: StatsDocument['events'], lagSeconds: number): string {
  const late = lagSeconds < 1 ? '' : `, the oldest for ${duration(lagSeconds * 1000)}`;
  return `${whole((counts.pending ?? 0) + (counts.leased ?? 0))}${late}`;
}
