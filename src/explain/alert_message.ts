import { compareKinds, concernOf } from '../domain/matter.ts';
import { inDecimals, type MatterGroup, type OrderSum } from '../domain/matter_money.ts';
import { formatAmount, inMoney } from '../domain/money.ts';
import type { AlertEntry, PaidSum } from '../store/verbs/alerts.ts';
import type { Matters } from '../store/verbs/attention_list.ts';
import { inWords } from '../work/clock.ts';
import { matterWords } from './attention_sentences.ts';
import { summarizeAttention } from './attention_summary.ts';
import { capital, inNumber, iso, sumsInWords, total, words } from './glossary.ts';

/**
 * What a message to people says, in the words of the console: what opened and what is over, what still waits, or the
 * figures of a day. It repeats nothing that the service, the shop or a sender said.
 */

export type AlertMessage = {
  type: 'matters' | 'reminder' | 'digest' | 'test';
  /** One line: the subject of a mail. */
  title: string;
  /** Most urgent first. */
  lines: readonly { words: string; link: string | null }[];
  /** What stands at the end, however many lines there are. */
  end: { words: string; link: string | null };
  /** For programs. */
  data: object;
};

export type AlertReader = {
  /** Where people open the console; null if only on this machine. */
  consoleUrl: string | null;
  /** The word that stands beside settled's name; null for none. */
  badge: string | null;
  /** Whether the message may name customers. */
  showsCustomers: boolean;
  /** What is wrong now and is no matter. */
  unlisted: readonly string[];
  nowMs: number;
};

type Waiting = Pick<Matters, 'groups' | 'money'>;

/** What opened and what is over. A matter that did both is named once. */
export function mattersMessage(entries: readonly AlertEntry[], waiting: Waiting, reader: AlertReader): AlertMessage {
  const told = joined(entries).toSorted((one, other) => compareKinds(one.kind, other.kind));
  const count = (what: Told['what']) => told.filter((one) => one.what === what).length;
  const money = told.filter(({ what, kind }) => what !== 'over' && concernOf(kind) === 'money').length;
  const [opened, over, both] = [count('opened'), count('over'), count('opened_and_over')];
  const about = money > 0 ? ` (${money} about money)` : '';
  const said = [
    ...(opened + both > 0 ? [`${inNumber(opened + both, 'matter')} opened${about}`] : []),
    ...(both > 0 ? [`${both} of them over already`] : []),
    ...(over > 0 ? [`${over} over`] : []),
  ];
  return {
    type: 'matters',
    title: titled(reader, said.join(', ')),
    lines: told.map((one) => ({ words: toldWords(one, reader), link: linkOf(reader, one.reference) })),
    end: endOf(waiting, reader),
    data: { matters: told.map((one) => document(one, reader)), waiting: total(waiting.groups) },
  };
}

/** That something still waits, by kind. */
export function reminderMessage(waiting: Waiting, reader: AlertReader): AlertMessage {
  const { groups } = waiting;
  const lines = groups.map((group) => ({ words: groupWords(group, reader.nowMs), link: null }));
  const title = `still waiting: ${inNumber(total(groups), 'matter')}`;
  const data = { waiting: total(groups) };
  return { type: 'reminder', title: titled(reader, title), lines, end: endOf(waiting, reader), data };
}

/** The figures of the time since the last digest. `period` names it for people; `canTell`: whether the shop has a callback. */
export function digestMessage(
  paid: readonly PaidSum[],
  waiting: Waiting,
  { period, canTell, ...reader }: AlertReader & { period: string; canTell: boolean },
): AlertMessage {
  const { groups } = waiting;
  const orders = paid.reduce((sum, one) => sum + one.orders, 0);
  const told = paid.reduce((sum, one) => sum + one.told, 0);
  const held = groups.filter(({ kind }) => kind === 'hold');
  const owed = groups.filter(({ kind }) => kind === 'refund_due');
  const twice = groups.filter(({ kind }) => kind === 'duplicate_payment');
  const asked = paid.map(({ currency, amountMinor }) => ({ currency, asked: formatAmount({ amountMinor, currency }) }));
  const figures = {
    Paid:
      orders === 0
        ? 'no order'
        : `${inNumber(orders, 'order')}, asking for ${paid.map((one) => inMoney(one)).join(' and ')}`,
    Told: canTell ? `the shop took the news of ${told} of them` : 'the shop reads the feed',
    Held: inOrders(held),
    'Owed back': inOrders(owed),
    'Paid more than once': inOrders(twice),
  };
  return {
    type: 'digest',
    title: titled(reader, `figures ${period}`),
    lines: Object.entries(figures).map(([name, value]) => ({ words: `${name}: ${value}`, link: null })),
    end: endOf(waiting, reader),
    data: {
      paid: { orders, sums: asked },
      told: canTell ? told : null,
      held: { orders: total(held), sums: sumsOf(held).map(inDecimals) },
      owedBack: { orders: total(owed), sums: sumsOf(owed).map(inDecimals) },
      paidMoreThanOnce: { orders: total(twice), sums: sumsOf(twice).map(inDecimals) },
      waiting: total(groups),
    },
  };
}

/** What `settled alert --test` sends. */
export function testMessage(reader: AlertReader): AlertMessage {
  const words = 'A person tests whether settled reaches you here. There is nothing to do.';
  const lines = [{ words, link: null }];
  const end = { words: 'When a matter needs a person, a message like this one says so.', link: linkOf(reader, null) };
  return { type: 'test', title: titled(reader, 'a test'), lines, end, data: {} };
}

/** A matter that opened, that is over, or both since the last message. */
type Told = Omit<AlertEntry, 'key' | 'what' | 'atMs'> & {
  what: 'opened' | 'over' | 'opened_and_over';
  openedAtMs: number | null;
  overAtMs: number | null;
};

/** Each opening with the end that follows it. `entries` are in their order. */
function joined(entries: readonly AlertEntry[]): Told[] {
  const told: Told[] = [];
  const open = new Map<string, Told>();
  for (const { key: _, what, atMs, ...about } of entries) {
    const matter = about.id === null ? `order ${about.orderKey}` : `matter ${about.id}`;
    const before = open.get(matter);
    if (what === 'over' && before !== undefined) {
      Object.assign(before, { what: 'opened_and_over', overAtMs: atMs });
      open.delete(matter);
      continue;
    }
    const one: Told = {
      ...about,
      what,
      openedAtMs: what === 'opened' ? atMs : about.openedAtMs,
      overAtMs: what === 'over' ? atMs : null,
    };
    told.push(one);
    if (what === 'opened') open.set(matter, one);
  }
  return told;
}

function toldWords({ what, kind, reason, openedAtMs, overAtMs, ...of }: Told, { showsCustomers }: AlertReader): string {
  const why = reason === null ? '' : ` (${words.holdReason(reason)})`;
  const lasted =
    openedAtMs === null || overAtMs === null ? '' : ` after ${inWords(wholeSeconds(overAtMs - openedAtMs))}`;
  const meaning = `${matterWords(kind)}${why}`;
  const customer = [of.customerName, of.customerEmail].filter((one) => one !== null).join(', ');
  const whose = showsCustomers && customer !== '' ? ` of ${customer}` : '';
  const money = of.sums.length === 0 ? '' : `, ${moneyWords(of.sums)}`;
  const about = of.reference === null ? '' : `order ${of.reference}${whose}${money}`;
  if (what === 'opened') return `${capital(about === '' ? meaning : `${about}: ${meaning}`)}.`;
  const over = what === 'over' ? `Over${lasted}` : `Opened, and over${lasted}`;
  return `${over}${about === '' ? '' : `: ${about}`}. It was: ${meaning}.`;
}

function groupWords({ kind, reason, count, oldestAtMs, sums }: MatterGroup, nowMs: number): string {
  const why = reason === null ? '' : ` (${words.holdReason(reason)})`;
  const money = sums.length === 0 ? '' : `, ${moneyWords(sums)}`;
  return `${inNumber(count, 'matter')}${money}, the oldest for ${inWords(wholeSeconds(nowMs - oldestAtMs))}: ${matterWords(kind)}${why}.`;
}

function wholeSeconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000) * 1000);
}

/** What was captured less what went back, as in the summary, and what the orders ask for. */
function moneyWords(sums: readonly OrderSum[]): string {
  const [balance, asked] = [sumsInWords(sums, 'balance'), sumsInWords(sums, 'asked')];
  const unread = sums.some((sum) => sum.balance === null) ? 'balance not readable' : '';
  return [balance && `balance ${balance}`, balance === '' && unread, asked && `asked ${asked}`]
    .filter(Boolean)
    .join(', ');
}

/** A sum for each currency. */
function sumsOf(groups: readonly MatterGroup[]): OrderSum[] {
  const all = groups.flatMap(({ sums }) => sums);
  return [...Map.groupBy(all, ({ currency }) => currency)].map(([currency, own]) => {
    const balance = own.reduce((sum, one) => sum + (one.balance ?? 0n), 0n);
    const isUnread = balance === 0n && own.some((one) => one.balance === null);
    return { currency, asked: own.reduce((sum, { asked }) => sum + asked, 0n), balance: isUnread ? null : balance };
  });
}

function inOrders(groups: readonly MatterGroup[]): string {
  return groups.length === 0 ? 'nothing' : `${inNumber(total(groups), 'order')}, ${moneyWords(sumsOf(groups))}`;
}

function document({ orderKey: _, customerName, customerEmail, ...one }: Told, reader: AlertReader): object {
  const { openedAtMs, overAtMs, sums, ...matter } = one;
  return {
    ...matter,
    sums: sums.map(inDecimals),
    meaning: matterWords(one.kind),
    ...(reader.showsCustomers ? { customer: { name: customerName, email: customerEmail } } : {}),
    openedAt: openedAtMs === null ? null : iso(openedAtMs),
    overAt: overAtMs === null ? null : iso(overAtMs),
    url: linkOf(reader, one.reference),
  };
}

function titled({ badge }: AlertReader, said: string): string {
  return `settled${badge === null ? '' : ` (${badge})`}: ${said}`;
}

/** The page of an order, or the list of what needs attention. */
function linkOf({ consoleUrl }: Pick<AlertReader, 'consoleUrl'>, reference: string | null): string | null {
  if (consoleUrl === null) return null;
  return reference === null ? `${consoleUrl}/attention` : `${consoleUrl}/orders/${encodeURIComponent(reference)}`;
}

function endOf(waiting: Waiting, reader: AlertReader): AlertMessage['end'] {
  const { nowMs, unlisted, consoleUrl } = reader;
  const sum = summarizeAttention(waiting, { nowMs, isFiltered: false, unlisted });
  const see = consoleUrl === null && waiting.groups.length > 0 ? ' To see what to do: settled attention' : '';
  return { words: `${sum}${see}`, link: linkOf(reader, null) };
}
