import { chmodSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openForWriting } from '../../../src/store/sqlite/open.ts';
import { testFolder } from '../../support/app.ts';
import { boundByFileModes, NO_FILE_MODES } from '../../support/process.ts';
import { changeAsAnother, makeDatabase, openOptions, startChild, thrownBy } from './opening.ts';

describe('opening a SQLite store', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = testFolder();
    path = join(folder, 'settled.db');
  });

  /** What is thrown where the store cannot be opened; what stands there stays as it was. */
  function refused(over: Parameters<typeof openOptions>[1] = {}) {
    const size = () => statSync(path, { throwIfNoEntry: false })?.size;
    const before = size();
    const fault = thrownBy(() => openForWriting(openOptions(path, over)));
    expect(size()).toBe(before);
    return fault;
  }

  const change = (sql: string) => changeAsAnother(path, sql);

  describe('a file that is not ours to use', () => {
    const made = (then = () => {}) => {
      makeDatabase(path);
      then();
    };

    it.each<[string, () => void, string, RegExp?]>([
      ['an empty file', () => writeFileSync(path, ''), 'store_foreign', /is an empty file/],
      ['garbage', () => writeFileSync(path, 'this is not a database; it is a text. '.repeat(100)), 'store_corrupt'],
      ['a database that lost its end', () => made(() => truncateSync(path, 4096 * 3)), 'store_corrupt'],
      ['a database of another program', () => change('CREATE TABLE something (x)'), 'store_foreign'],
      ['one without its instance row', () => made(() => change('DELETE FROM instance')), 'store_foreign'],
      ['one whose version is newer', () => made(() => change('PRAGMA user_version = 9999')), 'store_newer'],
      [
        'one with a migration that it does not know',
        () => made(() => change("INSERT INTO migration VALUES (9999, '9999_later.sql', 'x')")),
        'store_newer',
        /9999_later\.sql/,
      ],
      [
        'one with a migration of another number',
        () => made(() => change('UPDATE migration SET number = 77 WHERE number = 1')),
        'store_newer',
      ],
      [
        'one that was migrated with another file',
        () => made(() => change("UPDATE migration SET sha256 = 'x' WHERE number = 2")),
        'store_migration_changed',
      ],
    ])('refuses %s', (_what, arrange, code, words = /./) => {
      arrange();
      expect(refused()).toMatchObject({ code, kind: 'terminal', message: expect.stringMatching(words) });
    });

    it('refuses a database that was made with another secrets key, and names both keys', () => {
      makeDatabase(path);
      const fault = refused({ secretsKeyId: 'key-2' });
      expect(fault).toMatchObject({ code: 'secrets_key_wrong', kind: 'terminal' });
      expect(fault.message).toMatch(/id key-1.*id key-2/s);
    });

    it('refuses a folder in the place of the database', () => {
      mkdirSync(path);
      const fault = refused();
      expect(fault).toMatchObject({ code: 'configuration_invalid', kind: 'terminal' });
      expect(fault.message).toContain(`${path} is a folder`);
    });

    it('refuses a path through a file', () => {
      writeFileSync(path, 'a file');
      path = join(path, 'settled.db');
      expect(refused()).toMatchObject({ code: 'store_unwritable', kind: 'terminal' });
    });
  });

  describe('a place that cannot be written', () => {
    /** Opens the store in a process that may not write what `modes` forbid. */
    async function openBound(
      skip: (condition: boolean, note: string) => void,
      modes: Record<string, number>,
    ): Promise<{ code?: string; message?: string }> {
      const command = boundByFileModes();
      skip(command === null, NO_FILE_MODES);
      for (const [file, mode] of Object.entries(modes)) chmodSync(file, mode);
      try {
        return await startChild(['open', path], { command: command ?? [] }).line;
      } finally {
        for (const file of Object.keys(modes)) chmodSync(file, 0o700);
      }
    }

    it('is refused where nothing is there yet', async ({ skip }) => {
      expect(await openBound(skip, { [folder]: 0o555 })).toMatchObject({ code: 'store_unwritable' });
    });

    it('is refused where the database can be read but not written', async ({ skip }) => {
      makeDatabase(path);
      const { code, message } = await openBound(skip, { [path]: 0o444, [folder]: 0o555 });
      expect(code).toBe('store_unwritable');
      expect(message).toContain('Give the user that runs settled write access');
    });
  });
});
