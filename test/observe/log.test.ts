import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { escapeMarks } from '../../src/json.ts';
import { openLog } from '../../src/observe/log.ts';
import { prettyLines } from '../../src/observe/pretty.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { onTerminal, spawnSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';

type Log = ReturnType<typeof openLog>;

/** What is written of what a piece of code logs. */
function written(work: (log: Log) => void, asLine = escapeMarks): string {
  let text = '';
  const log = openLog('info', (json) => {
    text += asLine(json);
    return '';
  });
  work(log);
  return text;
}

/** The lines of it. */
function logged(work: (log: Log) => void): Record<string, unknown>[] {
  return linesOf(written(work));
}

const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
describe('log: without other parts', () => {
  it('writes one JSON line for each message, with its time and level', () => {
    const [line] = logged((log) => log.warn({ order: 'o-1' }, 'a message\nof two lines'));
    expect(line).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      order: 'o-1',
      msg: 'a message\nof two lines',
    });
  });

  it('writes out what a terminal would obey, and loses no line when the process ends in the same turn', () => {
    const from = JSON.stringify(new URL('../../src/observe/log.ts', import.meta.url).href);
    const script = `import { openLog } from ${from}; const log = openLog('info');
      log.info({ order: '\\u009b31m' }, '\\u202emessage'); process.exit(0);`;
    const line = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(line).toMatch(/"order":"\\u009b31m","msg":"\\u202emessage"/);
  });

  it('hides what must not be read, at the top and one below', () => {
    const names = [
      'secret',
      'webhookSecret',
      'token',
      'authorization',
      'signature',
      'apiKey',
      'body',
      'customer',
      'email',
      'url',
      'password',
      'connectionString',
    ];
    const canaries = Object.fromEntries(names.map((name) => [name, `canary of ${name}`]));
    const [line] = logged((log) => log.info({ ...canaries, inner: canaries }, 'x'));
    expect(JSON.stringify(line)).not.toContain('canary');
    for (const name of names) expect(line).toMatchObject({ [name]: '[redacted]', inner: { [name]: '[redacted]' } });
  });

  it('writes a fault by its code and sentence, without its cause', () => {
    const full = Object.assign(new Error('no space', { cause: new Error('canary') }), { code: 'store_full' });
    const [line] = logged((log) => log.error({ fault: full }, 'x'));
    expect(line?.fault).toEqual({ code: 'store_full', message: 'no space' });
  });

  it('writes a bug with its stack, without its cause', () => {
    const [line] = logged((log) => log.error({ fault: new TypeError('not a function', { cause: 'canary' }) }, 'x'));
    expect(line?.fault).toEqual({ message: 'not a function', stack: expect.stringContaining('TypeError') });
  });

  it('shows no field that an error carries, by any name', () => {
    const error = Object.assign(new Error('lost'), { connectionString: 'canary', code: 'ECONNRESET' });
    const lines = logged((log) => {
      log.warn({ second: error }, 'x');
      log.warn({ fault: error }, 'x');
      log.warn(error);
    });
    expect(lines).toHaveLength(3);
    expect(JSON.stringify(lines)).not.toContain('canary');
    expect(lines[0]?.second).toEqual({ code: 'ECONNRESET', message: 'lost' });
    expect(lines[1]?.fault).toEqual({ code: 'ECONNRESET', message: 'lost' });
  });

  it('writes below its level nothing', () => {
    const lines = logged((log) => {
      log.debug('quiet');
      log.info('loud');
    });
    expect(lines.map(({ msg }) => msg)).toEqual(['loud']);
  });
});

/** What a terminal gets of it. */
function pretty(work: (log: Log) => void, colours: boolean): string[] {
  return written(work, prettyLines({ colours })).trimEnd().split('\n');
}

/** The same without the time. */
function shown(work: (log: Log) => void): string[] {
  return pretty(work, false).map((line) => {
    expect(line).toMatch(/^(?:\d\d:\d\d:\d\d\.\d{3} | {4})/);
    return line.replace(/^[\d:.]+ /, '');
  });
}

describe('log: for a person', () => {
  it('is a line for each message, with its fields by their names', () => {
    const lines = shown((log) => {
      log.info({ order: 'o-1', event: 3, held: true, hooks: { host: '127.0.0.1', port: 8787 } }, 'order is paid');
      log.warn({ order: 'two words', counts: { unknown_link: 2 }, order_of: '' }, 'a "quoted" word');
      log.error('plain');
    });
    expect(lines).toEqual([
      'INFO: order is paid  order=o-1 event=3 held=true hooks=127.0.0.1:8787',
      'WARN: a "quoted" word  order="two words" counts={"unknown_link":2} order_of=""',
      'ERROR: plain',
    ]);
  });

  it('has a fault in its line, and a stack below it', () => {
    const [line, , ...stack] = shown((log) => {
      log.warn({ fault: Object.assign(new Error('no space'), { code: 'store_full' }) }, 'x');
      log.error({ fault: new TypeError('a bug') }, 'y');
    });
    expect(line).toBe('WARN: x  fault="store_full: no space"');
    expect(stack[0]).toBe('    TypeError: a bug');
    expect(stack[1]).toMatch(/^ {8}at /);
  });

  it('escapes what a terminal would obey, in any place', () => {
    const hostile = '\u001b[31mred\u202e\u009b0m\nnext\r';
    const [line, other, ...more] = shown((log) => {
      log.info({ order: hostile, inner: { [hostile]: [hostile] }, [hostile]: 1 }, hostile);
      log.warn({ fault: new Error(hostile) }, 'x');
    });
    const seen = '\\u001b[31mred\\u202e\\u009b0m\\nnext\\r';
    expect(line).toBe(`INFO: ${seen}  order="${seen}" inner={"${seen}":["${seen}"]} ${seen}=1`);
    expect([other, more[0], more[1]]).toEqual([
      'WARN: x  fault=bug',
      '    Error: \\u001b[31mred\\u202e\\u009b0m',
      '    next\\r',
    ]);
  });

  it('has colours only if asked for', () => {
    const warns = (log: Log) => log.warn({ order: 'o-1' }, 'x');
    const [coloured] = pretty(warns, true);
    expect(coloured).toContain('\u001b[33mWARN\u001b[39m');
    expect(shown(warns).join()).not.toContain('\u001b');
  });

  it('hides what must not be read', () => {
    const [line] = shown((log) => log.info({ token: 'canary', inner: { secret: 'canary' } }, 'x'));
    expect(line).toBe('INFO: x  token="[redacted]" inner={"secret":"[redacted]"}');
  });
});

describe('log: on a terminal and elsewhere', () => {
  const READABLE = ' INFO: settled is serving  version=';
  it.each([
    ['JSON elsewhere', {}, '{"level":"info"'],
    ['text on a terminal', onTerminal({ colours: false }), READABLE],
    ['text in colours on a terminal that has them', onTerminal({ colours: true }), ' \u001b[32mINFO\u001b[39m: '],
    [
      'JSON on a terminal by SETTLED_LOG_FORMAT',
      { ...onTerminal({ colours: true }), SETTLED_LOG_FORMAT: 'json' },
      '{"level":"info"',
    ],
    ['text elsewhere by SETTLED_LOG_FORMAT', { SETTLED_LOG_FORMAT: 'pretty' }, READABLE],
  ])('is %s', async (_what, environment, words) => {
    const serving = spawnSettled(['serve'], {
      SETTLED_STORE: `sqlite:${join(testFolder(), 'settled.db')}`,
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      ...environment,
    });
    expect(await serving.line(/settled is serving/)).toContain(words);
  });
});

describe('log: of a serving process', () => {
  it('holds no secret, token, signature, body or payer of any delivery', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const shopToken = 'shop-token-canary-1';
    const serving = spawnSettled(['serve'], {
      SETTLED_STORE: `sqlite:${storePath}`,
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      SETTLED_SHOP_TOKEN: shopToken,
      SETTLED_LOG_LEVEL: 'trace',
    });
    const { hooks, operator } = JSON.parse(await serving.line(/settled is serving/));
    const operatorToken = readFileSync(`${storePath}.operator-token`, 'utf8').trim();
    const key = readFileSync(`${storePath}.key`, 'utf8').trim();
    const api = async (path: string, body?: object, token = operatorToken) => {
      const response = await fetch(`http://127.0.0.1:${operator.port}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return (await response.json()) as { link: { webhookUrl: string; webhookSecret: string } };
    };
    const send = async (path: string, body: string, headers: Record<string, string>) =>
      (await fetch(`http://127.0.0.1:${hooks.port}${path}`, { method: 'POST', body, headers })).status;

    const { link } = await api('/v1/links', { reference: 'order', amount: '100.00' });
    const address = new URL(link.webhookUrl).pathname;
    const body = paymentEvent({ id: 'evt_1', linkId: 'pl_1', amount: '100.00' }).replace(
      '"latestPayment":{',
      '"latestPayment":{"customer":{"name":"Payer Canary","email":"payer@canary.example"},',
    );
    const signed = signedHeaders(link.webhookSecret, body);
    const forged = signedHeaders('a-forgers-secret-canary', body);
    expect(await send(address, body, signed)).toBe(200);
    expect(await send(address, body.replace('100.00', '60.00'), signed)).toBe(401);
    expect(await send(address, body, forged)).toBe(401);
    const almost = `${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`;
    expect(await send(almost, body, signed)).toBe(401);
    expect(await send(address, body, signedHeaders(link.webhookSecret, body, '1700000000000'))).toBe(400);
    const garbage = 'canary {';
    expect(await send(address, garbage, signedHeaders(link.webhookSecret, garbage))).toBe(202);
    const conflict = paymentEvent({ id: 'evt_1', linkId: 'pl_of_another', paymentId: 'pay_canary' });
    expect(await send(address, conflict, signedHeaders(link.webhookSecret, conflict))).toBe(200);
    await eventually(() => {
      for (const words of ['cannot be settled', 'were refused', 'another link', 'different contents']) {
        expect(serving.stdout()).toContain(words);
      }
    });
    const correction = 'a-corrected-secret-canary';
    await api('/v1/links', { reference: 'order', amount: '100.00', webhookSecret: correction });
    await api('/v1/orders/order', undefined, 'a-wrong-token-canary');
    await api('/v1/orders/order', undefined, shopToken);
    serving.child.kill('SIGTERM');
    const { code, stdout, stderr } = await serving.finished;
    expect([code, stderr]).toEqual([0, '']);

    const token = address.split('/').at(-1) as string;
    for (const line of stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');
    expect(stdout.toLowerCase()).not.toContain('canary');
    for (const secret of [operatorToken, key, link.webhookSecret, token, token.slice(0, -1)]) {
      expect(stdout).not.toContain(secret);
    }
    for (const headers of [signed, forged]) expect(stdout).not.toContain(headers['x-service-signature']);
    expect(stdout).not.toContain('paymentStatus');
  });
});
