import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';
import { runIn } from './settled.ts';

const ANOTHER_USER = 65_534;
const FILES = ['secrets-key', 'shop-token', 'shop.db.key', 'shop.db.operator-token'].map((name) => `data/${name}`);
const GIVEN = 'init --json --service-url http://127.0.0.1:1 --api-key-file none --public-url http://127.0.0.1:2'.split(
  ' ',
);
const isRoot = process.getuid?.() === 0;

describe('cli: init among other users', () => {
  it.for([
    ['a secret that the group can write', 'data/shop-token', 0o620, null],
    ['a secret that all can write', 'data/secrets-key', 0o602, null],
    ['a key beside a database that all can write', 'data/shop.db.key', 0o602, null],
    ["another user's token beside a database", 'data/shop.db.operator-token', 0o600, ANOTHER_USER],
    ["another user's secret", 'data/shop-token', 0o644, ANOTHER_USER],
    ["another user's folder of secrets", 'data', 0o755, ANOTHER_USER],
  ] as const)('keeps nothing of %s, and says what to do', async ([_, path, mode, owner], { skip }) => {
    skip(owner !== null && !isRoot, 'only root can give a file to another user');
    const folder = testFolder();
    mkdirSync(join(folder, 'data'));
    for (const file of FILES) writeFileSync(join(folder, file), '', { mode: 0o600 });
    chmodSync(join(folder, path), mode);
    if (owner !== null) chownSync(join(folder, path), owner, owner);
    const { code, stderr } = await runIn(folder, GIVEN, {});
    expect(code).toBe(EXIT.configuration);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'answer_refused',
      message: expect.stringContaining(`Another user can write ${join(folder, path)}`),
    });
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual([...FILES, 'data'].sort());
  });

  it.runIf(isRoot)('follows no link of another user to a folder of secrets', async () => {
    const [folder, target] = [testFolder(), testFolder()];
    chmodSync(target, 0o755);
    symlinkSync(target, join(folder, 'data'));
    lchownSync(join(folder, 'data'), ANOTHER_USER, ANOTHER_USER);
    const { code, stderr } = await runIn(folder, GIVEN, {});
    expect(code).toBe(EXIT.configuration);
    expect(JSON.parse(stderr).error.message).toMatch(/^Another user can write .*data, /);
    expect([readdirSync(target), statSync(target).mode & 0o777]).toEqual([[], 0o755]);
  });
});
