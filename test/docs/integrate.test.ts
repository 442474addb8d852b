import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { settledClient } from '../../client/settled.ts';
import { order } from '../../src/api/order.ts';
import { NOTICE_TYPES } from '../../src/domain/notice.ts';
import { SHOP_TOKEN, startTestApp, testFolder } from '../support/app.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { compileBesideClient } from '../support/client_types.ts';
import { anchorsOf, blocksIn, targetsOf } from '../support/markdown.ts';
import { freePort } from '../support/network.ts';
import { skipWithout, spawnProgram } from '../support/process.ts';
import { startTestSandbox } from '../support/sandbox.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/integrate.md'), 'utf8');

it('docs/integrate.md says of every type of notice what to do', () => {
  const section = page.split(/^## /m).find((part) => part.startsWith('What to do for each type')) ?? '';
  const rows = [...section.matchAll(/^\| `([\w.]+)` \| (.+) \| (.+) \|$/gm)];
  expect(rows.map(([, type]) => type).sort()).toEqual([...NOTICE_TYPES].sort());
});

it('docs/integrate.md shows a whole notice', () => {
  const [, text = ''] = /^A whole notice[^`]*```json\n(.*?)```/ms.exec(page) ?? [];
  const { type, timestamp, data, ...others } = JSON.parse(text);
  expect(others).toEqual({});
  expect(NOTICE_TYPES).toContain(type);
  expect(new Date(timestamp).toISOString()).toBe(timestamp);
  expect(order.parse(data.order)).toMatchObject({ version: data.version });
});

it('docs/integrate.md has a place for every link within it', () => {
  const anchors = anchorsOf(page, /##/);
  const targets = targetsOf(page);
  expect(targets.filter((target) => !anchors.includes(target))).toEqual([]);
  expect(anchors.filter((anchor) => !targets.includes(anchor))).toEqual([]);
});

it('docs/integrate.md has a row for each function of the client', () => {
  const section = page.split(/^## /m).find((part) => part.startsWith('The client for TypeScript')) ?? '';
  const rows = [...section.matchAll(/^\| `(\w+)\(/gm)].map(([, name]) => name);
  const client = settledClient({ url: 'http://127.0.0.1:8788', token: SHOP_TOKEN });
  expect(rows.sort()).toEqual(Object.keys(client).sort());
});

it('docs/integrate.md shows TypeScript that the compiler takes', () => {
  const blocks = blocksIn(page, 'ts');
  expect(blocks).toHaveLength(2);
  // What a shop has of its own.
  const own = `declare function transaction(work: (db: object) => Promise<void>): Promise<void>;
    declare function readCursor(): Promise<string | null>;
    declare function storeCursor(db: object, cursor: string): Promise<void>;
    declare function record(db: object, order: { reference: string; state: string; version: number }): Promise<void>;
    declare function pack(db: object): Promise<void>;`;
  expect(compileBesideClient([...blocks, own].join('\n'))).toEqual([]);
  expect(compileBesideClient([...blocks, own].join('\n').replace("'100.00'", 'true'))).toHaveLength(1);
});

it('docs/integrate.md shows commands that do what it says when they are pasted', async ({ skip }) => {
  skipWithout(skip, ['bash', 'curl', 'openssl', 'sed', 'od', 'base64']);
  const folder = testFolder();
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'data/shop-token'), `${SHOP_TOKEN}\n`);
  writeFileSync(join(folder, 'data/shop-secret'), `${SHOP_SECRET}\n`);
  const sandbox = await startTestSandbox();
  const [hooks, listen] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const settled = await startTestApp({
    environment: {
      SETTLED_HOOKS_LISTEN: hooks,
      SETTLED_PUBLIC_URL: `http://${hooks}`,
      SETTLED_API_URL: sandbox.url,
      SETTLED_API_KEY: sandbox.apiKey,
    },
  });
  const environment = { SHOP_TOKEN, SHOP_SECRET, SHOP_LISTEN: listen, SHOP_SETTLED: settled.apiUrl };
  const shop = spawnProgram([process.execPath, join(ROOT, 'examples/express/shop.ts')], {
    ...environment,
    SHOP_STORE: join(folder, 'shop'),
  });
  await shop.line(/the shop is open/);

  const script = blocksIn(page)
    .join("printf '\\n--\\n'\n")
    .replaceAll('http://127.0.0.1:8788', settled.apiUrl)
    .replaceAll('http://127.0.0.1:8790', sandbox.url)
    .replaceAll('http://127.0.0.1:8800', `http://${listen}`)
    .replaceAll('npm run -s sandbox --', `'${process.execPath}' '${join(ROOT, 'bin/settled.mjs')}' sandbox`);
  const said = (await pasted(script, folder)).split('\n--\n');
  const [fed = '', now = '', rest = '', timeline = '', secret = '', byHand = ''] = said;
  expect(fed).toContain('"reference":"order-5001","state":"paid"');
  expect(JSON.parse(now)).toEqual({
    notices: [],
    cursor: JSON.parse(fed.slice(fed.indexOf('{"notices"'))).cursor,
    more: false,
  });
  expect(JSON.parse(rest)).toMatchObject({ notices: [], more: false });
  expect(JSON.parse(timeline).answer).toMatch(/order-5001.* is paid/);
  expect(secret).toMatch(/^whsec_[\w+/]{43}=\n$/);
  expect(byHand).toBe('401\n204\n');
  expect(shop.stdout()).toContain('order-5002 is paid: pack it');
});

/** Runs the commands beside this process, which serves them; resolves with what they print. */
function pasted(script: string, cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('bash', ['-euc', script], { cwd, encoding: 'utf8' }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
    });
  });
}
