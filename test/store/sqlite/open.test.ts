import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { isFirstStart, openForReading } from '../../../src/store/sqlite/file.ts';
import { assertDurable, openForWriting } from '../../../src/store/sqlite/open.ts';
import { testFolder } from '../../support/app.ts';
import { changeAsAnother, makeDatabase, openOptions, openTestStore, startChild, thrownBy } from './opening.ts';

describe('opening a SQLite store', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = testFolder();
    path = join(folder, 'settled.db');
  });

  function open(over: Parameters<typeof openOptions>[1] = {}) {
    const opened = openForWriting(openOptions(path, over));
    onTestFinished(() => {
      opened.db.close();
      opened.lock.close();
    });
    return opened;
  }

  const change = (sql: string) => changeAsAnother(path, sql);

  describe('durability', () => {
    it('writes ahead, syncs every commit and holds foreign keys', () => {
      const { db } = open();
      expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
      expect(db.pragma('synchronous', { simple: true })).toBe(2);
      expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
      expect(db.pragma('temp_store', { simple: true })).toBe(2);
    });

    it.each(['synchronous = NORMAL', 'synchronous = OFF', 'journal_mode = DELETE', 'foreign_keys = OFF'])(
      'refuses a connection with %s',
      (pragma) => {
        const { db } = open();
        assertDurable(db, path);
        db.pragma(pragma);
        expect(thrownBy(() => assertDurable(db, path))).toMatchObject({ code: 'store_not_durable' });
      },
    );

    it('does the same for a database that was not in WAL mode, as a restored backup is not', () => {
      makeDatabase(path);
      change('PRAGMA journal_mode = DELETE');
      expect(open().db.pragma('journal_mode', { simple: true })).toBe('wal');
    });

    it('makes the database in WAL mode from the start, so that no journal can undo the switch', () => {
      // This folder stands where the journal of a switch would: opening fails when the file has just got its name.
      mkdirSync(`${path}-journal`);
      expect(thrownBy(() => open())).toMatchObject({ code: 'store_failed' });
      // Read and write version of the file format: 2 is WAL, 1 is a rollback journal.
      expect([...readFileSync(path).subarray(18, 20)]).toEqual([2, 2]);
    });

    it('reads through a connection that cannot write', () => {
      makeDatabase(path);
      const db = openForReading(path);
      expect(() => db.exec('DELETE FROM instance')).toThrow('readonly');
      db.close();
    });
  });

  describe('the first start', () => {
    it('makes the database, and the second one finds it', () => {
      const first = openForWriting(openOptions(path));
      expect(first).toMatchObject({ created: true, instanceId: 'instance-1' });
      first.db.close();
      first.lock.close();
      expect(open({ newInstanceId: 'instance-2' })).toMatchObject({ created: false, instanceId: 'instance-1' });
    });

    it('makes the folders that are missing, for their owner alone', () => {
      path = join(folder, 'a', 'b', 'settled.db');
      expect(open().created).toBe(true);
      expect(statSync(join(folder, 'a', 'b')).mode & 0o777).toBe(0o700);
    });

    it('leaves only the database, its log and its lock', () => {
      open();
      expect(readdirSync(folder).sort()).toEqual([
        'settled.db',
        'settled.db-shm',
        'settled.db-wal',
        'settled.db.lock',
        'settled.db.lock-journal',
      ]);
    });

    it('begins anew after one that was interrupted', () => {
      writeFileSync(`${path}.lock`, '');
      writeFileSync(`${path}.new`, 'half a database');
      writeFileSync(`${path}.new-wal`, 'half a log');
      writeFileSync(`${path}.new-journal`, 'half a journal');
      expect(isFirstStart(path)).toBe(true);
      expect(open().created).toBe(true);
      expect(existsSync(`${path}.new`)).toBe(false);
    });

    it('goes on after one that was interrupted when the database had just got its name', () => {
      makeDatabase(path);
      rmSync(`${path}.lock`);
      writeFileSync(`${path}.lock`, '');
      expect(open().created).toBe(false);
    });
  });

  describe('the lock', () => {
    it('lets nobody else in this process in', async () => {
      const { store } = await openTestStore(path);
      await expect(openTestStore(path)).rejects.toMatchObject({ code: 'store_in_use' });
      expect(thrownBy(() => openForWriting(openOptions(path)))).toMatchObject({ code: 'store_in_use' });
      await store.close();
      expect(open().created).toBe(false);
    });

    it('lets no other process in', async () => {
      open();
      expect(await startChild(['open', path]).line).toMatchObject({ code: 'store_in_use' });
    });

    it('is freed when its process is killed', async () => {
      const { child, line, ended } = startChild(['hold', path]);
      expect(await line).toEqual({ created: true });
      expect(thrownBy(() => open())).toMatchObject({ code: 'store_in_use' });
      child.kill('SIGKILL');
      await ended;
      expect(open().created).toBe(false);
    });

    it('is freed when opening fails', () => {
      makeDatabase(path);
      expect(thrownBy(() => open({ secretsKeyId: 'key-2' }))).toMatchObject({ code: 'secrets_key_wrong' });
      expect(open().created).toBe(false);
    });

    it('is told from a file of another kind', () => {
      makeDatabase(path);
      writeFileSync(`${path}.lock`, 'not a lock file, and long enough to be looked at as a database'.repeat(20));
      const fault = thrownBy(() => open());
      expect(fault).toMatchObject({ code: 'store_corrupt' });
      expect(fault.message).toContain(`${path}.lock is not a lock file`);
    });
  });

  describe('a symbolic link in the place of the database', () => {
    it('is refused: under two names two processes could work on one database', () => {
      const target = join(folder, 'target.db');
      makeDatabase(target);
      symlinkSync(target, path);
      const fault = thrownBy(() => open());
      expect(fault).toMatchObject({ code: 'configuration_invalid', kind: 'terminal' });
      expect(fault.message).toContain(`${path} is a symbolic link`);
    });

    it('that leads nowhere is not replaced by a new database', () => {
      symlinkSync(join(folder, 'not mounted', 'settled.db'), path);
      expect(thrownBy(() => open())).toMatchObject({ code: 'configuration_invalid' });
      expect(lstatSync(path).isSymbolicLink()).toBe(true);
    });

    it('is fine in the place of its folder', () => {
      mkdirSync(join(folder, 'volume'));
      symlinkSync(join(folder, 'volume'), join(folder, 'data'));
      path = join(folder, 'data', 'settled.db');
      expect(open().created).toBe(true);
    });
  });

  describe('a lost database', () => {
    it('is not replaced by an empty one: the lock file knows of it, and the message says how to restore', () => {
      makeDatabase(path);
      rmSync(path);
      expect(isFirstStart(path)).toBe(false);
      const fault = thrownBy(() => open());
      expect(fault).toMatchObject({ code: 'store_lost', kind: 'terminal' });
      expect(fault.message).toContain(`cp BACKUP.db ${path}`);
      expect(existsSync(path)).toBe(false);
      // As the message says.
      rmSync(`${path}.lock`);
      expect(open().created).toBe(true);
    });

    it('is not replaced where only its log is left', () => {
      makeDatabase(path);
      rmSync(path);
      rmSync(`${path}.lock`);
      writeFileSync(`${path}-wal`, 'what the log held');
      expect(isFirstStart(path)).toBe(false);
      expect(thrownBy(() => open())).toMatchObject({ code: 'store_lost' });
    });
  });

  it('works on a copy of the file, which carries everything', () => {
    makeDatabase(path);
    const copy = join(folder, 'copy.db');
    copyFileSync(path, copy);
    path = copy;
    expect(open()).toMatchObject({ created: false, instanceId: 'instance-1' });
  });
});
