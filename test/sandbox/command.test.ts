import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { RunningProcess } from '../../prove/harness/program.ts';
import { FAULTS } from '../../sandbox/fault_plans.ts';
import { SWITCHES } from '../../sandbox/options.ts';
import { SCENARIOS } from '../../sandbox/scenarios.ts';
import { testFolder } from '../support/app.ts';
import { runSandbox, spawnSandbox } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestSandbox } from '../support/sandbox.ts';

const BIN = fileURLToPath(new URL('../../bin', import.meta.url));

type Running = RunningProcess & { url: string; apiKey: string; seed: string };
type At = Pick<Running, 'url' | 'apiKey'>;

/** `settled sandbox` as a process of its own, on a free port. */
async function start(args: readonly string[] = [], environment: Record<string, string> = {}): Promise<Running> {
  const running = spawnSandbox(['--listen', '127.0.0.1:0', '--json', ...args], environment);
  return { ...running, ...JSON.parse(await running.line(/"url"/)) };
}

const run = (...args: string[]) => runSandbox(args);

/** Runs a command at a running sandbox, and reads what it says. */
async function say({ url }: At, ...args: string[]) {
  const end = await run(...args, '--url', url, '--json');
  expect(end).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(end.stdout);
}

async function createLink({ url, apiKey }: At, reference: string, over: object = {}) {
  const response = await fetch(`${url}/api/v1/payment-links`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ title: 'Order', amount: 100, externalReference: reference, ...over }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { paymentLink: { id: string } }).paymentLink;
}

describe('command: serving', () => {
  it('says that no money is real, its address, and how to continue; and stops with 0', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const running = spawnSandbox(['--listen', '127.0.0.1:0', '--seed', 'a']);
      await running.line(/Stop with Ctrl\+C/);
      running.child.kill(signal);
      const { code, stdout, stderr } = await running.finished;
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain('NO MONEY HERE IS REAL');
      expect(stdout).toMatch(/API key +sandbox_\S+/);
      expect(stdout).toMatch(/control +http:\/\/127\.0\.0\.1:\d+\/_control/);
      expect(stdout).toMatch(/page and panel +http:\/\/127\.0\.0\.1:\d+\/pay\/LINK/);
    }
  });

  it('takes the API key from its option, from the environment, and from the seed', async () => {
    const fromOption = await start(['--api-key', 'key-of-option'], { SETTLED_SANDBOX_API_KEY: 'unused' });
    const fromEnvironment = await start([], { SETTLED_SANDBOX_API_KEY: 'key-of-environment' });
    const [one, same] = await Promise.all([start(['--seed', 'a']), start(['--seed', 'a'])]);
    expect([fromOption.apiKey, fromEnvironment.apiKey]).toEqual(['key-of-option', 'key-of-environment']);
    expect(one.apiKey).toBe(same.apiKey);
    await createLink(fromOption, 'order-1');
  });

  it('has the given environment, switches, fault plans and limit', async () => {
    const running = await start([
      ...['--environment', 'sandbox', '--set', 'signature=base64', '--set', 'retries=signed-once'],
      ...['--fault', '{"fault": "server-error"}', '--no-rate-limit', '--time-scale', '60'],
    ]);
    const told = await (await fetch(`${running.url}/_control`)).json();
    expect(told).toMatchObject({
      environment: 'sandbox',
      rateLimit: null,
      silences: { signature: 'base64', retries: 'signed-once' },
      counts: { faults: 1 },
    });
  });

  it('keeps everything in its file when it is killed', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const first = await start(['--data', data]);
    const { id } = await createLink(first, 'order-1');
    await say(first, 'pay', 'order-1');
    await say(first, 'clock', '100h');
    await first.end('SIGKILL');
    const second = await start(['--data', data]);
    expect([second.apiKey, second.seed]).toEqual([first.apiKey, first.seed]);
    expect((await say(second, 'links', 'order-1')).link).toMatchObject({ id, paymentStatus: 'COMPLETED' });
    const { time } = await say(second, 'clock');
    expect(Date.parse(time) - Date.now()).toBeGreaterThan(99 * 3_600_000);
  });
});

describe('command: what it refuses', () => {
  it('listens beyond loopback only if --allow-remote says so', async () => {
    const refused = await run('--listen', '0.0.0.0:0');
    expect(refused).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining('--allow-remote') });
    const allowed = spawnSandbox(['--listen', '0.0.0.0:0', '--allow-remote', '--json']);
    // A client cannot connect to every address.
    expect(JSON.parse(await allowed.line(/"url"/)).url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  it('says that an address or a file is in use', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const { url } = await start(['--data', data]);
    const address = await run('--listen', new URL(url).host);
    expect(address).toMatchObject({ code: 75, stderr: expect.stringContaining(`${new URL(url).host} is in use`) });
    const file = await run('--listen', '127.0.0.1:0', '--data', data);
    expect(file).toMatchObject({ code: 75, stderr: expect.stringContaining(`${data} is in use`) });
  });

  it('leaves the database of another program as it is', async () => {
    const data = join(testFolder(), 'other.db');
    const other = new Database(data);
    other.exec('CREATE TABLE mine (n INTEGER)');
    other.close();
    const { code, stderr } = await run('--listen', '127.0.0.1:0', '--data', data);
    expect([code, stderr]).toEqual([73, expect.stringContaining('database of another program')]);
    const after = new Database(data, { readonly: true });
    expect(after.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['mine']);
    after.close();
  });

  it.for([
    ['a command', ['frobnicate'], ['settled sandbox help']],
    ['a command that is nearly right', ['clokc'], ['`settled sandbox clock`']],
    ['a scenario', ['play', 'sunshine'], Object.keys(SCENARIOS)],
    ['a fault', ['--listen', '127.0.0.1:0', '--fault', '{"fault":"gremlin"}'], Object.keys(FAULTS)],
    ['a fault that is no JSON', ['--fault', 'drop'], ['JSON']],
    ['a switch', ['--set', 'colour=red'], Object.keys(SWITCHES)],
    ['a value', ['--set', 'signature=rot13'], SWITCHES.signature.values],
    ['an environment', ['--environment', 'test'], ['sandbox', 'production']],
    ['an address', ['--listen', '8790'], ['HOST:PORT']],
    ['a time scale', ['--time-scale', '0'], ['above 0']],
    ['an API key', ['--api-key', 'two words'], ['printable']],
    ['an amount', ['play', 'happy', '--webhook-url', 'http://x/', '--webhook-secret', 's', '--amount', '25'], ['25']],
    ['a play without receiver', ['play', 'happy'], ['--webhook-url']],
    ['a play without secret', ['play', 'happy', '--webhook-url', 'http://x/'], ['--webhook-secret']],
    ['an option twice', ['--seed', 'a', '--seed', 'b'], ['twice']],
    ['an address of no sandbox', ['clock', '--url', 'here'], ['--url']],
    ['an address with a password', ['clock', '--url', 'http://me:word@127.0.0.1'], ['--url', 'without a password']],
  ] as const)('refuses %s that is unknown or wrong, and names the known ones', async ([, args, known]) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([64, '']);
    for (const name of known) expect(stderr).toContain(name);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('command: a running sandbox', () => {
  it('pays, refunds, disputes, expires and switches links, and shows what the receiver answered', async () => {
    const { url: webhookUrl } = await startReceiver(202);
    const running = await startTestSandbox();
    for (const name of ['one', 'two', 'three']) await createLink(running, name, { webhookUrl });

    const paid = await run('pay', 'one', '--url', running.url, '--method', 'CREDIT_CARD', '--installments', '3');
    expect(paid).toMatchObject({ code: 0, stderr: '' });
    expect(paid.stdout).toMatch(/payment status +COMPLETED/);
    expect(paid.stdout).toMatch(/amount +100\.00 BRL/);
    expect(paid.stdout).toMatch(/payment_status_changed COMPLETED +acknowledged +1 +1 +- +202/);
    const [refunded, pending] = await Promise.all([
      say(running, 'refund', 'one'),
      say(running, 'pay', 'two', '--pending'),
    ]);
    expect(refunded.link).toMatchObject({
      payments: [{ status: 'REFUNDED', quote: { paymentMethod: 'CREDIT_CARD', installments: 3 } }],
    });
    expect(pending.link.paymentStatus).toBe('PENDING');
    const abroad = await say(running, 'pay', 'three', '--money', 'other-currency');
    expect(abroad.link.payments[0].quote).toMatchObject({ amount: 18, currency: 'USD' });
    const [disputed, expired] = await Promise.all([say(running, 'dispute', 'three'), say(running, 'expire', 'two')]);
    expect(disputed.link.payments[0].status).toBe('DISPUTED');
    expect(expired.link.status).toBe('EXPIRED');
    const won = await say(running, 'win', 'three');
    expect(won.link.payments[0].status).toBe('COMPLETED');
    expect((await say(running, 'disable', 'one')).link.status).toBe('INACTIVE');
    expect((await say(running, 'enable', 'one')).link.status).toBe('ACTIVE');
  });

  it('turns the clock, plans faults, lists deliveries and resends', async () => {
    const running = await startTestSandbox();
    await createLink(running, 'order-1', { webhookUrl: 'http://127.0.0.1:1/' });
    const before = await say(running, 'deliveries', 'order-1');
    expect(before.deliveries).toMatchObject([{ kind: 'payment_link.created', status: 'waiting' }]);
    const { faults } = await say(running, 'faults', '{"fault": "drop", "count": null, "with": {"forGood": true}}');
    expect(faults).toMatchObject([{ fault: 'drop', remaining: null }]);
    await say(running, 'clock', '17h');
    const [byDelivery, byEvent] = await Promise.all(
      [before.deliveries[0].id, before.deliveries[0].event].map((id) => say(running, 'resend', id)),
    );
    expect([byDelivery, byEvent]).toMatchObject([
      { origin: 'resend', status: 'lost' },
      { origin: 'resend', status: 'lost' },
    ]);
    expect((await say(running, 'faults', '--clear')).faults).toEqual([]);
  });

  it('lists its commands, and the options of each', async () => {
    const [all, one] = await Promise.all([run('help'), run('play', '--help')]);
    for (const name of ['serve', 'pay', 'refund', 'dispute', 'expire', 'play']) {
      expect(all.stdout).toContain(`settled sandbox ${name}`);
    }
    for (const name of ['--webhook-secret', ...Object.keys(SCENARIOS)]) expect(one.stdout).toContain(name);
    expect([all.code, one.code]).toEqual([0, 0]);
  });
});

describe('command: the launcher', () => {
  const launch = (launcher: string, ...args: string[]) =>
    spawnSync(process.execPath, [launcher, ...args], { encoding: 'utf8' });

  it.for([
    [['sandbox', 'help', 'play']],
    [['help', 'sandbox', 'play']],
    [['--json', 'sandbox', 'help', 'play']],
  ] as const)('hands %j to the sandbox', ([args]) => {
    const { status, stdout } = launch(join(BIN, 'settled.mjs'), ...args);
    expect([status, stdout]).toEqual([0, expect.stringContaining('webhook-secret')]);
  });

  it('has it in the help of settled', () => {
    expect(launch(join(BIN, 'settled.mjs'), 'help').stdout).toMatch(/^ {2}settled sandbox /m);
  });

  it('says in one sentence that the installation has no sandbox', () => {
    const folder = join(testFolder(), 'bin');
    cpSync(BIN, folder, { recursive: true });
    const { status, stdout, stderr } = launch(join(folder, 'settled.mjs'), 'sandbox');
    expect([status, stdout]).toEqual([69, '']);
    expect(stderr).toMatch(/^This installation of settled has no sandbox: .*\n$/);
  });

  it('leaves the sandbox out of the image', () => {
    const told = ['Dockerfile', '.dockerignore'].map((file) => readFileSync(join(BIN, '..', file), 'utf8'));
    expect(told.join()).not.toContain('sandbox');
  });
});
