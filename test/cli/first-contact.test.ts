import { spawn, spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../../prove/harness/settled.ts';
import { likeness } from '../../sandbox/cli/switches.ts';
import { testFolder } from '../support/app.ts';
import { spawnSandbox, spawnSettled } from '../support/process.ts';
import { HOUR_MS, startTestSandbox } from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';
import { meet, startBeside } from './first_contacts.ts';
import { type PlainOptions, type PlainService, startPlainService } from './plain_service.ts';
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
    const early = await meet(environment, ['--wait', '2']);
    expect(early).toMatchObject({ code: 0, gaps: { 'creation-secret': 'own', deliveries: 'early' } });
    expect(early.text).not.toContain('No delivery came');
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

/** Requests at a link's address that settled does not take for a delivery of the service. */
const REFUSED: readonly (readonly [string, RequestInit & { isProbe?: boolean }])[] = [
  ['a GET', { method: 'GET', isProbe: true }],
  ['a HEAD', { method: 'HEAD', isProbe: true }],
  ['an OPTIONS', { method: 'OPTIONS', isProbe: true }],
  ['a PUT', { method: 'PUT', body: '{}' }],
  ['unsigned', { method: 'POST', body: '{}' }],
  ['signed in other headers', { method: 'POST', headers: { 'x-b-signature': 'ab', 'x-b-timestamp': '1' } }],
  ['signed at no time', { method: 'POST', headers: signed('ab'.repeat(32), '12') }],
  ['signed in no form', { method: 'POST', headers: signed('?', String(Date.now())) }],
  ['signed by another', { method: 'POST', headers: signed('ab'.repeat(32), String(Date.now())) }],
  ['signed an hour ago', { method: 'POST', headers: signed('ab'.repeat(32), String(Date.now() - HOUR_MS)) }],
];

function signed(signature: string, timestamp: string): Record<string, string> {
  return { 'x-service-signature': signature, 'x-service-timestamp': timestamp };
}

/** Resolves once settled has told a first contact which deliveries it refused. */
function looked(): Promise<void> {
  return new Promise((resolve) => {
    const heard = (message: unknown) => {
      if (!(message as { request: IncomingMessage }).request.url?.startsWith('/v1/rejections?')) return;
      unsubscribe('http.server.response.finish', heard);
      resolve();
    };
    subscribe('http.server.response.finish', heard);
  });
}

describe('cli: first-contact, with deliveries of which settled refuses some', () => {
  const accepted = { deliveries: 'sent', method: 'POST', 'timestamp-unit': 'ms', signed: 'timestamp.body' };
  const gaps = { ...accepted, 'header-prefix': 'x-service', signature: 'v1,base64', wrapping: 'resource' };

  /** A service at whose first link's address something else comes before the link is known; it sends no event of it yet. */
  async function startEarly(init: RequestInit) {
    let address = '';
    const service: PlainService = await startPlainService({
      hold: async (step) => {
        const [link] = service.links;
        if (step !== 'POST /payment-links answered' || link === undefined) return;
        address = link.webhookUrl;
        link.webhookUrl = 'http://127.0.0.1:9';
        await fetch(address, init);
      },
    });
    const { environment } = await startBeside(service);
    const pay = async () => {
      await looked();
      const [link] = service.links as [PlainService['links'][number]];
      await service.pay(Object.assign(link, { webhookUrl: address }).id);
    };
    return { environment, pay };
  }

  it.each(REFUSED)('says what one shows that it accepts after one that is %s', async (_, init) => {
    const { environment, pay } = await startEarly(init);
    expect(await meet(environment, ['--payment'], { onLink: pay })).toMatchObject({ code: 0, gaps });
  });

  it('says what one shows that it accepts before all of those', async () => {
    const service = await startPlainService();
    const { environment } = await startBeside(service);
    const onLink = async () => {
      for (const [, init] of REFUSED) await fetch(service.links[0]?.webhookUrl as string, init);
    };
    expect(await meet(environment, ['--payment', '--wait', '1'], { onLink })).toMatchObject({ code: 0, gaps });
  });

  it('takes each of those for a delivery if no other comes, but for a probe; none is waited for any longer', async () => {
    const meetOne = async ([what, { isProbe = false, ...init }]: (typeof REFUSED)[number]) => {
      const { environment } = await startEarly(init);
      const { gaps, text } = await meet(environment, ['--payment', '--wait', isProbe ? '1' : '3600']);
      const hasCome = [Object.hasOwn(gaps, 'deliveries'), !text.includes('No delivery came')];
      expect([what, ...hasCome]).toEqual([what, !isProbe, !isProbe]);
    };
    await Promise.all(REFUSED.map(meetOne));
  });
});

describe('cli: first-contact with a service that names a signing secret', () => {
  const own = 'The-secret-of-the-service-0123456789';
  const masked = 'The-se****';
  type Made = NonNullable<PlainOptions['made']>;
  const cases: [what: string, made: Made, envelope: string, secret: string][] = [
    [
      'its own beside the link, a masked one in it',
      (link) => ({ paymentLink: { ...link, webhookSecret: masked }, webhookSecret: own }),
      ...(['beside-link', 'own'] as const),
    ],
    [
      'its own beside the link, the one given in it',
      (link, webhookSecret) => ({ paymentLink: { ...link, webhookSecret }, webhookSecret: own }),
      ...(['beside-link', 'own'] as const),
    ],
    [
      'its own in the link, the one given beside it',
      (link, webhookSecret) => ({ paymentLink: { ...link, webhookSecret: own }, webhookSecret }),
      ...(['in-link', 'own'] as const),
    ],
    [
      'the one given in the link, a masked one beside it',
      (link, webhookSecret) => ({ paymentLink: { ...link, webhookSecret }, webhookSecret: masked }),
      ...(['in-link', 'given'] as const),
    ],
    [
      'the one given, beside data that hold no link',
      (link, webhookSecret) => ({ data: { requestId: 'r-1' }, paymentLink: { ...link, webhookSecret } }),
      ...(['in-link', 'given'] as const),
    ],
    [
      'its own, in data that hold no link',
      (paymentLink) => ({ data: { webhookSecret: own }, paymentLink }),
      ...(['beside-link', 'own'] as const),
    ],
    [
      'the one given in data, beside an id of the request',
      (link, webhookSecret) => ({ data: { paymentLink: { ...link, webhookSecret } }, id: 'r-1' }),
      ...(['in-data', 'given'] as const),
    ],
    ['its own in data that are the link', (link) => ({ data: { ...link, webhookSecret: own } }), 'in-data', 'own'],
    ['its own in a body that is the link', (link) => ({ ...link, webhookSecret: own }), 'bare', 'own'],
    [
      'letters that settled takes for a mask',
      (link) => ({ paymentLink: { ...link, webhookSecret: 'x'.repeat(40) } }),
      ...(['in-link', 'masked'] as const),
    ],
    ['none', (paymentLink) => ({ paymentLink }), 'in-link', 'none'],
  ];

  it.each(cases)('finds %s, as settled does', async (_, made, envelope, secret) => {
    const service: PlainService = await startPlainService({
      made,
      hold: async (step) => {
        const link = service.links.at(-1);
        if (step === 'POST /payment-links answered' && secret === 'own' && link) link.webhookSecret = own;
      },
    });
    const { environment, settled } = await startBeside(service);
    const payLast = () => service.pay(service.links.at(-1)?.id as string);
    expect(await meet(environment, ['--payment'], { onLink: payLast })).toMatchObject({
      code: 0,
      gaps: {
        ...{ 'creation-envelope': envelope, 'creation-secret': secret, reference: 'as-given', numbers: 'text' },
        ...{ deliveries: 'sent', signed: 'timestamp.body' },
      },
    });
    const body = { reference: 'of-a-shop', title: 'A chair', amount: '25.01' };
    expect(await settled.api('/v1/orders', { body })).toMatchObject({ status: 201 });
    await payLast();
    await eventually(async () => expect(await settled.order('of-a-shop')).toMatchObject({ state: 'paid' }));
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

  const asked = [
    ['the link', /^GET .*\/payment-links\/[^?]+$/, 'details'],
    ['the list', /^GET .*\/payment-links\?/, 'list'],
    ['a link that is not there', /^GET .*\/payment-links\/[^?]+-none$/, 'error-body'],
  ] as const;
  const failures = [
    ['hangs up', null, 'got no complete answer'],
    ['answers 429', 429, 'answered 429'],
    ['answers 503', 503, 'answered 503'],
  ] as const;
  const broken = failures.flatMap(([how, ...failure]) =>
    asked.map(([of, ...request]) => ({ how, of, failure, request })),
  );
  it.each(broken)(
    'to go on if the service $how when it is asked for $of, after it has shown what was seen',
    async ({ failure: [status, says], request: [request, gap] }) => {
      const service = await startPlainService({
        instead: ({ method, url }, response) => {
          const isBroken = request.test(`${method} ${url}`);
          if (isBroken && status === null) response.destroy();
          else if (isBroken) response.writeHead(status as number).end('<html>');
          return isBroken;
        },
      });
      const { environment, settled } = await startBeside(service);
      const { code, text, gaps, reference } = await meet(environment, [], { columns: 500 });
      expect([code, service.links.length]).toEqual([75, 1]);
      expect(gaps).toMatchObject({ 'creation-status': '200', 'creation-envelope': 'in-data' });
      expect(gaps).not.toHaveProperty(gap);
      expect(text).toMatch(new RegExp(`status of a creation.*${says}.*links named above stay`, 's'));
      expect((await settled.order(reference)).state).toBe('awaiting_payment');
    },
  );

  it.each([
    ['a moment', 3, 0, 'whole'],
    ['good', Number.POSITIVE_INFINITY, 1, 'other'],
  ])('no link that the service does not find at first, for %s', async (_, times, code, details) => {
    let left = times;
    const service = await startPlainService({
      instead: ({ url }, response) => {
        const isMissing = /\/payment-links\/[^?]+(?<!-none)$/.test(url ?? '') && left-- > 0;
        if (isMissing) response.writeHead(404).end('{"message":"no such link"}');
        return isMissing;
      },
    });
    const { environment } = await startBeside(service);
    expect(await meet(environment)).toMatchObject({ code, gaps: { details } });
  });

  it('to go on if the server ends once the link is made, and names it and its order', async () => {
    const service: PlainService = await startPlainService({
      hold: async (step) => {
        if (step === 'POST /payment-links answered') await beside.settled.app.stop();
      },
    });
    const beside = await startBeside(service);
    const error = await failing(['first-contact', '--yes'], beside.environment);
    const [link] = service.links;
    expect(error).toMatchObject({ code: 'server_unreachable', exit: 69 });
    expect(error.message).toContain(`Link ${link?.id} of order ${link?.externalReference}`);
  });

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
