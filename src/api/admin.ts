import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RequestHandler } from 'express';
import { ORDER_STATES } from '../domain/order.ts';
import { Fault } from '../fault.ts';
import { sendProblem } from '../http/problem.ts';
import type { ApiOptions } from './options.ts';
import { iso, isoOrNull } from './times.ts';

/** A state that no order is in is shown as 0. */
const NO_ORDERS = Object.fromEntries(ORDER_STATES.map((state) => [state, 0]));

export function showStats({ store, clock, canTell }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { lagMs, api, noticesLagMs, checksLagMs, shopFailures, webhooksMissing, feed, ...counts } = await store.stats(
      clock.nowMs(),
    );
    const { slotsInUse, pausedUntilMs } = api;
    const pausedUntil = isoOrNull(pausedUntilMs);
    const orders = { ...NO_ORDERS, ...counts.orders };
    const matters = counts.matters.map(({ oldestAtMs, ...group }) => ({ ...group, oldestAt: iso(oldestAtMs) }));
    response.json({
      stats: {
        ...counts,
        orders,
        matters,
        api: { slotsInUse, pausedUntil },
        lagSeconds: lagMs / 1000,
        // Where nobody sends them they wait for ever.
        noticesLagSeconds: canTell ? noticesLagMs / 1000 : null,
      },
    });
  };
}

/** Writes a consistent copy of the database beside it, while serving. The secrets key is not in it. */
export function makeBackup({ store, clock, storeAddress, secretsKeyPlace }: ApiOptions): RequestHandler {
  let isRunning = false;
  return async (_request, response) => {
    if (storeAddress.engine === 'postgres') {
      const detail =
        `settled does not copy ${storeAddress.name}. Use pg_dump, or the backups of who runs it: see Back up in ` +
        `docs/postgres.md. The secrets key is not in them. It is kept in ${secretsKeyPlace}; keep a copy apart from the ` +
        'backups.';
      sendProblem(response, { status: 409, code: 'backup_not_ours_to_make', detail });
      return;
    }
    // Each takes the room of a whole database and the time of the disk that deliveries wait for.
    if (isRunning) throw new Fault('transient', 'store_busy', 'A backup is being written. Try again after it.');
    isRunning = true;
    try {
      response.status(201).json({ backup: await writeBackup(storeAddress.path) });
    } finally {
      isRunning = false;
    }
  };

  async function writeBackup(storePath: string): Promise<object> {
    const folder = join(dirname(storePath), 'backups');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await removeDrafts(folder);
    const name = `settled-${iso(clock.nowMs()).replace(/[:.]/g, '-')}.db`;
    const path = join(folder, name);
    const { bytes } = await store.backup({ path });
    const notIncluded = `The secrets key is not in the backup. It is kept in ${secretsKeyPlace}; keep a copy apart from the backup.`;
    return { path, bytes, notIncluded };
  }
}

/** Changes the key under which signing secrets rest, while serving. */
export function rotateKey({ rotation, storeAddress }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const rotated = await rotation.rotate();
    if (rotated !== null) {
      response.json({ rotation: rotated });
      return;
    }
    const how = storeAddress.engine === 'postgres' ? CHANGE_AT_REPLICAS : CHANGE_HERE;
    const detail = `The secrets key comes from SETTLED_SECRETS_KEY, which settled cannot change. ${how}`;
    sendProblem(response, { status: 409, code: 'key_not_ours_to_change', detail });
  };
}

const CHANGE_HERE =
  'Make a new one (openssl rand -base64 32), set SETTLED_SECRETS_KEY to it and SETTLED_SECRETS_KEY_PREVIOUS to the key of ' +
  'now, and start settled again: it then seals all secrets under the new one by itself. See Keys in docs/operations.md.';
/** While some have a key that the others do not know, deliveries of new links fail. */
const CHANGE_AT_REPLICAS =
  'Make a new one (openssl rand -base64 32) and give it to every replica as SETTLED_SECRETS_KEY_PREVIOUS, starting one after ' +
  'the other again; then give every replica the new one as SETTLED_SECRETS_KEY and the key of now as ' +
  'SETTLED_SECRETS_KEY_PREVIOUS, in the same way: they then seal all secrets under the new one by themselves. See Change the ' +
  'secrets key in docs/postgres.md.';

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
