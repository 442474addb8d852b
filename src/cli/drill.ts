import { chmodSync, constants, copyFileSync, existsSync, mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StatsDocument } from '../api/admin.ts';
import type { InstallationDocument } from '../api/installation.ts';
import type { Config } from '../config/config.ts';
import { Fault, terminalFault, transientFault } from '../fault.ts';
import { UsageError } from '../terminal/failure.ts';
import { inBytes } from '../terminal/output.ts';
import { onStopSignal } from '../terminal/process.ts';
import { systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import type { DrilledWithKeys, Living } from './drill_report.ts';
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
    'It ends with 0 if the backup can be put to use; 73 if it is damaged, of another program or of a newer settled;',
    "78 if its secrets key is missing; 1 if it is another store's, or a secret in it cannot be opened; 74 if there is no",
    'room for the copy; 77 if no folder can be made for it, or the operator token is missing; 64 if BACKUP is no file or',
    'the living store itself; and 78 with PostgreSQL, which has its own means: see Restore in docs/postgres.md.',
  ],
  examples: ['settled drill data/backups/settled-2030-01-31T12-00-00-000Z.db'],
  isLocal: true,
  async run({ first: backup, config, server }) {
    const settings = config();
    const { store } = settings;
    if (store.engine === 'postgres') throw notOurs(store.name);
    refuseUnfit(backup, store.path);
    const { drillReport } = await import('./drill_report.ts');
    const folder = makeFolder();
    const remove = () => rmSync(folder, { recursive: true, force: true });
    // Customers' names must not stay behind if a person stops the drill.
    const ignore = onStopSignal((signal) => {
      remove();
      ignore();
      process.kill(process.pid, signal);
    });
    try {
      const nowMs = systemClock.nowMs();
      const drilled = await drillBackup({ backup, folder, settings, nowMs });
      return drillReport({ backup, drilled, living: await findLiving(server()), nowMs });
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

type Drill = { backup: string; folder: string; settings: Config; nowMs: number };

async function drillBackup({ backup, folder, settings, nowMs }: Drill): Promise<DrilledWithKeys> {
  const path = join(folder, 'backup.db');
  const { findSecretsKeys } = await import('../secrets/key_files.ts');
  const { openKeyring, secretsOf } = await import('../secrets/keyring.ts');
  const { drillCopy } = await import('../store/sqlite/drill.ts');
  const [current, ...older] = findSecretsKeys(settings);
  const keyring = current === undefined ? null : openKeyring(current, older);
  const canOpen = (secrets: Parameters<typeof secretsOf>[0]) =>
    keyring !== null && secretsOf(secrets).every((secret) => opens(() => keyring.open(secret, secret.whose)));
  const bytes = copyStore(backup, path);
  try {
    return { ...drillCopy({ path, canOpen, nowMs }), bytes, keysKnown: keyring?.keyIds ?? [] };
  } catch (fault) {
    throw fault instanceof Fault ? ofBackup(fault, path, backup) : fault;
  }
}

function opens(open: () => unknown): boolean {
  try {
    open();
    return true;
  } catch (fault) {
    if (fault instanceof Fault && fault.code === 'secret_undecipherable') return false;
    throw fault;
  }
}

/** What a fault of the copy means for the backup. */
function ofBackup({ kind, code, message, cause }: Fault, path: string, backup: string): Fault {
  const isBroken = code === 'store_corrupt' || code === 'store_foreign';
  const advice = 'A restore from it would fail. Drill an older backup, and make a new one now: settled backup';
  const said = isBroken ? `${message.split('. ')[0]}. ${advice}` : message;
  return new Fault(kind, code, said.replaceAll(path, backup), { cause });
}

/** Copies a backup with its log, if it has one; returns the size of both. Faults: `store_full`, `store_failed`. */
function copyStore(from: string, to: string): number {
  const parts = ['', '-wal'].filter((suffix) => existsSync(from + suffix));
  const odd = parts.find((suffix) => !statSync(from + suffix).isFile());
  if (odd !== undefined) throw new UsageError(`${from}${odd} is no file: look what it is, and remove it.`);
  const bytes = parts.reduce((sum, suffix) => sum + statSync(from + suffix).size, 0);
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize < bytes) {
    const what = `A copy of ${from} needs ${inBytes(bytes)}, and ${tmpdir()} has room for ${inBytes(bavail * bsize)}`;
    throw transientFault('store_full', `${what}. Free some, or ${REMEDY}`);
  }
  try {
    for (const suffix of parts) {
      copyFileSync(from + suffix, to + suffix, constants.COPYFILE_FICLONE);
      // A copy has the mode of its original, which may be kept read-only.
      chmodSync(to + suffix, 0o600);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const what = `${from} cannot be copied (${code}). Give the command to a user who may read it, and look at both disks.`;
    throw terminalFault('store_failed', what, { cause });
  }
  return bytes;
}

/** How far the living store is, by its server. A drill never opens a file that a process may write. */
async function findLiving(server: ServerApi): Promise<Living> {
  const place = `the server at ${server.url}`;
  try {
    const { stats } = await server.get<{ stats: StatsDocument }>('/v1/stats');
    const { installation } = await server.get<{ installation: InstallationDocument }>('/v1/admin/installation');
    const { audit } = await server.get<{ audit: { number: number }[] }>('/v1/audit', { limit: 1 });
    const { orders, events, notices } = stats;
    // A server of an earlier version does not say which store it has.
    const instanceId = installation.store.id ?? null;
    return { standing: { instanceId, orders, events, notices, auditRows: audit[0]?.number ?? 0 }, place };
  } catch (fault) {
    if (!(fault instanceof Fault) || fault.code !== 'server_unreachable') throw fault;
    return { standing: null, place };
  }
}
