import { copyFileSync, mkdirSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { OpenedEngine } from '../../../src/store/contract.ts';
import { testFolder } from '../../support/app.ts';
import { eventually } from '../../support/timing.ts';
import { type Link, said, type World, worldOf } from '../contract/world.ts';
import { makeDatabase, openInThreads, startChild } from './opening.ts';

/** Of an order in a store that was restored: above all that it had before. */
const NEW_VERSION = expect.toSatisfy((version: number) => version > 1_000_000_000);

describe('a running SQLite store', () => {
  let path: string;
  let folder: string;
  let opened: OpenedEngine;
  let world: World;
  const onFailed = vi.fn();
  const onBatch = vi.fn();

  beforeEach(async () => {
    onFailed.mockClear();
    onBatch.mockClear();
    folder = testFolder();
    path = join(folder, 'settled.db');
    await open();
  });

  async function open(): Promise<void> {
    opened = await openInThreads(path, { onFailed, onBatch });
    world = worldOf(opened.store);
  }

  describe('whose file is taken away', () => {
    const ways: [string, () => void][] = [
      ['removed', () => unlinkSync(path)],
      ['moved', () => renameSync(path, `${path}.away`)],
      [
        'replaced by a copy',
        () => {
          copyFileSync(path, `${path}.copy`);
          renameSync(`${path}.copy`, path);
        },
      ],
    ];

    it.each(ways)('finds at its next heartbeat that it was %s, and says so once and for all', async (_what, take) => {
      await opened.store.heartbeat(1);
      take();
      await expect(opened.store.heartbeat(2)).rejects.toMatchObject({ code: 'store_lost' });
      await eventually(() => expect(onFailed).toHaveBeenCalled());
      expect(onFailed.mock.calls).toMatchObject([[{ code: 'store_lost', kind: 'terminal' }]]);
      await expect(opened.store.heartbeat(3)).rejects.toMatchObject({ code: 'store_lost' });
      await opened.store.close();
    });

    it.each(ways)(
      'says the same if a read finds first that it was %s, whatever SQLite makes of it',
      async (_what, take) => {
        take();
        // The first read of the thread that reads opens the file's index.
        const read = await opened.store.listOrders({ limit: 1 }).then(
          () => 'store_lost',
          ({ code }) => code,
        );
        await expect(opened.store.heartbeat(2)).rejects.toMatchObject({ code: 'store_lost' });
        await eventually(() => expect(onFailed).toHaveBeenCalled());
        const told = onFailed.mock.calls.map(([{ code }]) => code);
        expect([read, ...told]).toEqual(Array(1 + told.length).fill('store_lost'));
        await opened.store.close();
      },
    );

    it('acknowledges no delivery that nobody could ever read', async () => {
      const link = await world.newLink();
      unlinkSync(path);
      const recorded = await Promise.allSettled([world.deliver(link), world.deliver(link)]);
      expect(recorded.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      await opened.store.close();
    });
  });

  describe('group commit', () => {
    it('carries out calls of one turn in few batches', async () => {
      const link = await world.newLink();
      onBatch.mockClear();
      await Promise.all(Array.from({ length: 100 }, () => world.deliver(link)));
      const sizes = onBatch.mock.calls.map(([calls]) => calls as number);
      expect(sizes.reduce((sum, calls) => sum + calls, 0)).toBe(100);
      // They travel in messages of sixteen, so seven at most; what waits during a commit shares the next.
      expect(sizes.length).toBeLessThanOrEqual(7);
      await opened.store.close();
    });
  });

  describe('backup', () => {
    let link: Link;
    let to: string;
    beforeEach(async () => {
      link = await world.newLink();
      await world.settle(link, [said('completed')]);
      to = join(folder, 'backup.db');
    });

    it('writes a whole copy while the store works on', async () => {
      const [{ bytes }] = await Promise.all([opened.store.backup({ path: to }), world.deliver(link)]);
      expect(bytes).toBeGreaterThan(4096);
      const before = await world.timeline(link);
      await opened.store.close();
      const copy = await openInThreads(to);
      expect((await worldOf(copy.store).timeline(link)).order).toEqual({ ...before.order, version: NEW_VERSION });
      await copy.store.close();
    });

    it('never replaces a file', async () => {
      writeFileSync(to, 'an older backup');
      await expect(opened.store.backup({ path: to })).rejects.toThrow('exists');
      await opened.store.close();
    });

    it('fails alone: the store works on', async () => {
      const nowhere = join(folder, 'nowhere', 'backup.db');
      await expect(opened.store.backup({ path: nowhere })).rejects.toMatchObject({ code: 'store_unwritable' });
      await expect(world.deliver(link)).resolves.toMatchObject({ outcome: 'recorded' });
      await opened.store.close();
    });

    it('is restored by the command that a lost database names', async () => {
      const before = await world.timeline(link);
      await opened.store.backup({ path: to });
      // A crash after the backup leaves a log behind; it must not be replayed into the backup.
      for (let i = 0; i < 50; i++) await world.deliver(link);
      copyFileSync(`${path}-wal`, `${path}-wal.left`);
      await opened.store.close();
      unlinkSync(path);
      renameSync(`${path}-wal.left`, `${path}-wal`);
      const lost = await openInThreads(path).then(
        () => null,
        (error: Error) => error,
      );
      const command = /`(mv .*)`/.exec(lost?.message ?? '')?.[1]?.replace('BACKUP.db', to) ?? '';
      for (const step of command.split('; ')) {
        const [program, ...args] = step.split(' ').filter((word) => word !== '-f');
        const [from = '', to = ''] = args;
        if (program === 'rm') rmSync(from, { force: true });
        else if (program === 'mv') renameSync(from, to);
        else copyFileSync(from, to);
      }
      expect(statSync(`${path}-wal.lost`).size).toBeGreaterThan(0);
      await open();
      expect(opened.opened.created).toBe(false);
      const { order } = before;
      expect(await world.timeline(link)).toEqual({ ...before, order: { ...order, version: NEW_VERSION } });
      await opened.store.close();
    });
  });

  describe('on a small disk', () => {
    it('refuses deliveries while it is full, keeps the acknowledged ones, and recovers by itself', async ({ skip }) => {
      await opened.store.close();
      const disk = join(folder, 'disk');
      mkdirSync(disk);
      const mount = ['unshare', '-Urm', 'sh', '-c', `mount -t tmpfs -o size=4m tmpfs ${disk} && exec "$@"`, '-'];
      const told = await startChild(['fill', join(disk, 'settled.db')], { command: mount }).line.catch(
        (error: Error) => error,
      );
      skip(told instanceof Error, `no small disk can be mounted here: ${told.message}`);
      expect(told).toMatchObject({ code: 'store_full', backup: 'store_full', files: ['settled.db.ballast'] });
      expect(told.acknowledged.length).toBeGreaterThan(3);
      expect(told.whileFull).toEqual(told.acknowledged.slice(0, -1));
      expect(told.kept).toEqual(told.acknowledged);
    });
  });

  it('frees its lock when it is closed', async () => {
    await opened.store.close();
    makeDatabase(path);
  });
});
