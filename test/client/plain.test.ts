import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { SHOP_TOKEN, testFolder } from '../support/app.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { spawnProgram } from '../support/process.ts';
import { freshReference, sharedApp } from '../support/shared.ts';

const CLIENT = fileURLToPath(new URL('../../client/settled.ts', import.meta.url));
const OLDEST = 20;

const settled = sharedApp();

/** The machine's own Node, without what npm puts before it in PATH. */
const PATH = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':');

const SCRIPT = `
import { SettledError, settledClient } from './settled.mjs';
const { URL_OF_SETTLED: url, SHOP_TOKEN: token, SHOP_SECRET: secret, SIGNED } = process.env;
const settled = settledClient({ url, token, secret });
const references = [];
for await (const page of settled.feed({ after: null, follow: false })) {
  for (const { data } of page.notices) references.push(data.order.reference);
}
const over = new AbortController();
for await (const page of settled.feed({ after: null, signal: over.signal })) over.abort(page);
const { id } = settled.verify('{}', JSON.parse(SIGNED));
const code = await settled.check('nobodys').catch((error) => error instanceof SettledError && error.code);
console.log(JSON.stringify({ references, id, code }));
`;

it(`the client runs without its types, on Node ${OLDEST} or newer`, async ({ skip }) => {
  const { error, stdout: version } = spawnSync('node', ['--version'], { env: { PATH }, encoding: 'utf8' });
  const isFitting = error === undefined && Number(/^v(\d+)/.exec(version)?.[1]) >= OLDEST;
  skip(!isFitting, `this machine has no node of version ${OLDEST} or newer in its PATH`);
  const reference = freshReference();
  await settled().deliver(await settled().reserve(reference), paymentEvent());
  await expect.poll(async () => (await settled().order(reference)).state).toBe('paid');

  const folder = testFolder();
  writeFileSync(join(folder, 'settled.mjs'), stripTypeScriptTypes(readFileSync(CLIENT, 'utf8')));
  writeFileSync(join(folder, 'shop.mjs'), SCRIPT);
  const at = new Date();
  const signed = {
    'webhook-id': 'msg_1_a',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(SHOP_SECRET).sign('msg_1_a', at, '{}'),
  };
  const environment = {
    URL_OF_SETTLED: settled().apiUrl,
    SHOP_TOKEN,
    SHOP_SECRET,
    SIGNED: JSON.stringify(signed),
    PATH,
  };
  const { stdout, stderr } = await spawnProgram(['node', join(folder, 'shop.mjs')], environment).finished;
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({ references: [reference], id: 'msg_1_a', code: 'not_found' });
});
