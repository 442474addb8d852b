import { chmodSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StatsDocument } from '../api/admin.ts';
import type { Finding } from '../api/doctor_store.ts';
import type { InstallationDocument } from '../api/installation.ts';
import type { Config } from '../config/config.ts';
import type { OrderState } from '../domain/order.ts';
import { inNumber, iso } from '../explain/glossary.ts';
import { Fault, terminalFault, transientFault } from '../fault.ts';
import { secretsKeyPath, storeFile } from '../store/address.ts';
import type { Drilled, Standing } from '../store/sqlite/drill.ts';
import type { Report } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { onStopSignal } from '../terminal/process.ts';
import { table } from '../terminal/table.ts';
import { inWords, systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import { checkLines, exitOfChecks } from './doctor.ts';
import { Refusal } from './exit.ts';

/** `settled drill`: what a restore from a backup would give, found out on a copy of it in a folder that is removed again. */

export const drill = defineCommand({
  usage: 'drill BACKUP',
  about: 'restore a backup into a temporary folder, and say what a restore from it would lose',
  details: [
    'BACKUP is a file: what `settled backup` wrote, or a database that a tool like Litestream restored to a file.',
    'It is copied, and the copy is checked, migrated, and opened with the secrets keys as after a restore. Then it is',
    'compared with the living store through the server, if that answers.',
    'Neither the backup nor the living store is changed, and nothing is sent to the shop or to the service.',
    'It needs room for the copy in the folder for temporary files, with mode 0700 and removed at the end: TMPDIR.',
    'It ends with 0 if the backup can be put to use: see Drill in docs/operations.md for the other codes. PostgreSQL has its',
    'own means: see Restore in docs/postgres.md.',
  ],
  examples: ['settled drill data/backups/settled-2030-01-31T12-00-00-000Z.db'],
  isLocal: true,
  async run({ first: backup, config, server }) {
    const settings = config();
    const { store } = settings;
    if (store.engine === 'postgres') throw notOurs(store.name);
    refuseUnfit(backup, store.path);
    const keyIds = await keyIdsOf(settings);
    const { drillCopy } = await import('../store/sqlite/drill.ts');
    const folder = makeFolder();
    const remove = () => rmSync(folder, { recursive: true, force: true });
    // Customers' names must not stay behind if a person stops the drill.
    const ignore = onStopSignal((signal) => {
      remove();
      ignore();
      process.kill(process.pid, signal);
    });
    const path = join(folder, 'backup.db');
    try {
      const nowMs = systemClock.nowMs();
      copyStore(backup, path);
      const drilled = drillCopy({ path, keyIds, nowMs });
      return drillReport({ backup, drilled, living: await findLiving(server()), nowMs });
    } catch (fault) {
      throw fault instanceof Fault ? ofBackup(fault, path, backup) : fault;
    } finally {
      remove();
      ignore();
    }
  },
});

const REMEDY = 'name another folder: TMPDIR=/path settled drill …';

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'settled-drill-'));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const what = `The drill cannot make a folder in ${tmpdir()} (${code}): ${REMEDY}`;
    throw terminalFault('store_unwritable', what, { cause });
  }
}

function notOurs(name: string): Refusal {
  return new Refusal(
    'backup_not_ours_to_make',
    `The store is ${name}, and settled makes no backups of PostgreSQL: restore your own into a new database, and start a ` +
      'settled there that can reach neither the shop nor the service. See Restore in docs/postgres.md.',
  );
}

function refuseUnfit(backup: string, storePath: string): void {
  const found = statSync(backup, { throwIfNoEntry: false });
  if (found === undefined) throw new UsageError(`There is no file ${backup}. Give the path of a backup.`);
  if (!found.isFile()) throw new UsageError(`${backup} is no file. Give the path of a backup.`);
  const living = statSync(storePath, { throwIfNoEntry: false });
  if (living?.ino !== found.ino || living.dev !== found.dev) return;
  throw new UsageError(`${backup} is the living store itself. Make a backup of it, and drill that: settled backup`);
}

/** Of the keys that are there, the current one first. A drill makes none. */
async function keyIdsOf(settings: Config): Promise<[string, ...string[]]> {
  const { readKeyIds } = await import('../secrets/key_files.ts');
  const isThere = settings.secretsKey !== null || existsSync(secretsKeyPath(storeFile(settings.store)));
  if (!isThere) throw terminalFault('secrets_key_missing', `There is no secrets key here. ${FIND_KEY}`);
  return readKeyIds(settings, {}).keyIds as [string, ...string[]];
}

const FIND_KEY =
  'Without it, settled would not start on the backup. Look for its file where you keep it apart from the backups, and drill ' +
  'again with it: see Keys in docs/operations.md';
const IS_BROKEN = 'A restore from it would fail. Drill an older backup, and make a new one now: settled backup';

/** What to do about a fault of the copy; other faults say it themselves. */
const ADVICE = { store_corrupt: IS_BROKEN, store_foreign: IS_BROKEN, secrets_key_wrong: FIND_KEY };

/** What a fault of the copy means for the backup. */
function ofBackup({ kind, code, message, cause }: Fault, path: string, backup: string): Fault {
  const advice = ADVICE[code as keyof typeof ADVICE];
  const said = advice === undefined ? message : `${message.split('. ')[0]}. ${advice}`;
  return new Fault(kind, code, said.replaceAll(path, backup), { cause });
}

/** Copies a backup with its log, if it has one. Faults: `store_full`, `store_failed`. */
function copyStore(from: string, to: string): void {
  try {
    for (const suffix of ['', '-wal'].filter((one) => existsSync(from + one))) {
      copyFileSync(from + suffix, to + suffix, constants.COPYFILE_FICLONE);
      // A copy has the mode of its original, which may be kept read-only.
      chmodSync(to + suffix, 0o600);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const what = `${from} cannot be copied to ${tmpdir()} (${code})`;
    if (code === 'ENOSPC') throw transientFault('store_full', `${what}. Free some, or ${REMEDY}`, { cause });
    throw terminalFault('store_failed', `${what}. Give the command to a user who may read it.`, { cause });
  }
}

/** The living store. `standing`: null if no server answers. */
type Living = { place: string; instanceId: string | null; standing: Standing | null };

/** How far the living store is, by its server. A drill never opens a file that a process may write. */
async function findLiving(server: ServerApi): Promise<Living> {
  const place = `the server at ${server.url}`;
  try {
    const { stats } = await server.get<{ stats: StatsDocument }>('/v1/stats');
    const { installation } = await server.get<{ installation: InstallationDocument }>('/v1/admin/installation');
    const { audit } = await server.get<{ audit: { number: number }[] }>('/v1/audit', { limit: 1 });
    // A server of an earlier version does not say which store it has.
    const instanceId = installation.store.id ?? null;
    return { place, instanceId, standing: { ...stats, auditRows: audit[0]?.number ?? 0 } };
  } catch (fault) {
    if (!(fault instanceof Fault) || fault.code !== 'server_unreachable') throw fault;
    return { place, instanceId: null, standing: null };
  }
}

type DrillFound = { backup: string; drilled: Drilled; living: Living; nowMs: number };

/** What a person reads, and what a program. */
function drillReport({ backup, drilled, living, nowMs }: DrillFound): Report {
  const { copiedAtMs } = drilled;
  const ageMs = Math.max(0, nowMs - copiedAtMs);
  const checks = checksOf(drilled, living);
  const isFit = checks.every(({ status }) => status !== 'failing');
  const copy = countsOf(drilled);
  const now = living.standing === null ? null : countsOf(living.standing);
  const counted = Object.keys(copy) as (keyof Counts)[];
  const lost = now && (Object.fromEntries(counted.map((what) => [what, now[what] - copy[what]])) as Counts);
  const rows = counted.map((what) => ({
    what: LABELS[what] ?? what,
    copy: copy[what],
    now: now?.[what] ?? '-',
    lost: lost?.[what] ?? '-',
  }));
  return {
    data: { backup, fit: isFit, copiedAt: iso(copiedAtMs), ageSeconds: ageMs / 1000, checks, copy, living: now, lost },
    lines: [
      `${backup} ${isFit ? 'can be put to use' : 'cannot be put to use as it is'}. It is a copy of ${iso(copiedAtMs)}, ` +
        `${inWords(ageMs)} old.`,
      '',
      ...checkLines(checks),
      '',
      ...table(rows, { what: 'what', 'in the copy': 'copy', now: 'now', more: 'lost' }),
      '',
      'A restore would lose what happened since that time. What settled finds again, and what it cannot: Restore in ' +
        'docs/operations.md.',
    ],
    exit: exitOfChecks(checks),
  };
}

function checksOf({ instanceId, migrated, saysThatItIsACopy, unopenable }: Drilled, living: Living): Finding[] {
  const check = (name: string, status: Finding['status'], detail: string): Finding => ({ name, status, detail });
  const isOther = living.instanceId !== null && living.instanceId !== instanceId;
  return [
    check('file', 'ok', 'every page and every index is whole'),
    check('schema', 'ok', migrated.length === 0 ? 'the newest' : `a restore brings it forward: ${migrated.join(', ')}`),
    saysThatItIsACopy
      ? check('origin', 'ok', 'settled wrote it: a start knows that it is a copy')
      : check('origin', 'warning', NOT_OURS),
    unopenable === 0
      ? check('secrets', 'ok', 'every signing secret is encrypted under a key that is there')
      : check('secrets', 'failing', `the keys of ${inNumber(unopenable, 'signing secret')} are not there`),
    isOther
      ? check('store', 'failing', `${living.place} has another store: you would have the orders of another shop`)
      : living.standing === null
        ? check('store', 'warning', `there is nothing to compare with: ${living.place} does not answer`)
        : check('store', 'ok', `compared with ${living.place}`),
  ];
}

const NOT_OURS =
  'it does not say that it is a copy: after the restore, and before the start, run `settled migrate --restored`';

/** `paid`: orders that were paid, whatever became of the money. */
type Counts = Record<'orders' | 'paid' | 'events' | 'notices' | 'auditRows', number>;

const LABELS: Readonly<Record<string, string>> = { paid: 'ever paid', auditRows: 'audit rows' };
const PAID: readonly OrderState[] = ['paid', 'refunded', 'disputed'];

function countsOf({ orders, events, notices, auditRows }: Standing): Counts {
  const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);
  return {
    orders: sum(Object.values(orders)),
    paid: sum(PAID.map((state) => orders[state] ?? 0)),
    events: sum(Object.values(events)),
    notices: sum(Object.values(notices)),
    auditRows,
  };
}
