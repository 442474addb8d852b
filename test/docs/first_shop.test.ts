import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { testFolder } from '../support/app.ts';
import { blocksIn } from '../support/markdown.ts';
import { freePort } from '../support/network.ts';
import { skipWithout, spawnProgram, spawnSandbox, spawnSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/first-shop.md'), 'utf8');
const [install = '', , setUp = '', start = '', sell = '', resend = ''] = blocksIn(page);
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const [code = ''] = blocksIn(page, 'js');

it('docs/first-shop.md shows a shop of 40 lines that packs a paid order once when it is pasted', async ({ skip }) => {
  skipWithout(skip, ['bash', 'curl']);
  expect(install).toContain(`npm install ./settled-${version}.tgz\n`);
  expect(code.trimEnd().split('\n')).toHaveLength(40);
  const folder = testFolder();
  const ports = new Map<string, number>();
  for (const port of ['8787', '8788', '8790', '8800']) ports.set(port, await freePort());
  const here = (text: string) =>
    text
      .replaceAll(/(?<=[:(])(?:8787|8788|8790|8800)\b/g, (port) => String(ports.get(port)))
      .replaceAll('npx settled', `'${process.execPath}' '${join(ROOT, 'bin/settled.mjs')}'`)
      .replace('node shop.mjs', `exec '${process.execPath}' shop.mjs`);
  const environment = { SETTLED_HOOKS_LISTEN: here('127.0.0.1:8787'), SETTLED_OPERATOR_LISTEN: here('127.0.0.1:8788') };
  const paste = async (commands: string) => {
    const env = { PATH: process.env.PATH ?? '', ...environment };
    // Where to ask the sandbox that is not at its usual address.
    const pasted = here(commands).replace(/( sandbox pay .*)/, here('$1 --url http://127.0.0.1:8790'));
    return (await promisify(execFile)('bash', ['-euc', pasted], { cwd: folder, env })).stdout;
  };

  const sandbox = spawnSandbox(['--api-key', 'try-it', '--listen', here('127.0.0.1:8790')]);
  await sandbox.line(/Stop with Ctrl/);
  expect(await paste(setUp.replace(/ &&\n +npx settled serve\n$/, ''))).toMatch(/^ok +public address/m);
  await spawnSettled(['serve'], environment, { cwd: folder }).line(/settled is serving/);
  const client = JSON.stringify(join(ROOT, 'client/settled.ts'));
  writeFileSync(join(folder, 'shop.mjs'), here(code).replace("'settled/client'", client));
  const shop = spawnProgram(['bash', '-euc', here(start)], {}, { cwd: folder });
  await shop.line(/^Open http/);

  await paste(sell);
  const packed = await shop.line(/^lamp-[\w-]+ is paid: pack it$/);
  const [reference = ''] = packed.split(' ');
  expect(readdirSync(join(folder, 'packed'))).toEqual([reference]);
  // The shop packs before settled knows that it took the notice, and one that is being sent is not sent again.
  const allTaken = async () => {
    const { notices } = JSON.parse(await paste('npx settled notices list --json'));
    expect(notices.map(({ status }: { status: string }) => status)).toEqual(['done', 'done']);
  };
  await eventually(allTaken);
  expect(await paste(resend.replaceAll('REFERENCE', reference))).toContain('order.paid');
  await eventually(async () => {
    const { runs } = JSON.parse(await paste('npx settled bulk list --json'));
    expect(runs).toMatchObject([{ status: 'done', total: 2, changed: 2, skipped: 0, failed: 0 }]);
    await allTaken();
  });
  expect((await fetch(here('http://127.0.0.1:8800/settled'), { method: 'POST', body: '{}' })).status).toBe(401);
  expect(shop.stdout().match(/pack it/g)).toHaveLength(1);
});
