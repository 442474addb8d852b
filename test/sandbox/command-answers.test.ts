import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testFolder } from '../support/app.ts';
import { runSandbox, spawnSandbox } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { createLink as createOrder } from './client.ts';

const run = (...args: string[]) => runSandbox(args);

/** Runs a command at this sandbox, and reads what it says to a person. */
async function say(sandbox: TestSandbox, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args, '--url', sandbox.url);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

async function refused(sandbox: TestSandbox, ...args: string[]): Promise<[number | null, string]> {
  const { code, stdout, stderr } = await run(...args, '--url', sandbox.url);
  expect(stdout).toBe('');
  return [code, stderr];
}

const createLink = (sandbox: TestSandbox, externalReference: string, over: object = {}) =>
  createOrder(sandbox, { externalReference, ...over });

/** Answers every delivery with this. */
async function startSaying(status: number, text: string): Promise<string> {
  const { url } = await startReceiver((_received, response) => void response.writeHead(status).end(text));
  return url;
}

describe('command: what it shows of deliveries', () => {
  it('shows what a receiver said that did not answer 2xx', async () => {
    const sandbox = await startTestSandbox();
    const text = `{"error":"stale_timestamp","detail":"${'x'.repeat(300)}"}`;
    await createLink(sandbox, 'order-1', { webhookUrl: await startSaying(400, text) });
    const told = await say(sandbox, 'pay', 'order-1');
    expect(told).toMatch(/^payment_status_changed COMPLETED was answered 400 {"error":"stale_timestamp".*…$/m);
  });

  it('says that events are not sent if the link has no webhookUrl', async () => {
    const sandbox = await startTestSandbox();
    await createLink(sandbox, 'order-1');
    expect(await say(sandbox, 'pay', 'order-1')).toContain('no webhookUrl');
  });

  it('says that a refund or a dispute sent no event, and which switch sends it', async () => {
    const sandbox = await startTestSandbox();
    const webhookUrl = await startSaying(200, '');
    for (const name of ['one', 'two']) await createLink(sandbox, name, { webhookUrl });
    await say(sandbox, 'pay', 'one');
    await say(sandbox, 'pay', 'two');
    const silent = await say(sandbox, 'refund', 'one');
    expect(silent).toContain('No event was sent: refund-event is none.');
    const [, value] = /silences refund-event=VALUE, with (\S+)/.exec(silent) ?? [];
    await say(sandbox, 'silences', `refund-event=${value}`);
    const told = await say(sandbox, 'dispute', 'two');
    expect(told).not.toContain('No event was sent');
    expect(told.match(/payment_status_changed/g)).toHaveLength(3);
  });

  it('says that only the panel sends events in environment `sandbox`', async () => {
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    await createLink(sandbox, 'order-1', { webhookUrl: 'http://127.0.0.1:9/' });
    expect(await say(sandbox, 'expire', 'order-1')).toContain(
      'environment `sandbox` only the panel on the page of the link sends events',
    );
  });

  it('shows what holds a delivery back, and every attempt of one', async () => {
    const sandbox = await startTestSandbox();
    await sandbox.control('/faults', { body: { fault: 'reorder', with: { by: 5 } } });
    await sandbox.control('/faults', { body: { fault: 'duplicate', match: { event: 'payment_link.status_changed' } } });
    await createLink(sandbox, 'order-1', { webhookUrl: await startSaying(202, 'taken') });
    expect(await say(sandbox, 'pay', 'order-1')).toMatch(/created +waiting .* until 2 more of its link are sent/);
    const { deliveries } = (await sandbox.control('/deliveries')).body;
    const told = await say(sandbox, 'deliveries', deliveries.at(-1).id);
    expect(told).toMatch(/SANDBOX TIME +ATTEMPT +FAULTS +RESPONSE\n/);
    expect(told).toMatch(/Z +1, copy 1 of 2 +duplicate +202 taken\n.*Z +1, copy 2 of 2 +duplicate +202 taken\n/);
    expect(await say(sandbox, 'events', 'order-1')).toMatch(/evt_\w+ +payment_status_changed COMPLETED +pl_\w+ +\S+Z/);
  });
});

describe('command: what it does at a running sandbox', () => {
  it('completes a pending payment, by `complete` and by `pay`', async () => {
    const sandbox = await startTestSandbox();
    for (const [name, command] of [
      ['one', 'complete'],
      ['two', 'pay'],
    ] as const) {
      await createLink(sandbox, name);
      await say(sandbox, 'pay', name, '--pending');
      expect(await say(sandbox, command, name)).toMatch(/payments +pay_\w+ COMPLETED\n/);
    }
  });

  it('shows the short code, which finds the link', async () => {
    const sandbox = await startTestSandbox();
    await createLink(sandbox, 'order-1');
    const [, short = ''] = /pl_\w+ +(\S+) +order-1/.exec(await say(sandbox, 'links')) ?? [];
    expect(await say(sandbox, 'links', short)).toMatch(/reference +order-1/);
  });

  it('says how far ahead the clock is, and that receivers refuse its time', async () => {
    const sandbox = await startTestSandbox();
    expect(await say(sandbox, 'clock')).toMatch(/^\S+Z\n$/);
    const turned = await say(sandbox, 'clock', '1d2h');
    expect(turned).toMatch(/^turned by 1d2h, now \S+Z\nThe sandbox is 1d2h ahead .* silences timestamps=true\n$/s);
    await say(sandbox, 'silences', 'timestamps=true');
    expect(await say(sandbox, 'clock')).toContain('stamped with real time');
  });

  it('marks spent fault plans, and removes one', async () => {
    const sandbox = await startTestSandbox();
    await sandbox.control('/faults', { body: { fault: 'server-error' } });
    await sandbox.control('/faults', { body: { fault: 'slow' } });
    expect((await sandbox.call('/merchant/profile')).status).toBe(503);
    expect(await say(sandbox, 'faults')).toMatch(/1 +server-error .* spent +1\n +2 +slow .* 1 +0\n/);
    expect(await say(sandbox, 'faults', '--remove', '1')).not.toContain('server-error');
  });

  it('lists the switches as they are set', async () => {
    const sandbox = await startTestSandbox({ switches: ['signature=base64'] });
    expect(await say(sandbox, 'silences')).toMatch(/signature +base64 +hex, hex-upper, base64/);
  });
});

describe('command: what it says is wrong', () => {
  it('has one exit code for each kind of error', async () => {
    const sandbox = await startTestSandbox();
    for (const name of ['one', 'two']) await createLink(sandbox, name);
    await say(sandbox, 'pay', 'one');
    await say(sandbox, 'refund', 'one');
    const cases: [string[], number, string][] = [
      [['clock', '5x'], 64, 'BY is "5x". Write BY as 17h, 90m, 2h30m, 1d'],
      [['clock', '-1h'], 64, 'has no option -1'],
      [['faults', '{"fault":"duplicate","with":{"times":1}}'], 64, 'times must be a whole number from 2 to 100'],
      [['faults', '1'], 64, 'JSON object'],
      [['faults', '{"fault":"drop"}', '--clear'], 64, 'one thing at a time'],
      [['faults', '--remove', 'one'], 64, '--remove is "one"'],
      [['faults', '--remove', '7'], 66, 'no fault plan 7'],
      [['silences', 'signature'], 64, 'Write NAME=VALUE; known for signature: hex,'],
      [['silences', 'signature=hex', 'retries=signed-once'], 64, 'takes one NAME=VALUE, so "retries='],
      [['silences', 'colour=red'], 64, 'known: signature,'],
      [['pay', 'two', '--method', 'CASH'], 64, '--method is "CASH". Choose one of: PIX, CREDIT_CARD'],
      [['pay', 'two', '--installments', '3'], 64, 'PIX has no instalments; choose CREDIT_CARD'],
      [['pay', 'one'], 1, 'INACTIVE and cannot be paid'],
      [['refund', 'one'], 1, 'its payment is REFUNDED already'],
      [['refund', 'two'], 66, 'no payment that is COMPLETED'],
      [['resend', 'foo'], 66, '"foo" is no event and no delivery'],
      [['deliveries', 'dlv_0'], 66, 'no delivery dlv_0'],
    ];
    for (const [args, code, message] of cases) {
      expect(await refused(sandbox, ...args)).toEqual([code, expect.stringContaining(message)]);
    }
  });

  it('gives programs the code, the sentence and the exit code', async () => {
    const sandbox = await startTestSandbox();
    const told = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stderr).error;
    expect(await told('frobnicate')).toMatchObject({ code: 'usage', exit: 64 });
    expect((await run('pay', 'one', '--url', 'http://127.0.0.1:1')).stderr).toContain('one with `settled sandbox`');
    expect(await told('links', 'nobody', '--url', sandbox.url)).toEqual({
      code: 'link_not_found',
      message: expect.stringContaining('"nobody"'),
      exit: 66,
    });
    expect(await told('links', '--url', 'http://127.0.0.1:1')).toMatchObject({ code: 'sandbox_unreachable', exit: 69 });
    expect(await told('links', '--url', await startSaying(200, '{}'))).toMatchObject({ code: 'no_sandbox', exit: 69 });
  });

  it('checks the command line before it opens anything', async () => {
    const { url } = await startTestSandbox();
    for (const plan of ['{}', '{"fault":"gremlin"}', '[]']) {
      const { code, stderr } = await run('--listen', new URL(url).host, '--fault', plan);
      expect([code, stderr]).toEqual([64, expect.stringMatching(/known: drop|JSON object/)]);
    }
    const taken = await run('--listen', new URL(url).host);
    expect([taken.code, taken.stderr]).toEqual([75, expect.stringContaining(`--url ${url}`)]);
  });
});

describe('command: the data file', () => {
  it('has mode 0600 if it is new, and keeps its mode if it is not', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const modeAfterStart = async () => {
      const running = spawnSandbox(['--listen', '127.0.0.1:0', '--json', '--data', data]);
      await running.line(/"url"/);
      await running.end('SIGTERM');
      return statSync(data).mode & 0o777;
    };
    expect(await modeAfterStart()).toBe(0o600);
    chmodSync(data, 0o640);
    expect(await modeAfterStart()).toBe(0o640);
  });

  it('is refused with another seed than its own', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const serve = (seed: string) => ['--listen', '127.0.0.1:0', '--json', '--data', data, '--seed', seed];
    const first = spawnSandbox(serve('a'));
    await first.line(/"url"/);
    await first.end('SIGTERM');
    const { code, stderr } = await run(...serve('b'));
    expect([code, JSON.parse(stderr).error.code, stderr]).toEqual([
      73,
      'data_unusable',
      expect.stringContaining('has the seed \\"a\\", not \\"b\\"'),
    ]);
    expect(JSON.parse(await spawnSandbox(serve('a')).line(/"url"/)).seed).toBe('a');
  });
});

describe('command: the banner', () => {
  const bannerOf = async (...args: string[]) => {
    const running = spawnSandbox(['--listen', '127.0.0.1:0', ...args]);
    await running.line(/Stop with Ctrl\+C/);
    return running.stdout();
  };

  it('shows what is not the default', async () => {
    const [plain, changed] = await Promise.all([
      bannerOf(),
      bannerOf(
        ...['--set', 'signature=base64', '--fault', '{"fault":"slow"}', '--time-scale', '60'],
        ...['--merchant-inactive', '--no-rate-limit'],
      ),
    ]);
    expect(plain).toMatch(/clock +real time\n\n/);
    expect(changed).toMatch(/clock +real time, and from there 60 times as fast\n/);
    expect(changed).toMatch(/switches +signature=base64\nfault plans +1\b.*\nmerchant +inactive/);
    expect(changed).toMatch(/rate limit +none/);
  });

  it('says how to continue in each environment', async () => {
    const [production, sandbox] = await Promise.all([bannerOf(), bannerOf('--environment', 'sandbox')]);
    expect(production).toMatch(/ pay order-1/);
    expect(sandbox).not.toMatch(/ pay order-1/);
    expect(sandbox).toContain('the panel there simulates events');
    for (const told of [production, sandbox]) expect(told).toContain('no "webhookUrl"');
  });
});
