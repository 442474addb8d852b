import type { Finding } from '../api/doctor_store.ts';
import { slotsFor } from '../domain/budget.ts';
import { ORDER_STATES, type OrderState } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { inNumber, iso } from '../explain/glossary.ts';
import type { Drilled, Standing } from '../store/sqlite/drill.ts';
import { inWords } from '../work/clock.ts';
import type { Report } from './command.ts';
import { checkLines, exitOfChecks } from './doctor.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { type Block, inBytes } from './output.ts';
import { table } from './table.ts';

/** What a drill found, in words. */

export type DrilledWithKeys = Drilled & {
  /** Of the backup's files. */
  bytes: number;
  /** The ids of the keys that are there, the current one first. */
  keysKnown: readonly string[];
};

/** The living store; `why` there is nothing to compare with. */
export type Living = { place: string } & ({ standing: Standing; why: null } | { standing: null; why: string });

export type DrillFound = {
  backup: string;
  drilled: DrilledWithKeys;
  living: Living;
  /** Whether the service's API is configured, and how many requests a minute settled may send. */
  hasApi: boolean;
  slots: number;
  nowMs: number;
};

/** What a person reads, and what a program. */
export function drillReport(found: DrillFound): Report {
  const { backup, drilled, living, nowMs } = found;
  const checks = checksOf(found);
  const isFit = checks.every(({ status }) => status !== 'failing');
  const lost =
    living.standing === null || !isOfSameStore(found) ? null : lostBetween(drilled.standing, living.standing);
  const asking = askingOf(found);
  const age = inWords(Math.max(0, nowMs - drilled.copiedAtMs));
  const from = `It is a copy of ${iso(drilled.copiedAtMs)}, ${age} old.`;
  const data = {
    backup,
    fit: isFit,
    copiedAt: iso(drilled.copiedAtMs),
    ageSeconds: Math.max(0, nowMs - drilled.copiedAtMs) / 1000,
    checks,
    copy: shown(drilled.standing),
    living: living.standing === null ? null : shown(living.standing),
    lost,
    asking,
  };
  const verdict = isFit ? `${backup} can be put to use.` : `${backup} cannot be put to use as it is.`;
  const lines = [
    `${verdict} ${from}`,
    '',
    ...checkLines(checks),
    '',
    ...comparison(found, lost),
    '',
    ...(lost === null ? ['What happened since that time would be lost.'] : lossLines(lost, age)),
    ...asking.lines,
  ];
  return { data: { ...data, asking: { links: asking.links, seconds: asking.seconds } }, lines, exit: exitOf(checks) };
}

function exitOf(checks: readonly Finding[]): ExitCode {
  const hasNoKey = checks.some(({ name, status }) => name === KEY && status === 'failing');
  return hasNoKey ? EXIT.configuration : exitOfChecks(checks);
}

const KEY = 'secrets key';

function checksOf(found: DrillFound): Finding[] {
  const { drilled } = found;
  const { bytes, migrated, saysThatItIsACopy } = drilled;
  const schema = migrated.length === 0 ? 'the newest' : `a restore brings it forward: ${migrated.join(', ')}`;
  const origin = saysThatItIsACopy
    ? 'settled wrote it: a start knows that it is a copy'
    : 'it does not say that it is a copy: after the restore, and before the start, run `settled migrate --restored`';
  return [
    ok('file', `${inBytes(bytes)}; every page and every index is whole`),
    ok('schema', schema),
    saysThatItIsACopy ? ok('origin', origin) : { name: 'origin', status: 'warning', detail: origin },
    checkKey(drilled),
    checkLinks(drilled),
    checkStore(found),
  ];
}

function ok(name: string, detail: string): Finding {
  return { name, status: 'ok', detail };
}

function checkKey({ keysNeeded, keysKnown }: DrilledWithKeys): Finding {
  const missing = keysNeeded.filter((id) => !keysKnown.includes(id));
  if (missing.length === 0 && keysKnown.length > 0) return ok(KEY, `it is there: ${keysNeeded.join(', ')}`);
  const there = keysKnown.length === 0 ? 'there is none' : `there is only ${keysKnown.join(', ')}`;
  const detail =
    `its secrets are encrypted under the key ${keysNeeded.join(' and ')}, and ${there}: settled would refuse to start. Look for ` +
    "the key's file where you keep it apart from the backups, and drill again with it: see Keys in docs/operations.md";
  return { name: KEY, status: 'failing', detail };
}

function checkLinks({ links, keysKnown }: DrilledWithKeys): Finding {
  const name = 'links';
  if (links.unopenable === 0) return ok(name, `${inNumber(links.all, 'link')}; every signing secret can be opened`);
  const detail =
    `the signing secrets of ${links.unopenable} of ${inNumber(links.all, 'link')} cannot be opened` +
    (keysKnown.length === 0
      ? ''
      : ': settled would answer their deliveries with 503, and learn of their payments by asking');
  return { name, status: 'failing', detail };
}

function isOfSameStore({ drilled, living }: DrillFound): boolean {
  const [own, other] = [drilled.standing.instanceId, living.standing?.instanceId];
  return other === null || other === own;
}

function checkStore(found: DrillFound): Finding {
  const { drilled, living } = found;
  const name = 'store';
  if (living.standing === null) {
    return { name, status: 'warning', detail: `there is nothing to compare with: ${living.why}` };
  }
  if (!isOfSameStore(found)) {
    const detail =
      `it is a copy of another store than ${living.place}: ${drilled.standing.instanceId}, not ` +
      `${living.standing.instanceId}. With it you would have the orders of another shop`;
    return { name, status: 'failing', detail };
  }
  const lost = lostBetween(drilled.standing, living.standing);
  if (COUNTED.every((what) => lost[what] >= 0)) return ok(name, `compared with ${living.place}`);
  const detail =
    `compared with ${living.place}, which has less than the copy: it was itself restored from an older one, and what the two ` +
    'have since then differs';
  return { name, status: 'warning', detail };
}

const COUNTED = ['orders', 'paid', 'events', 'notices', 'auditRows'] as const;

/** How many the living store has more; below 0, fewer. `paid`: orders that were paid, whatever became of the money. */
type Lost = Record<(typeof COUNTED)[number], number>;

const PAID: readonly OrderState[] = ['paid', 'refunded', 'disputed'];

function countsOf({ orders, events, notices, auditRows }: Standing): Lost {
  return {
    orders: sum(Object.values(orders)),
    paid: sum(PAID.map((state) => orders[state] ?? 0)),
    events: sum(Object.values(events)),
    notices: sum(Object.values(notices)),
    auditRows,
  };
}

function lostBetween(copy: Standing, living: Standing): Lost {
  const [older, newer] = [countsOf(copy), countsOf(living)];
  return Object.fromEntries(COUNTED.map((what) => [what, newer[what] - older[what]])) as Lost;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, n) => all + n, 0);
}

type Row = { what: string; copy: number | string; now: number | string; lost: number | string };

/** The copy and the living store side by side. States that no order has in either are left out. */
function comparison({ drilled, living }: DrillFound, lost: Lost | null): Block[] {
  const [copy, now] = [drilled.standing, living.standing];
  const row = (what: string, of: (standing: Standing) => number): Row[] => {
    const [older, newer] = [of(copy), now === null ? null : of(now)];
    if (what.startsWith(' ') && older === 0 && !newer) return [];
    return [{ what, copy: older, now: newer ?? '-', lost: lost === null || newer === null ? '-' : newer - older }];
  };
  const time = (what: string, of: (standing: Standing) => number | null): Row => {
    const text = (standing: Standing | null) => (standing === null ? '-' : isoOrDash(of(standing)));
    return { what, copy: text(copy), now: text(now), lost: '' };
  };
  const rows = [
    ...row('orders', (standing) => countsOf(standing).orders),
    ...ORDER_STATES.flatMap((state) => row(`  ${state}`, ({ orders }) => orders[state] ?? 0)),
    ...row('events', (standing) => countsOf(standing).events),
    ...ROW_STATUSES.flatMap((status) => row(`  ${named(status)}`, ({ events }) => events[status] ?? 0)),
    ...row('notices', (standing) => countsOf(standing).notices),
    ...ROW_STATUSES.flatMap((status) => row(`  ${named(status)}`, ({ notices }) => notices[status] ?? 0)),
    ...row('audit rows', ({ auditRows }) => auditRows),
    time('newest order', ({ newest }) => newest.orderMs),
    time('newest event', ({ newest }) => newest.eventMs),
    time('newest notice', ({ newest }) => newest.noticeMs),
  ];
  return table(rows, { what: 'what', 'in the copy': 'copy', now: 'now', more: 'lost' });
}

function named(status: string): string {
  return status === 'leased' ? 'in work' : status;
}

function isoOrDash(ms: number | null): string {
  return ms === null ? '-' : iso(ms);
}

function lossLines(lost: Lost, age: string): string[] {
  const { orders, paid, events, notices, auditRows } = lost;
  if (COUNTED.every((what) => lost[what] === 0)) return ['A restore would lose nothing that is counted above.'];
  const said = [
    orders > 0 &&
      `${inNumber(orders, 'order')} with ${orders === 1 ? 'its link' : 'their links'}: settled searches the service's list for links ` +
        'made since, and `settled attention` shows each as link_not_known, with the commands that bring it back.',
    paid > 0 &&
      `${inNumber(paid, 'payment')}: asking the service has to find ${paid === 1 ? 'it' : 'them'} again, on the links below and on ` +
        'those that are brought back.',
    events > 0 && `${inNumber(events, 'event')}: the service does not send again what settled acknowledged.`,
    notices > 0 &&
      `${inNumber(notices, 'notice')}: the shop gets those of payments that are found again under other ids, with higher ` +
        'versions. Cursors of the feed are answered 410.',
    auditRows > 0 &&
      `${inNumber(auditRows, 'row')} of the audit: nothing brings ${auditRows === 1 ? 'it' : 'them'} back.`,
  ].filter((line) => line !== false);
  if (said.length === 0) return [];
  return [`A restore would lose what happened in the ${age} since:`, ...said.map((line) => `- ${line}`)];
}

/** What a start on the copy would ask of the service. */
function askingOf({ drilled, hasApi, slots }: DrillFound): { links: number; seconds: number | null; lines: string[] } {
  const { payable } = drilled;
  const links = `${inNumber(payable, 'link')} of the copy that can still be paid`;
  if (!hasApi) {
    const line = `No API is configured, so settled could not ask about the ${links}: look in the service's panel.`;
    return { links: payable, seconds: null, lines: [line] };
  }
  const ms = Math.ceil(payable / slotsFor('janitor', slots)) * 60_000;
  const within = payable === 0 ? '' : `, within ${inWords(ms)}`;
  return { links: payable, seconds: ms / 1000, lines: [`The start would ask the service about ${links}${within}.`] };
}

function shown({ newest, ...standing }: Standing): object {
  const time = (ms: number | null) => (ms === null ? null : iso(ms));
  return {
    ...standing,
    newest: { order: time(newest.orderMs), event: time(newest.eventMs), notice: time(newest.noticeMs) },
  };
}
