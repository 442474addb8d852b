import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RequestHandler } from 'express';
import { Fault } from '../fault.ts';
import type { Readiness } from '../http/health.ts';
import type { ApiOptions } from './options.ts';
import { nothing, read } from './requests.ts';

/** Less free space than this is worth a warning before it becomes an outage. */
const FREE_BYTES_LOW = 256 * 1024 * 1024;

export function showStats({ store, clock }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { lagMs, ...counts } = await store.stats(clock.nowMs());
    response.json({ stats: { ...counts, lagSeconds: lagMs / 1000 } });
  };
}

/** Writes a consistent copy of the database beside it, while serving. The secrets key is not in it. */
export function makeBackup({ store, clock, storePath, secretsKeyPlace }: ApiOptions): RequestHandler {
  let isRunning = false;
  return async (request, response) => {
    if (read(nothing, request.body, response) === null) return;
    // Each takes the room of a whole database and the time of the disk that deliveries wait for.
    if (isRunning)
      throw new Fault('transient', 'store_busy', 'A backup is being written. Try again after it.');
    isRunning = true;
    try {
      response.status(201).json({ backup: await writeBackup() });
    } finally {
      isRunning = false;
    }
  };

  async function writeBackup(): Promise<object> {
    const folder = join(dirname(storePath), 'backups');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await removeDrafts(folder);
    const name = `settled-${new Date(clock.nowMs()).toISOString().replace(/[:.]/g, '-')}.db`;
    const path = join(folder, name);
    const { bytes } = await store.backup({ path });
    const notIncluded = `The secrets key is not in the backup. It is kept in ${secretsKeyPlace}; keep a copy apart from the backup.`;
    return { path, bytes, notIncluded };
  }
}

/** What a process left that was killed while it wrote a backup; nobody else writes one now. */
async function removeDrafts(folder: string): Promise<void> {
  const drafts = (await readdir(folder)).filter((name) => /^settled-.*\.db\.part(?:-journal)?$/.test(name));
  for (const draft of drafts) await rm(join(folder, draft), { force: true });
}

type Check = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

/** What a person should know of this installation. Each check says what to do. */
export function doctor(options: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { store, clock, readiness, publicUrl, storePath } = options;
    const stats = await store.stats(clock.nowMs());
    const checks: Check[] = [
      checkReadiness(readiness),
      await checkDisk(storePath),
      checkPublicUrl(publicUrl),
      check(
        'settlement',
        stats.lagMs < 10_000,
        `the oldest unsettled event is due for ${stats.lagMs / 1000} s`,
      ),
      check(
        'dead events',
        !stats.events.dead,
        `${stats.events.dead ?? 0} events wait for a person: settled events list --status dead`,
      ),
      check(
        'holds',
        stats.holds === 0,
        `${stats.holds} holds wait for a person: settled orders list --state held`,
      ),
      check('attention', stats.attention === 0, `${stats.attention} matters are open: settled attention`),
      {
        name: 'asking the service',
        status: 'warning',
        detail: `this version cannot ask the service's API; ${stats.checks} links wait to be asked about`,
      },
    ];
    response.json({ checks });
  };
}

function check(name: string, ok: boolean, detail: string): Check {
  return { name, status: ok ? 'ok' : 'warning', detail };
}

function checkReadiness(readiness: Readiness): Check {
  const state = readiness();
  return state.ready
    ? { name: 'ready', status: 'ok', detail: 'the store is open and can be written' }
    : { name: 'ready', status: 'failing', detail: state.reason };
}

async function checkDisk(storePath: string): Promise<Check> {
  const bytes = await freeBytes(storePath);
  if (bytes === null) return { name: 'disk', status: 'warning', detail: 'the free space cannot be read' };
  const mebibytes = Math.floor(bytes / 1024 / 1024);
  return check('disk', bytes >= FREE_BYTES_LOW, `${mebibytes} MiB are free for the database`);
}

/** Free bytes where the database lives; null where the system does not say. */
export async function freeBytes(storePath: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dirname(storePath));
    return bavail * bsize;
  } catch {
    return null;
  }
}

function checkPublicUrl(publicUrl: string): Check {
  const { protocol, hostname } = new URL(publicUrl);
  const isLocal = hostname === 'localhost' || hostname.startsWith('127.') || hostname === '[::1]';
  if (protocol === 'https:' && !isLocal) {
    return { name: 'public address', status: 'ok', detail: `links carry ${publicUrl}` };
  }
  const detail = `links carry ${publicUrl}, where the service cannot deliver: set SETTLED_PUBLIC_URL to your https address`;
  return { name: 'public address', status: 'warning', detail };
}
