import { duration } from '../config/parsers.ts';
import { NOTICE_TYPES, OUTCOMES } from '../domain/decision.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { KEPT_REASONS } from '../domain/rejection.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { systemClock } from '../work/clock.ts';
import type { Query } from './connection.ts';
import { UsageError } from './exit.ts';

/** Options by which commands narrow lists, and how they become the filters of the API. */

/** Options of every command that lists. */
export const PAGE_OPTIONS = {
  limit: { value: 'N', about: 'show at most N, the newest first (50)' },
  all: { about: 'show all' },
} as const;

/** Options of the commands whose list can be counted. */
export const LIST_OPTIONS = { ...PAGE_OPTIONS, count: { about: 'also say how many there are' } } as const;

export const SINCE = {
  value: 'TIME',
  about: 'only those since then: how long ago, like 90m, 2h or 3d, or a time like 2030-01-31T12:00:00Z',
} as const;
export const UNTIL = { value: 'TIME', about: 'only those until then' } as const;

export const ORDER_OPTIONS = {
  q: {
    value: 'TEXT',
    about:
      'search: a reference or its beginning; words of the reference, the title or the customer, or their beginnings; the id or address of a link; the id of a payment, event or notice; the ' +
      'number of an event; the beginning of a customer\'s e-mail or of a word of the name; or an amount, like 150,00 or "BRL 150"',
  },
  state: { value: 'STATE', choices: ORDER_STATES, about: 'only orders in this state' },
  flag: { value: 'FLAG', choices: FLAGS, about: 'only orders with this flag' },
  overpaid: { value: 'true', choices: ['true'], about: 'only orders that have more money than they ask for' },
  attention: { value: 'KIND', choices: MATTER_KINDS, about: 'only orders with an open matter of this kind' },
  hold: { value: 'REASON', choices: HOLD_REASONS, about: 'only orders with an open hold for this reason' },
  since: {
    value: 'TIME',
    about: 'only orders created since then: how long ago, like 90m, 2h or 3d, or 2030-01-31T12:00:00Z',
  },
  until: { value: 'TIME', about: 'only orders created until then' },
  'paid-since': { value: 'TIME', about: 'only orders paid since then' },
  'paid-until': { value: 'TIME', about: 'only orders paid until then' },
  'amount-from': { value: 'AMOUNT', about: 'only orders of this amount or more, like 100.50' },
  'amount-to': { value: 'AMOUNT', about: 'only orders of this amount or less' },
  currency: { value: 'CODE', about: 'only orders in this currency; SETTLED_CURRENCY if an amount is given without it' },
} as const;

const WITH_STATUS = (what: 'events' | 'notices') =>
  ({
    status: { value: 'STATUS', choices: ROW_STATUSES, about: `only ${what} with this status` },
    order: { value: 'REFERENCE', about: `only ${what} of this order` },
    since: SINCE,
    until: UNTIL,
  }) as const;

export const EVENT_OPTIONS = {
  ...WITH_STATUS('events'),
  type: { value: 'TYPE', about: 'only events of this type, as the service names it' },
  outcome: { value: 'OUTCOME', choices: OUTCOMES, about: 'only events with this outcome' },
} as const;

export const NOTICE_OPTIONS = {
  ...WITH_STATUS('notices'),
  type: { value: 'TYPE', choices: NOTICE_TYPES, about: 'only notices of this type' },
} as const;

export const REJECTION_OPTIONS = {
  order: { value: 'REFERENCE', about: 'only those of this order' },
  reason: { value: 'REASON', choices: KEPT_REASONS, about: 'only those for this reason' },
} as const;

export type ListOptions = { readonly [option: string]: string | true | undefined; limit?: string; all?: true };

/** The filters among the options, as the API takes them. */
export function queryOf({ limit, all, order, ...filters }: ListOptions): Query {
  const given = Object.entries({ reference: order, ...filters }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [inApi(name), inQuery(name, value as string | true)]));
}

/** `paid-since` is `paidSince`. */
function inApi(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function inQuery(option: string, value: string | true): string {
  if (value === true) return 'true';
  return /(^|-)(since|until)$/.test(option) ? timeOf(option, value) : value;
}

const LENGTH = duration('1m', '3650d');
/** With its offset: the time zone of this machine says nothing about where a person read the time. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

function timeOf(option: string, given: string): string {
  try {
    const atMs = ISO_TIME.test(given) ? Date.parse(given) : systemClock.nowMs() - LENGTH(given);
    return new Date(atMs).toISOString();
  } catch {
    throw new UsageError(
      `--${option} is "${given}". Write how long ago in minutes, hours or days, like 90m, 2h or 3d, or a time with its ` +
        'offset, like 2030-01-31T12:00:00Z.',
    );
  }
}
