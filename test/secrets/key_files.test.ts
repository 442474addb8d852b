import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  olderKeyFiles,
  operatorTokenFile,
  replaceSecretsKeyFile,
  secretsKeyFile,
} from '../../src/secrets/key_files.ts';
import { operatorTokenPath } from '../../src/store/address.ts';
import { makeDatabase, startChild, thrownBy } from '../store/sqlite/opening.ts';
import { testFolder } from '../support/app.ts';
import { eventually } from '../support/timing.ts';

describe('the files next to the database', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = testFolder();
    path = join(folder, 'data', 'settled.db');
  });

  describe('the secrets key', () => {
    it('is made on the first start, for its owner alone, another for each store, and is the same afterwards', () => {
      const key = secretsKeyFile(path);
      expect(key).toHaveLength(32);
      expect(statSync(`${path}.key`).mode & 0o777).toBe(0o600);
      expect(readdirSync(join(folder, 'data'))).toEqual(['settled.db.key']);
      makeDatabase(path);
      expect(secretsKeyFile(path)).toEqual(key);
      expect(secretsKeyFile(`${path}2`)).not.toEqual(key);
    });

    it('is not replaced for a store that has lost it', () => {
      makeDatabase(path);
      const fault = thrownBy(() => secretsKeyFile(path));
      expect(fault).toMatchObject({ code: 'secrets_key_missing', kind: 'terminal' });
      expect(fault.message).toContain(`${path}.key`);
      expect(readdirSync(join(folder, 'data'))).not.toContain('settled.db.key');
    });

    it.each([
      ['', 'store_foreign'],
      ['a text of another program', 'store_corrupt'],
    ])('is not asked for if the file is not a store: %j', (content, code) => {
      mkdirSync(join(folder, 'data'));
      writeFileSync(path, content);
      for (const makesFile of [false, true]) {
        expect(thrownBy(() => secretsKeyFile(path, { makesFile }))).toMatchObject({ code });
      }
      expect(readdirSync(join(folder, 'data'))).toEqual(['settled.db']);
    });

    it('is not replaced for a store that is lost itself', () => {
      makeDatabase(path);
      rmSync(path);
      for (const makesFile of [false, true]) {
        expect(thrownBy(() => secretsKeyFile(path, { makesFile }))).toMatchObject({ code: 'store_lost' });
      }
      expect(readdirSync(join(folder, 'data'))).not.toContain('settled.db.key');
    });

    it.each(['', 'c2hvcnQ=', 'x'.repeat(100)])('is refused if its file holds %j', (text) => {
      mkdirSync(join(folder, 'data'));
      writeFileSync(`${path}.key`, text);
      expect(thrownBy(() => secretsKeyFile(path))).toMatchObject({ code: 'secrets_key_wrong', kind: 'terminal' });
    });

    it('is one and the same for processes that start at once', async () => {
      const at = join(folder, 'settled.db');
      const children = [1, 2, 3].map(() => startChild(['keys', at]));
      const ready = () => readdirSync(folder).filter((name) => name.includes('.ready.'));
      await eventually(() => expect(ready()).toHaveLength(3));
      writeFileSync(`${at}.go`, '');
      const [first, second, third] = await Promise.all(children.map(({ line }) => line));
      expect(first).toEqual(Array.from({ length: 20 }, (_, n) => secretsKeyFile(`${at}.${n}`).toString('hex')));
      expect([second, third]).toEqual([first, first]);
    });

    it('says that its place is taken by a folder', () => {
      mkdirSync(`${path}.key`, { recursive: true });
      const fault = thrownBy(() => secretsKeyFile(path));
      expect(fault).toMatchObject({ code: 'store_unwritable', kind: 'terminal' });
      expect(fault.message).toContain(`${path}.key is a folder`);
    });

    it('is not missed if a folder is in place of the database', () => {
      mkdirSync(path, { recursive: true });
      const fault = thrownBy(() => secretsKeyFile(path));
      expect(fault).toMatchObject({ code: 'configuration_invalid', kind: 'terminal' });
      expect(fault.message).toContain(`${path} is a folder`);
    });

    it.each([
      ['before it had its name', false],
      ['after', true],
    ])('leaves no draft of a start that was killed %s', (_when, isMade) => {
      const key = isMade ? secretsKeyFile(path) : null;
      mkdirSync(join(folder, 'data'), { recursive: true });
      for (const name of ['key.0123456789ab.new', 'key.0123456789ab.old', 'db.key.0123456789ab.new']) {
        writeFileSync(join(folder, 'data', `settled.${name}`), '');
      }
      writeFileSync(`${path}.new`, '');
      if (isMade) expect(secretsKeyFile(path)).toEqual(key);
      else secretsKeyFile(path);
      expect(readdirSync(join(folder, 'data')).sort()).toEqual([
        'settled.db.key',
        'settled.db.new',
        'settled.key.0123456789ab.new',
        'settled.key.0123456789ab.old',
      ]);
    });

    it('is reported if it cannot be made', () => {
      writeFileSync(join(folder, 'data'), 'a file where a folder should be');
      expect(thrownBy(() => secretsKeyFile(path))).toMatchObject({ code: 'store_unwritable', kind: 'terminal' });
    });
  });

  describe('a new secrets key', () => {
    const keyId = '0123456789abcdef';

    it('replaces the current one, which is kept for its owner alone', () => {
      const key = secretsKeyFile(path);
      const fresh = replaceSecretsKeyFile(path, { key, keyId });
      expect(secretsKeyFile(path)).toEqual(fresh);
      expect(fresh).not.toEqual(key);
      expect(olderKeyFiles(path)).toEqual([key]);
      for (const file of [`${path}.key`, `${path}.key.${keyId}`]) {
        expect(statSync(file).mode & 0o777).toBe(0o600);
      }
      expect(readdirSync(join(folder, 'data'))).toHaveLength(2);
    });

    it('does not exist before the current one is in a separate file', () => {
      const key = secretsKeyFile(path);
      rmSync(`${path}.key`);
      mkdirSync(`${path}.key`);
      expect(() => replaceSecretsKeyFile(path, { key, keyId })).toThrow(`${path}.key is a folder`);
      expect(olderKeyFiles(path)).toEqual([key]);
      expect(readdirSync(join(folder, 'data')).sort()).toEqual(['settled.db.key', `settled.db.key.${keyId}`]);
    });

    it('is found among other files, which are not keys', () => {
      const key = secretsKeyFile(path);
      replaceSecretsKeyFile(path, { key, keyId });
      const half = `${path}.key.0000000000000000`;
      for (const file of [half, `${path}.key.old`, `${path}.key.${keyId}.bak`]) writeFileSync(file, 'half');
      mkdirSync(`${path}.key.1111111111111111`);
      symlinkSync('nowhere', `${path}.key.2222222222222222`);
      expect(olderKeyFiles(path)).toEqual([key]);
    });

    it('is named if the previous one cannot be read', () => {
      mkdirSync(join(folder, 'data'));
      symlinkSync(`settled.db.key.${keyId}`, `${path}.key.${keyId}`);
      const fault = thrownBy(() => olderKeyFiles(path));
      expect(fault).toMatchObject({ code: 'secrets_key_wrong', kind: 'terminal' });
      expect(fault.message).toContain(`${path}.key.${keyId} has the name of an older secrets key, and cannot be read`);
    });
  });

  describe('the operator token', () => {
    it('is made once, for its owner alone', () => {
      const token = operatorTokenFile(path);
      expect(token).toMatch(/^[A-Za-z0-9_-]{32}$/);
      expect(operatorTokenFile(path)).toBe(token);
      expect(statSync(operatorTokenPath(path)).mode & 0o777).toBe(0o600);
      expect(readFileSync(operatorTokenPath(path), 'utf8')).toBe(`${token}\n`);
    });

    it.each(['short', 'x'.repeat(513), 'with a space in the middle', 'with-umläuts-in-it'])(
      'is refused if no request could carry it: %s',
      (text) => {
        mkdirSync(join(folder, 'data'));
        writeFileSync(operatorTokenPath(path), text);
        expect(thrownBy(() => operatorTokenFile(path))).toMatchObject({ code: 'configuration_invalid' });
      },
    );
  });
});
