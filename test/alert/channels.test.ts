import type { lookup } from 'node:dns';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dyingAt, serveEnvironment, whenServing } from '../../prove/harness/settled.ts';
import { openClock } from '../../sandbox/clock.ts';
import { startHeartbeats } from '../../src/alert/heartbeat.ts';
import { openMail } from '../../src/alert/mail.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { openLog } from '../../src/observe/log.ts';
import { systemClock } from '../../src/work/clock.ts';
import { environmentOf, failing, misunderstood, say } from '../cli/settled.ts';
import { startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { newCertificate, startMailServer } from '../support/mail.ts';
import { listen } from '../support/network.ts';
import { spawnSettled } from '../support/process.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { doctorOf } from '../support/surfaces.ts';
import { eventually, eventuallyAfter } from '../support/timing.ts';

const SECRET = `whsec_${Buffer.from('the secret of the alert hook').toString('base64')}`;
const hookEnvironment = ({ url }: Pick<Receiver, 'url'>) => ({
  SETTLED_ALERT_URL: url,
  SETTLED_ALERT_SECRET: SECRET,
  SETTLED_ALERT_ALLOW_PRIVATE: 'true',
});

/** An order that is held, in a store that no server uses afterwards. */
async function heldBefore(): Promise<TestApp> {
  const settled = await startTestApp();
  await hold(settled);
  await settled.app.stop();
  return settled;
}

async function hold(settled: TestApp): Promise<void> {
  const link = await settled.reserve('order-1', '48.00');
  const body = paymentEvent({ linkId: 'pl_1', amount: '10.00' });
  await settled.deliver(link, body, signedHeaders(link.webhookSecret, body));
  await eventually(async () => expect((await settled.order('order-1')).state).toBe('held'));
}

const idsOf = ({ received }: Receiver) => received.map(({ headers }) => headers['webhook-id']);

describe('settled alert --test', () => {
  it.each(['localhost', '127.0.0.1'])(
    'sends a test by each channel and says what each answered: a mail server %s',
    async (host) => {
      const [hook, mail] = [
        await startReceiver((_, response) => void response.end('ok')),
        await startMailServer({ secure: true, host }),
      ];
      const settled = await startTestApp({ environment: { ...hookEnvironment(hook), ...mail.environment } });
      const environment = environmentOf(settled);
      const { text, data } = await say(['alert', '--test'], environment);
      expect(text).toMatch(/^url +taken +it answered: 200 ok\nmail +taken +it answered: 250 .*queued as 1/m);
      expect(data.channels.map(({ name, taken }: Record<string, unknown>) => [name, taken])).toEqual([
        ['url', true],
        ['mail', true],
      ]);
      expect(hook.received[0]?.event).toMatchObject({
        type: 'test',
        text: expect.stringContaining('There is nothing to do'),
      });
      expect(mail.mails[0]?.headers).toMatchObject({
        subject: 'settled: a test',
        'message-id': expect.stringMatching(/^<alert_test_.*@shop\.example>$/),
        'auto-submitted': 'auto-generated',
      });
      hook.answerWith(404);
      mail.refuseWith('4.3.0 not now');
      const refused = await say(['alert', '--test'], environment, EXIT.refused);
      expect(refused.text).toMatch(/^url +not taken +The hook answered 404: only 2xx takes an alert\./m);
      expect(refused.text).toMatch(
        /^mail +not taken +The mail server answered 451\. .*\. It answered: 451 4\.3\.0 not now/m,
      );
    },
  );

  it('ends with 78 if no channel is configured, and with 64 without --test', async () => {
    const settled = await startTestApp();
    const fault = await failing(['alert', '--test'], environmentOf(settled));
    expect(fault).toMatchObject({ code: 'alerts_not_configured', exit: EXIT.configuration });
    expect(await misunderstood(['alert'])).toContain('settled alert --test');
  });
});

/** A server that speaks as far as these lines. */
async function speaking(...lines: string[]): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    const left = [...lines];
    const next = () => void socket.write(`${left.shift() ?? '500 what?'}\r\n`);
    next();
    socket.on('data', next);
  });
  const { port, close } = await listen(server);
  onTestFinished(close);
  return port;
}

describe('a mail server', () => {
  const secretly = { SETTLED_ALERT_FROM: 'settled@shop.example', SETTLED_ALERT_TO: 'ana@shop.example' };
  const faultAt = async (smtp: string, more: Record<string, string> = { SETTLED_ALERT_ALLOW_PRIVATE: 'true' }) => {
    const settled = await startTestApp({ environment: { ...secretly, SETTLED_ALERT_SMTP: smtp, ...more } });
    const { body } = await settled.api('/v1/admin/test-alerts', { method: 'POST' });
    expect(body.channels).toMatchObject([{ name: 'mail', taken: false }]);
    return body.channels[0].detail as string;
  };

  it.each<[string, () => Promise<string>, RegExp]>([
    [
      'that is not there',
      async () => 'smtp://127.0.0.1:9',
      /^The mail server gave no answer: connect ECONNREFUSED .*\. Check SETTLED_ALERT_SMTP/,
    ],
    [
      'without STARTTLS gets no password',
      async () => `smtp://me:a-password@127.0.0.1:${await speaking('220 here', '250 here', '502 no STARTTLS')}`,
      /^The mail server does not offer STARTTLS\. .*smtps:\/\/.* It answered: 502 no STARTTLS$/,
    ],
    [
      'that is something else',
      async () => `smtps://127.0.0.1:${await speaking('HTTP/1.1 400 Bad Request')}`,
      /^The mail server speaks no TLS on this port: write smtp:\/\/ for STARTTLS\.$/,
    ],
    ...[true, false].map((secure): [string, () => Promise<string>, RegExp] => [
      `whose certificate is not trusted, with TLS ${secure ? 'at once' : 'by STARTTLS'},`,
      async () => {
        const { port } = await startMailServer({ secure, trusted: false });
        return `${secure ? 'smtps' : 'smtp'}://localhost:${port}`;
      },
      /^The mail server has a certificate that is not trusted: .+\. If .* NODE_EXTRA_CA_CERTS=FILE in its environment, not in \.env\.$/,
    ]),
    [
      "whose certificate is another host's",
      async () => `smtps://127.0.0.1:${(await startMailServer({ secure: true })).port}`,
      /^The mail server has a certificate that is not trusted: .*IP: 127\.0\.0\.1 is not in the cert's list/,
    ],
    [
      'that does not know the password',
      async () => `smtps://settled:a-password@localhost:${(await startMailServer({ secure: true })).port}`,
      /^The mail server answered 535\. Check user and password in SETTLED_ALERT_SMTP/,
    ],
    [
      'that quotes what it was sent',
      async () => {
        const { key, cert } = newCertificate();
        setDefaultCACertificates([...getCACertificates('default'), cert.toString()]);
        const server = createTlsServer({ key, cert }, (socket) => {
          socket.on('error', () => {});
          socket.write('220 here\r\n');
          socket.on('data', (said) => {
            const line = said.toString().trim();
            socket.write(
              /^EHLO/.test(line) ? '250-here\r\n250 AUTH PLAIN\r\n' : `535 what is ${line} (a-password)?\r\n`,
            );
          });
        });
        const { port, close } = await listen(server);
        onTestFinished(close);
        return `smtps://me:a-password@localhost:${port}`;
      },
      /It answered: 535 what is AUTH PLAIN … \(…\)\?$/,
    ],
  ])('%s is named in a sentence', async (_what, smtp, says) => {
    const detail = await faultAt(await smtp());
    expect(detail).toMatch(says);
    expect(detail).not.toContain('a-password');
  });

  it('that refuses a receiver is on every surface, and the others get each mail once', async () => {
    const mail = await startMailServer({ secure: true, unknown: 'bo@shop.example' });
    const { storePath } = await heldBefore();
    const settled = await startTestApp({ environment: mail.environment, storePath });
    const refusal = 'The mail server refuses a receiver of SETTLED_ALERT_TO: bo@shop.example: 550 5.1.1 who?';
    await eventually(async () => {
      expect(await doctorOf(settled.apiUrl, ['alerts: mail'], 'probe=false')).toContain(
        `failing alerts: mail: ${refusal}`,
      );
      expect((await settled.api('/readyz')).body.troubles).toEqual([
        'People are not told what needs them: mail by SETTLED_ALERT_SMTP refuses a receiver. See settled doctor.',
      ]);
    });
    expect(mail.mails.map(({ to }) => to)).toEqual([['ana@shop.example']]);
    const { text } = await say(['alert', '--test'], environmentOf(settled), EXIT.refused);
    expect(text.replace(/\s+/g, ' ')).toContain(`mail not taken ${refusal}`);
  });

  it('that speaks too slowly is left, and its connection is closed', { timeout: 20_000 }, async () => {
    const clock = openClock({ startMs: 0, scale: 1e-6 });
    const closed = Promise.withResolvers<void>();
    const greeted = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.on('error', () => {}).on('close', () => closed.resolve());
      socket.on('data', () => greeted.resolve());
      socket.write('220 here\r\n');
    });
    const { port, close } = await listen(server);
    onTestFinished(close);
    const mail = openMail({
      ...{ clock: systemClock, deadlineClock: clock, allowPrivate: true },
      server: { host: '127.0.0.1', port, isSecure: false, user: null, password: null },
      ...{ from: 'settled@shop.example', to: 'ana@shop.example' },
    });
    const sent = mail.send({ id: 'alert_1', body: '{"subject":"a","text":"b"}' });
    await greeted.promise;
    await clock.advance(60_000);
    expect((await sent)?.fault).toMatchObject({
      code: 'alert_timeout',
      message: expect.stringContaining('within 60 s'),
    });
    await closed.promise;
  });

  it('whose name leads into this network gets nothing without permission', async () => {
    const resolve = ((_name: string, _options: object, done: (error: null, found: object[]) => void) => {
      done(null, [{ address: '127.0.0.1', family: 4 }]);
    }) as unknown as typeof lookup;
    const server = { host: 'smtp.example.com', port: 9, isSecure: true, user: null, password: null };
    const common = { clock: systemClock, deadlineClock: systemClock, allowPrivate: false, resolve };
    const mail = openMail({ ...common, server, from: 'settled@shop.example', to: 'ana@shop.example' });
    onTestFinished(mail.close);
    const ended = await mail.send({ id: 'alert_1', body: '{"subject":"a","text":"b"}' });
    expect(ended?.fault).toMatchObject({
      code: 'alert_address_private',
      message: expect.stringMatching(/^The mail server's address is 127\.0\.0\.1: .*SETTLED_ALERT_ALLOW_PRIVATE=true/),
    });
  });
});

describe('an alert', () => {
  it('is told once by three replicas', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const before = await startTestApp({ engine: 'postgres', storePath });
    await hold(before);
    const hook = await startReceiver();
    const environment = hookEnvironment(hook);
    for (const _replica of [1, 2, 3]) await startTestApp({ engine: 'postgres', storePath, environment });
    await eventually(() => expect(hook.received).toHaveLength(1));
    await eventually(async () => {
      expect(await doctorOf(before.apiUrl, ['alerts: url'], 'probe=false')).toBe('');
      expect(idsOf(hook)).toHaveLength(1);
    });
  });

  it('is told once if settled stops before the hook has answered', async () => {
    const { storePath } = await heldBefore();
    const hook = await startReceiver(() => undefined);
    const environment = hookEnvironment(hook);
    const settled = await startTestApp({ storePath, environment });
    const asked = Promise.withResolvers<ServerResponse>();
    hook.answerWith((_, response) => void asked.resolve(response));
    const response = await asked.promise;
    const stopped = settled.app.stop();
    // Its listeners and its stages end at the same time.
    await eventually(() => expect(fetch(settled.apiUrl)).rejects.toThrow());
    response.writeHead(204).end();
    await stopped;
    const again = await startTestApp({ storePath, environment });
    await eventually(async () => {
      const { checks } = (await again.api('/v1/admin/doctor?probe=false')).body;
      const { detail } = checks.find(({ name }: { name: string }) => name === 'alerts: url');
      expect(detail).toMatch(/^it took its last message/);
    });
    expect(hook.received).toHaveLength(1);
  });

  it.each([
    ['before it was sent', 'after:1:UPDATE alert_channel SET number = number + 1', 1],
    ['after the hook took it', 'before:1:UPDATE alert_channel SET body = NULL', 2],
  ])('of a process that was killed %s comes under one id', async (_when, point, times) => {
    const { storePath } = await heldBefore();
    const hook = await startReceiver();
    const environment = { ...serveEnvironment(storePath), ...hookEnvironment(hook) };
    const killed = spawnSettled(['serve'], { ...environment, ...dyingAt(point) });
    expect(await killed.finished).toMatchObject({ signal: 'SIGKILL' });
    expect(hook.received).toHaveLength(times - 1);
    const again = await whenServing(spawnSettled(['serve'], environment));
    await eventuallyAfter('a process starts')(async () => {
      expect(hook.received).toHaveLength(times);
      const { checks } = (await again.api('/v1/admin/doctor?probe=false')).body;
      expect(checks).toContainEqual(
        expect.objectContaining({
          name: 'alerts: url',
          status: 'ok',
          detail: expect.stringContaining('it took its last message'),
        }),
      );
    });
    expect(new Set(idsOf(hook)).size).toBe(1);
  });
});

describe('the heartbeat', () => {
  it('comes every minute while deliveries can be recorded, and doctor says if it is not taken', async () => {
    const clock = openClock({ startMs: Date.now(), scale: 1 });
    const beats = await startReceiver(200);
    const environment = { SETTLED_HEARTBEAT_URL: beats.url, SETTLED_ALERT_ALLOW_PRIVATE: 'true' };
    const settled = await startTestApp({ clock, environment });
    await clock.advance(6_000);
    await eventually(() => expect(beats.received).toHaveLength(1));
    expect(beats.received[0]).toMatchObject({ method: 'GET', path: '/hook' });
    await clock.advance(60_000);
    await eventually(() => expect(beats.received).toHaveLength(2));
    beats.answerWith(500);
    await clock.advance(60_000);
    await eventually(async () =>
      expect(await doctorOf(settled.apiUrl, ['heartbeat'], 'probe=false')).toMatch(
        /^warning heartbeat: .*SETTLED_HEARTBEAT_URL answered 500.* The last one was taken at 2/,
      ),
    );
  });

  it('does not come while they cannot', async () => {
    const clock = openClock({ startMs: Date.now(), scale: 1e-6 });
    const beats = await startReceiver(200);
    let ready = true;
    const common = { deadlineClock: systemClock, log: openLog('silent'), allowPrivate: true };
    const beating = startHeartbeats({ ...common, clock, url: beats.url, isReady: () => ready });
    onTestFinished(beating.stop);
    await clock.advance(6_000);
    await eventually(() => expect(beats.received).toHaveLength(1));
    ready = false;
    for (let n = 0; n < 3; n++) await clock.advance(60_000);
    ready = true;
    await clock.advance(60_000);
    await eventually(() => expect(beats.received).toHaveLength(2));
  });
});
