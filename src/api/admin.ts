import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RequestHandler } from 'express';
import { Fault } from '../fault.ts';
import type { ApiOptions } from './options.ts';
import { nothing, read } from './requests.ts';

export function showStats({ store, clock }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { lagMs, api, ...counts } = await store.stats(clock.nowMs());
    const { slotsInUse, pausedUntilMs } = api;
    const pausedUntil = pausedUntilMs === null ? null : new Date(pausedUntilMs).toISOString();
    response.json({ stats: { ...counts, api: { slotsInUse, pausedUntil }, lagSeconds: lagMs / 1000 } });
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

/** Free bytes where the database lives; null where the system does not say. */
export async function freeBytes(storePath: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dirname(storePath));
    return bavail * bsize;
  } catch {
    return null;
  }
}
