import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../../prove/harness/settled.ts';
import { likeness } from '../../sandbox/cli/switches.ts';
import { testFolder } from '../support/app.ts';
import { spawnSandbox, spawnSettled } from '../support/process.ts';
import { HOUR_MS, startTestSandbox } from '../support/sandbox.ts';
import { meet, startBeside } from './first_contacts.ts';
import { startPlainService } from './plain_service.ts';
import { failing, misunderstood } from './settled.ts';

/** A real sandbox that plays a recording, and settled beside it. */
async function startCopy(recording: string) {
  const apiKey = 'key-of-the-copy';
  const where = ['--listen', '127.0.0.1:0', '--api-key', apiKey, '--json'];
  const { url } = JSON.parse(await spawnSandbox(['--like', recording, ...where]).line(/^\{/));
  return { url, beside: await startBeside({ url, apiKey }) };
}

describe('cli: first-contact with a service that the project knows nothing of', () => {
  it('names each of its shapes; the recording says nothing else, and plays the same', async () => {
    const service = await startPlainService();
    const { environment, settled } = await startBeside(service);
    const onLink = async (url: string) => service.pay(url.split('/').at(-1) as string);
    const told = await meet(environment, ['--payment', '--references'], { onLink });
    expect(told).toMatchObject({
      code: 0,
      gaps: {
        ...{ 'creation-status': '200', 'creation-envelope': 'in-data', 'creation-secret': 'given' },
        ...{ reference: 'as-given', 'longest-reference': 'as-given', 'oddest-reference': 'as-given' },
        ...{ 'webhook-url': 'as-given', numbers: 'text', currency: 'BRL', expiry: 'as-given', details: 'whole' },
        ...{ 'payment-ids': 'none', 'total-brl': 'text', list: 'refused', 'error-body': 'message' },
        ...{ 'rate-reset': 'epoch-ms', deliveries: 'sent', method: 'POST', 'header-prefix': 'x-service' },
        ...{ 'timestamp-unit': 'ms', signature: 'v1,base64', signed: 'timestamp.body', wrapping: 'resource' },
        ...{ envelope: 'data', 'type-name': 'eventType', 'event-ids': 'none' },
      },
    });
    expect(service.links).toHaveLength(3);
    // Named before the first is made.
    const [before = ''] = told.text.split('\nWaiting ');
    expect(service.links.filter(({ externalReference: one }) => !`${before}\n`.includes(one))).toEqual([]);

    expect(statSync(told.file).mode & 0o777).toBe(0o600);
    const recording = readFileSync(told.file, 'utf8');
    const secrets = service.links.flatMap(({ webhookSecret, webhookUrl, externalReference, id }) => [
      ...[webhookSecret, webhookUrl.split('/').at(-1) as string, externalReference, id],
    ]);
    const hidden = [...secrets, ...service.personal, service.apiKey, environment.SETTLED_OPERATOR_TOKEN as string];
    expect(
      hidden.filter((one) => recording.includes(one) || recording.includes(JSON.stringify(one).slice(1, -1))),
    ).toEqual([]);
    expect(recording).toContain('"name": "Aaaaaa Aaaaa 0a"');

    const { url, beside: copy } = await startCopy(told.file);
    const pay = async (page: string) =>
      fetch(`${url}/_control/links/${page.split('/').at(-1)}/pay`, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json' },
      });
    expect((await meet(copy.environment, ['--payment', '--references'], { onLink: pay })).table).toBe(told.table);
    for (const { id, externalReference } of service.links) {
      expect(await settled.order(externalReference)).toMatchObject({ amount: '25.01', link: { id } });
    }
  });

  it.each(['', 'sha256='])(
    'tells base64url from base64, from any delivery that has a digit of its own, after "%s"',
    async (prefix) => {
      const isPlain = [false, true];
      const sign = (code: Buffer) => {
        const text = code.toString('base64url');
        if (/[-_]/.test(text) === (isPlain[0] ?? false)) return null;
        isPlain.shift();
        return prefix + text;
      };
      const service = await startPlainService({ sign });
      const { environment } = await startBeside(service);
      const onLink = async (url: string) => service.pay(url.split('/').at(-1) as string);
      const { code, gaps, file } = await meet(environment, ['--payment'], { onLink });
      expect({ code, signature: gaps.signature }).toEqual({ code: 0, signature: `${prefix}base64url` });
      if (prefix === '') expect(likeness(file).pairs).toContain('signature=base64url');
    },
  );

  it('says which header names it uses, and the sandbox then uses them', async () => {
    const sandbox = await startTestSandbox({ headerPrefix: 'x-acme' });
    const { environment } = await startBeside(sandbox);
    const told = await meet(environment, []);
    expect(told.code).toBe(1);
    expect(told.text).toMatch(
      /prefix of its headers +x-acme +not handled\n +Set SETTLED_HEADER_PREFIX to this, and restart settled\.\n/,
    );
    const { beside: again } = await startCopy(told.file);
    expect((await meet(again.environment, [])).table).toBe(told.table);
  });
});

describe('cli: first-contact, with no delivery', () => {
  it('says so at its end, and what to do; the recording does not play that', async () => {
    const sandbox = await startTestSandbox({ switches: ['deliveries=none'] });
    const { environment } = await startBeside(sandbox);
    const { code, text, file } = await meet(environment, ['--wait', '1'], { columns: 500 });
    expect(code).toBe(0);
    expect(text).toMatch(/The link's page, where payments are real unless .*: http\S+\n/);
    expect(text).toMatch(
      /\nNot seen: a reference of 128 characters, a reference with odd characters, .*\n\n.*\nNo delivery came within 1 s\. .*simulate one on the link's page.*--wait.*`settled doctor`/,
    );
    expect(likeness(file).pairs.filter((pair) => pair.startsWith('deliveries'))).toEqual([]);
  });
});

describe('cli: first-contact, with deliveries that settled refuses', () => {
  it('says so of a service whose clock is an hour ahead', async () => {
    const sandbox = await startTestSandbox();
    await sandbox.clock.advance(HOUR_MS);
    const { environment } = await startBeside(sandbox);
    const { code, gaps, text } = await meet(environment);
    expect({ code, deliveries: gaps.deliveries }).toEqual({ code: 1, deliveries: 'stale' });
    expect(text).toMatch(
      /deliveries +stale +not handled\n +`settled rejections` and `settled doctor` say why it is refused\.\n/,
    );
  });

  it('waits for one that is signed with the secret that the service named, and lists what it has not seen', async () => {
    const sandbox = await startTestSandbox({ switches: ['creation-secret=own'] });
    const { environment } = await startBeside(sandbox);
    const early = await meet(environment, ['--wait', '0']);
    expect(early).toMatchObject({ code: 0, gaps: { 'creation-secret': 'own' } });
    const again = async (url: string) => {
      await sandbox.idle();
      const { deliveries } = (await sandbox.control(`/deliveries?link=${url.split('/').at(-1)}`)).body;
      const [{ event }] = deliveries;
      await sandbox.control(`/events/${event}/resend`, { method: 'POST' });
    };
    expect(await meet(environment, [], { onLink: again })).toMatchObject({
      code: 0,
      gaps: { signed: 'timestamp.body' },
    });
  });
});

describe('cli: first-contact on a terminal', () => {
  it.each([
    ['no', 'no\r', 1, 0],
    ['yes', 'yes\r', 0, 1],
    ['the end of the input', '\u0004', 1, 0],
    ['Ctrl+C', '\u0003', 128 + constants.signals.SIGINT, 0],
  ])('asks before it makes anything, and takes %s for an answer', async (_, keys, code, links) => {
    if (spawnSync('script', ['--version']).error !== undefined) return;
    const service = await startPlainService();
    const { environment } = await startBeside(service);
    const folder = testFolder();
    const command = `'${process.execPath}' '${MAIN}' first-contact`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', TERM: 'dumb', NO_COLOR: '1', ...environment },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      shown += chunk;
      if (shown.endsWith('[y/N] > ')) child.stdin.write(keys);
    });
    const [exit] = await once(child, 'close');
    expect({ exit, shown }).toMatchObject({
      exit: code,
      shown: expect.stringMatching(/Make order first-contact-\w+ in settled/),
    });
    expect([service.links.length, readdirSync(folder).length]).toEqual([links, links]);
  });
});

describe('cli: first-contact, interrupted', () => {
  const steps = ['GET /merchant/profile', 'POST /payment-links', 'POST /payment-links answered', 'GET /payment-links/'];
  const all = [...steps, 'GET /payment-links', 'waiting'].flatMap((step) =>
    (['SIGINT', 'SIGKILL'] as const).map((signal) => [signal, step] as const),
  );

  it.each(all)('by %s at %s leaves at most the link that it named before', async (signal, step) => {
    const reached = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    let isAsked = false;
    const hold = async (at: string) => {
      if (at !== step || !isAsked) return;
      reached.resolve();
      await over.promise;
    };
    const service = await startPlainService({ hold });
    const { environment } = await startBeside(service);
    isAsked = true;
    const folder = testFolder();
    const command = spawnSettled(['first-contact', '--yes', '--payment'], environment, { cwd: folder });
    const named = command.line(/^Making order first-contact-\d{8}T\d{9}Z /);
    named.catch(() => {});
    if (step === 'waiting') await command.line(/^Waiting/);
    else await reached.promise;
    const { stdout } = await command.end(signal);
    over.resolve();
    const references = service.links.map(({ externalReference }) => externalReference);
    expect(references.filter((reference) => !stdout.includes(reference))).toEqual([]);
    expect(references.length).toBeLessThanOrEqual(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('cli: first-contact refuses', () => {
  type Case = {
    what: string;
    code: string;
    exit: number;
    says: RegExp;
    environment?: Record<string, string>;
    answer?: [number, string] | 'none';
  };
  const cases: Case[] = [
    {
      what: 'a wrong key',
      code: 'service_key_refused',
      exit: 78,
      says: /Put the right key/,
      environment: { SETTLED_API_KEY: 'wrong-key-of-this-test' },
    },
    {
      what: 'an inactive merchant',
      code: 'service_forbidden',
      exit: 78,
      says: /merchant may be inactive/,
      answer: [403, '{"message":"no"}'],
    },
    {
      what: 'a page of HTML',
      code: 'service_answer_unusable',
      exit: 78,
      says: /it is no JSON\. Check that SETTLED_API_URL/,
      answer: [200, '<html>'],
    },
    {
      what: 'a service that is down',
      code: 'service_failed',
      exit: 75,
      says: /The service failed/,
      answer: [503, '{}'],
    },
    {
      what: 'a service that hangs up',
      code: 'service_unreachable',
      exit: 75,
      says: /GET \/merchant\/profile got no complete answer/,
      answer: 'none',
    },
    {
      what: 'a server of another configuration',
      code: 'configuration_invalid',
      exit: 78,
      says: /^The server asks http:\S+ and is at http:\S+; this command would ask http:\/\/127\.0\.0\.1:9\/api\/v1 for/m,
      environment: { SETTLED_API_URL: 'http://127.0.0.1:9' },
    },
    {
      what: 'no public address',
      code: 'public_url_not_public',
      exit: 78,
      says: /cannot deliver to http:\/\/10\.0\.0\.1/,
      environment: { SETTLED_API_URL: 'https://links.example.com', SETTLED_PUBLIC_URL: 'http://10.0.0.1' },
    },
  ];
  it.each(cases)('$what, and makes nothing', async ({ code, exit, says, environment = {}, answer }) => {
    const service = await startPlainService({
      instead: (_request, response) => {
        if (answer === 'none') response.destroy();
        else if (answer !== undefined) response.writeHead(answer[0]).end(answer[1]);
        return answer !== undefined;
      },
    });
    const beside = await startBeside(service);
    const error = await failing(['first-contact', '--yes'], { ...beside.environment, ...environment });
    expect(error).toMatchObject({ code, exit, message: expect.stringMatching(says) });
    expect(service.links).toEqual([]);
    expect((await beside.settled.api('/v1/orders')).body.orders).toEqual([]);
  });

  it('an address that the service refuses, and says what became of the order', async () => {
    const service = await startPlainService({
      instead: ({ method }, response) => {
        if (method === 'POST') response.writeHead(400).end('{"message":"webhookUrl must be https"}');
        return method === 'POST';
      },
    });
    const { environment } = await startBeside(service);
    const error = await failing(['first-contact', '--yes'], environment);
    expect(error).toMatchObject({ code: 'service_refused', exit: 1 });
    expect(error.message).toMatch(
      /webhookUrl must be https.* No link was made\. Order first-contact-\w+ stays in settled: .* To cancel it later: settled orders cancel 'first-contact-\w+'$/s,
    );
  });

  it.each([
    // settled asks nothing before the service's pause is over.
    [
      429,
      'service_rate_limited',
      /No link was made\. Order (\S+) stays in settled: .*: settled orders cancel '\1'$/s,
      'awaiting_payment',
    ],
    [
      500,
      'service_failed',
      /Order (\S+) stays in settled; .* may have made its link.*: settled orders cancel '\1'$/s,
      'cancelled',
    ],
  ])('to go on if the creation is answered %i, and says how to cancel the order', async (status, code, says, state) => {
    let isDown = true;
    const service = await startPlainService({
      instead: ({ method, url }, response) => {
        const isOurs = method === 'POST' || url?.includes('?') === true;
        if (!isOurs) return false;
        if (isDown) response.writeHead(method === 'POST' ? status : 429).end('{}');
        else response.writeHead(200).end('{"paymentLinks":[],"pagination":{"page":1,"limit":50,"total":0,"pages":0}}');
        return true;
      },
    });
    const { environment, settled } = await startBeside(service);
    const error = await failing(['first-contact', '--yes'], environment);
    expect(error).toMatchObject({ code, exit: 75, message: expect.stringMatching(says) });
    isDown = false;
    const [, reference = ''] = says.exec(error.message) ?? [];
    expect(await settled.order(reference)).toMatchObject({ state: 'awaiting_payment' });
    await settled.api(`/v1/orders/${reference}/cancel`, { method: 'POST' });
    expect(await settled.order(reference)).toMatchObject({ state });
  });

  it.each([
    ['the link', /^GET .*\/payment-links\/[^?]+$/],
    ['the list', /^GET .*\/payment-links\?/],
  ])(
    'to go on if the service hangs up when it is asked for %s, after it has shown what was seen',
    async (_, request) => {
      const service = await startPlainService({
        instead: ({ method, url }, response) => {
          const isBroken = request.test(`${method} ${url}`);
          if (isBroken) response.destroy();
          return isBroken;
        },
      });
      const { environment, settled } = await startBeside(service);
      const { code, text, gaps, reference } = await meet(environment);
      expect([code, service.links.length]).toEqual([75, 1]);
      expect(gaps).toMatchObject({ 'creation-status': '200', reference: 'as-given' });
      expect(text.replaceAll('\n', ' ')).toMatch(
        /status of a creation.*got no complete answer.*links named above stay/,
      );
      expect((await settled.order(reference)).state).toBe('awaiting_payment');
    },
  );

  it.each([
    ['exists', '.', /it exists/],
    ['has no folder', 'missing/recording.json', /its folder does not exist/],
  ])('a recording whose file %s, before anything is made', async (_, name, says) => {
    const service = await startPlainService();
    const { environment, settled } = await startBeside(service);
    const file = join(testFolder(), name);
    const error = await failing(['first-contact', '--yes', '--record', file], environment);
    expect(error).toMatchObject({ code: 'files_unwritable', exit: 77, message: expect.stringMatching(says) });
    expect(error.message).toMatch(/Nothing was made\. .*give --record a new one/);
    expect(service.links).toEqual([]);
    expect((await settled.api('/v1/orders')).body.orders).toEqual([]);
  });

  it('no reference for good: an order of one that the service refuses is cancelled', async () => {
    const sandbox = await startTestSandbox({ switches: ['longest-reference=refused'] });
    const { environment, settled } = await startBeside(sandbox);
    expect((await meet(environment, ['--references'])).text).toMatch(
      /a reference of 128 characters +refused +not handled/,
    );
    const { orders } = (await settled.api('/v1/orders')).body;
    expect(orders.map(({ state }: { state: string }) => state).sort()).toEqual([
      'awaiting_payment',
      'awaiting_payment',
      'cancelled',
    ]);
  });

  it('to ask without a terminal, and to wait for no number of seconds', async () => {
    expect(await misunderstood(['first-contact'])).toContain('Give --yes');
    expect(await misunderstood(['first-contact', '--yes', '--wait', 'long'])).toContain('--wait');
  });
});
