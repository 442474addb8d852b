import type { Finding } from '../api/doctor_store.ts';
import type { OrderState } from '../domain/order.ts';
import { inNumber, iso } from '../explain/glossary.ts';
import type { Drilled, Standing } from '../store/sqlite/drill.ts';
import type { Report } from '../terminal/command.ts';
import { type Block, inBytes } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { inWords } from '../work/clock.ts';
import { checkLines, exitOfChecks } from './doctor.ts';
import { EXIT, type ExitCode } from './exit.ts';

/** What a drill found, in words. */

export type DrilledWithKeys = Drilled & {
  /** Of the backup's files. */
  bytes: number;
  /** The ids of the keys that are there, the current one first. */
  keysKnown: readonly string[];
};

/** The living store. `standing`: null if no server answers. */
export type Living = { place: string; standing: Standing | null };

export type DrillFound = { backup: string; drilled: DrilledWithKeys; living: Living; nowMs: number };

/** What a person reads, and what a program. */
export function drillReport(found: DrillFound): Report {
  const { backup, drilled, living, nowMs } = found;
  const ageMs = Math.max(0, nowMs - drilled.copiedAtMs);
  const { lost, check, loss } = compare(found, inWords(ageMs));
  const checks = [...checksOf(drilled), check];
  const isFit = checks.every(({ status }) => status !== 'failing');
  const data = {
    backup,
    fit: isFit,
    copiedAt: iso(drilled.copiedAtMs),
    ageSeconds: ageMs / 1000,
    checks,
    copy: drilled.standing,
    living: living.standing,
    lost,
  };
  const verdict = isFit ? `${backup} can be put to use.` : `${backup} cannot be put to use as it is.`;
  const lines = [
    `${verdict} It is a copy of ${iso(drilled.copiedAtMs)}, ${inWords(ageMs)} old.`,
    '',
    ...checkLines(checks),
    '',
    ...sideBySide(found, lost),
    '',
    `${loss} What settled finds again, and what it cannot: Restore in docs/operations.md.`,
  ];
  return { data, lines, exit: exitOf(checks) };
}

function exitOf(checks: readonly Finding[]): ExitCode {
  const hasNoKey = checks.some(({ name, status }) => name === KEY && status === 'failing');
  return hasNoKey ? EXIT.configuration : exitOfChecks(checks);
}

const KEY = 'secrets key';

function checksOf(drilled: DrilledWithKeys): Finding[] {
  const { bytes, migrated, saysThatItIsACopy } = drilled;
  const schema = migrated.length === 0 ? 'the newest' : `a restore brings it forward: ${migrated.join(', ')}`;
  const origin = saysThatItIsACopy
    ? ok('origin', 'settled wrote it: a start knows that it is a copy')
    : warning(
        'origin',
        'it does not say that it is a copy: after the restore, and before the start, run `settled migrate --restored`',
      );
  return [
    ok('file', `${inBytes(bytes)}; every page and every index is whole`),
    ok('schema', schema),
    origin,
    checkKey(drilled),
    checkLinks(drilled),
  ];
}

const ok = (name: string, detail: string): Finding => ({ name, status: 'ok', detail });
const warning = (name: string, detail: string): Finding => ({ name, status: 'warning', detail });
const failing = (name: string, detail: string): Finding => ({ name, status: 'failing', detail });

function checkKey({ keysNeeded, keysKnown }: DrilledWithKeys): Finding {
  const missing = keysNeeded.filter((id) => !keysKnown.includes(id));
  if (missing.length === 0 && keysKnown.length > 0) return ok(KEY, `it is there: ${keysNeeded.join(', ')}`);
  const there = keysKnown.length === 0 ? 'there is none' : `there is only ${keysKnown.join(', ')}`;
  const detail =
    `its secrets are encrypted under the key ${keysNeeded.join(' and ')}, and ${there}: settled would refuse to start. Look for ` +
    "the key's file where you keep it apart from the backups, and drill again with it: see Keys in docs/operations.md";
  return failing(KEY, detail);
}

function checkLinks({ links, keysKnown }: DrilledWithKeys): Finding {
  const name = 'links';
  if (links.unopenable === 0) return ok(name, `${inNumber(links.all, 'link')}; every signing secret can be opened`);
  const detail =
    `the signing secrets of ${links.unopenable} of ${inNumber(links.all, 'link')} cannot be opened` +
    (keysKnown.length === 0
      ? ''
      : ': settled would answer their deliveries with 503, and learn of their payments by asking');
  return failing(name, detail);
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

/** `loss`: what a restore would lose, in a sentence. */
type Comparison = { lost: Lost | null; check: Finding; loss: string };

/** Compares the copy with the living store, if that answers and is the same one. */
function compare({ drilled: { standing }, living: { place, standing: now } }: DrillFound, age: string): Comparison {
  const name = 'store';
  const loss = 'A restore would lose what happened since that time.';
  if (now === null) {
    return { lost: null, check: warning(name, `there is nothing to compare with: ${place} does not answer`), loss };
  }
  if (now.instanceId !== null && now.instanceId !== standing.instanceId) {
    const detail =
      `it is a copy of another store than ${place}: ${standing.instanceId}, not ${now.instanceId}. With it you would have the ` +
      'orders of another shop';
    return { lost: null, check: failing(name, detail), loss };
  }
  const [older, newer] = [countsOf(standing), countsOf(now)];
  const lost = Object.fromEntries(COUNTED.map((what) => [what, newer[what] - older[what]])) as Lost;
  const more = Object.values(lost);
  if (more.some((n) => n < 0)) {
    const detail =
      `compared with ${place}, which has less than the copy: it was itself restored from an older one, and what the two have ` +
      'since then differs';
    const parted = 'The two have parted, so counts do not say what a restore would lose.';
    return { lost, check: warning(name, detail), loss: parted };
  }
  const counted = more.every((n) => n === 0)
    ? 'A restore would lose nothing that is counted above.'
    : `A restore would lose what happened in the ${age} since, which the column MORE counts.`;
  return { lost, check: ok(name, `compared with ${place}`), loss: counted };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, n) => all + n, 0);
}

/** The copy and the living store. */
function sideBySide({ drilled, living }: DrillFound, lost: Lost | null): Block[] {
  const [copy, now] = [countsOf(drilled.standing), living.standing && countsOf(living.standing)];
  const rows = COUNTED.map((what) => ({
    what: { auditRows: 'audit rows', paid: 'ever paid' }[what as string] ?? what,
    copy: copy[what],
    now: now?.[what] ?? '-',
    lost: lost?.[what] ?? '-',
  }));
  return table(rows, { what: 'what', 'in the copy': 'copy', now: 'now', more: 'lost' });
}
