import type { LookupAddress, lookup } from 'node:dns';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fault } from '../../src/fault.ts';
import { openTargetLookup } from '../../src/http/peer.ts';
import { openTarget, type TargetOptions } from '../../src/http/target.ts';
import { SHOP } from '../../src/notify/notifier.ts';
import { systemClock } from '../../src/work/clock.ts';
import { type CallbackShop, startCallback } from '../support/callback.ts';
import { freePort, listen } from '../support/network.ts';
import { PRIVATE_HOSTS } from './hosts.ts';

/** A public address; nothing is ever sent there. */
const PUBLIC = '1.1.1.1';

/** How long an answer about a name is used. */
const KEPT_MS = 10_000;

/** A clock that stands until it is turned. */
function standingClock() {
  let nowMs = 0;
  return { clock: { monotonicMs: () => nowMs }, pass: (byMs: number) => (nowMs += byMs) };
}

/** Resolves every name to these addresses, each time to the next of them. */
function resolver(...answers: string[][]) {
  const asked: string[] = [];
  const resolve = ((name: string, _: unknown, done: (error: null, found: LookupAddress[]) => void) => {
    const found = answers[asked.push(name) - 1] ?? answers.at(-1) ?? [];
    done(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  }) as unknown as typeof lookup;
  return { asked, resolve };
}

function open(url: string, over: Partial<TargetOptions> = {}) {
  const common = {
    allowPrivate: false,
    connections: 40,
    deadlineMs: 5_000,
    deadlineClock: systemClock,
    clock: systemClock,
  };
  const target = openTarget({ url, peer: SHOP, ...common, ...over });
  onTestFinished(target.close);
  return { post: () => target.post({ 'webhook-id': 'msg_1_a' }, '{}') };
}

async function faultOf(post: Promise<unknown>): Promise<Fault> {
  const answer = await post.catch((error: unknown) => error);
  if (answer instanceof Fault) return answer;
  throw new Error(`it was answered: ${JSON.stringify(answer)}`);
}

/** The shop's address with another host in it. */
function at(shop: CallbackShop, host: string, scheme = 'http'): string {
  const { port, pathname } = new URL(shop.url);
  return `${scheme}://${host}:${port}${pathname}`;
}

describe('an address that only this network knows', () => {
  it.each(PRIVATE_HOSTS)('is not connected to: %s', async (host) => {
    const { asked, resolve } = resolver(['127.0.0.1']);
    const fault = await faultOf(open(`https://${host}:9/settled`, { resolve }).post());
    expect(fault).toMatchObject({ kind: 'transient', code: 'shop_address_private' });
    expect(fault.message).toContain('SETTLED_SHOP_ALLOW_PRIVATE=true');
    expect(asked).toEqual([]);
  });

  it.each(PRIVATE_HOSTS.filter((host) => host.startsWith('[') || /^\d+\.\d+\.\d+\.\d+$/.test(host)))(
    'is not connected to behind a name: %s',
    async (host) => {
      const { asked, resolve } = resolver([host.replace(/^\[|\]$/g, '')]);
      const fault = await faultOf(open('https://shop.example.com/settled', { resolve }).post());
      expect(fault.code).toBe('shop_address_private');
      expect(asked).toEqual(['shop.example.com']);
    },
  );

  it('is not connected to with the name that this machine has for itself', async () => {
    const shop = await startCallback();
    const fault = await faultOf(open(at(shop, 'localhost', 'https')).post());
    expect(fault.code).toBe('shop_address_private');
    expect(shop.connections).toBe(0);
  });

  it('is not connected to although a name led elsewhere before: what was looked up is what is connected to', async () => {
    const shop = await startCallback();
    const { asked, resolve } = resolver(['10.0.0.1'], ['127.0.0.1'], ['::1', '127.0.0.1'], ['::ffff:127.0.0.1']);
    const { clock, pass } = standingClock();
    const { post } = open(at(shop, 'shop.example.com', 'https'), { resolve, clock });
    for (let n = 1; n <= 4; n++) {
      expect((await faultOf(post())).code).toBe('shop_address_private');
      expect(asked).toHaveLength(n);
      pass(KEPT_MS);
    }
    expect(shop.connections).toBe(0);
  });

  it('is left out of the addresses of a name, in any order: settled connects only to the others', async () => {
    const OTHER = '2606:4700::1111';
    for (const found of [
      ['127.0.0.1', PUBLIC, '10.0.0.1', OTHER],
      [PUBLIC, '::1', OTHER],
    ]) {
      const mayConnect = (address: string) => [PUBLIC, OTHER].includes(address);
      const { resolve } = resolver(found);
      const look = openTargetLookup({
        peer: SHOP,
        resolve,
        mayConnect,
        deadlineMs: 5_000,
        deadlineClock: systemClock,
        clock: systemClock,
      });
      const given = (all: boolean) =>
        new Promise((told) => look('shop.example.com', { all }, (...answer) => told(answer)));
      const addresses = [PUBLIC, OTHER].map((address, n) => ({ address, family: n === 0 ? 4 : 6 }));
      expect(await given(true)).toEqual([null, addresses]);
      expect(await given(false)).toEqual([null, PUBLIC, 4]);
    }
  });

  it('is connected to if that is allowed, as a number and behind a name', async () => {
    const shop = await startCallback();
    for (const host of ['127.0.0.1', '0x7f.1', 'localhost', 'shop.example.com']) {
      const { resolve } = resolver(['127.0.0.1']);
      const { post } = open(at(shop, host), { allowPrivate: true, resolve });
      expect(await post()).toMatchObject({ status: 204 });
    }
    expect(shop.notices).toHaveLength(4);
  });
});

describe('an address without https', () => {
  it('is not connected to outside of this network, as a number or behind a name', async () => {
    const { resolve } = resolver([PUBLIC]);
    for (const host of [PUBLIC, 'shop.example.com']) {
      const fault = await faultOf(open(`http://${host}/settled`, { allowPrivate: true, resolve }).post());
      expect(fault.code).toBe('shop_address_private');
      expect(fault.message).toContain('Use https in SETTLED_SHOP_URL');
    }
  });

  it('is connected to, of all addresses of a name, while it alone is in this network', async () => {
    const shop = await startCallback();
    shop.answerWith({ status: 200, headers: { connection: 'close' } });
    const { asked, resolve } = resolver([PUBLIC, '127.0.0.1', '2606:4700::1111'], [PUBLIC]);
    const { clock, pass } = standingClock();
    const { post } = open(at(shop, 'shop.example.com'), { allowPrivate: true, resolve, clock });
    expect(await post()).toMatchObject({ status: 200 });
    pass(KEPT_MS);
    expect((await faultOf(post())).code).toBe('shop_address_private');
    expect(asked).toHaveLength(2);
    expect(shop.notices).toHaveLength(1);
  });
});

describe('a shop that cannot be reached', () => {
  const reasons: [string, () => Promise<string>, string, Partial<TargetOptions>?][] = [
    ['because nothing listens', async () => `http://127.0.0.1:${await freePort()}/`, 'ECONNREFUSED'],
    ['because it speaks no TLS', async () => (await startCallback()).url.replace('http:', 'https:'), 'ERR_SSL_|EPROTO'],
    ['because it speaks no HTTP', () => startSpeaking('SSH-2.0-OpenSSH\r\n'), 'HPE_'],
    ['because its answer has no end', () => startSpeaking(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`), 'HPE_'],
    ['because its name is unknown', async () => 'http://shop.example.com/', 'ENOTFOUND', { resolve: unknown }],
  ];

  it.each(reasons)('is a fault that gives the code and nothing secret: %s', async (_, url, code, over = {}) => {
    const { post } = open(`${await url()}?key=hidden-in-the-query`, { allowPrivate: true, ...over });
    const fault = await faultOf(post());
    expect(fault).toMatchObject({ kind: 'transient', code: 'shop_unreachable' });
    expect(fault.message).toMatch(
      new RegExp(`^The shop gave no answer: (${code})[A-Z_]*. Check SETTLED_SHOP_URL, the shop and the network.$`),
    );
  });
});

describe('a shop that sends something other than an answer', () => {
  const NEVER_MS = 600_000;

  it('to another protocol is heard at once', async () => {
    const switching = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    const { post } = open(await startSpeaking(switching), { allowPrivate: true, deadlineMs: NEVER_MS });
    expect(await post()).toMatchObject({ status: 101, body: '' });
  });

  it('with interim answers may give ten of them', async () => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';
    const last = 'HTTP/1.1 204 No Content\r\n\r\n';
    const over = { allowPrivate: true, deadlineMs: NEVER_MS };
    expect(await open(await startSpeaking(hint.repeat(10) + last), over).post()).toMatchObject({ status: 204 });
    expect(await open(await startSpeaking(hint.repeat(11)), over).post()).toMatchObject({ status: 103 });
  });
});

describe('a name', () => {
  it('that is never resolved is looked up once, for forty notices that wait for it and for those after them', async () => {
    const shop = await startCallback();
    const asked: ((error: null, found: LookupAddress[]) => void)[] = [];
    const resolve = ((_: string, __: unknown, done: (error: null, found: LookupAddress[]) => void) => {
      asked.push(done);
    }) as unknown as typeof lookup;
    const { clock, pass } = standingClock();
    const over = { allowPrivate: true, resolve, deadlineMs: 1_000, clock };
    const { post } = open(at(shop, 'shop.example.com'), over);
    shop.answerWith({ status: 204, headers: { connection: 'close' } });
    const faults = await Promise.all(Array.from({ length: 40 }, () => faultOf(post())));
    for (const { code } of faults) expect(code).toMatch(/^shop_(timeout|unreachable)$/);
    const after = await faultOf(post());
    expect(after).toMatchObject({ kind: 'transient', code: 'shop_unreachable' });
    expect(after.message).toContain("The shop's name was not resolved within 1 s.");
    expect(asked).toHaveLength(1);
    asked[0]?.(null, [{ address: '127.0.0.1', family: 4 }]);
    expect(await post()).toMatchObject({ status: 204 });
    expect([asked.length, shop.notices.length]).toEqual([1, 1]);

    // One that was late says nothing of those that come after it.
    pass(KEPT_MS);
    const next = post();
    expect(asked).toHaveLength(2);
    asked[1]?.(null, [{ address: '127.0.0.1', family: 4 }]);
    expect(await next).toMatchObject({ status: 204 });
  });

  it('is looked up once for connections that are made at once, or within seconds, and then again', async () => {
    const shop = await startCallback();
    shop.answerWith({ status: 200, headers: { connection: 'close' } });
    const { asked, resolve } = resolver(['127.0.0.1']);
    const { clock, pass } = standingClock();
    const { post } = open(at(shop, 'shop.example.com'), { allowPrivate: true, resolve, clock });
    await Promise.all(Array.from({ length: 40 }, post));
    pass(KEPT_MS - 1);
    await post();
    expect([asked.length, shop.connections]).toEqual([1, 41]);
    pass(1);
    await post();
    expect(asked).toHaveLength(2);
  });

  it('that is unknown is looked up again at the next attempt', async () => {
    const shop = await startCallback();
    const found = resolver(['127.0.0.1']).resolve;
    let isKnown = false;
    const resolve = ((...question: Parameters<typeof lookup>) =>
      (isKnown ? found : unknown)(...question)) as unknown as typeof lookup;
    const { post } = open(at(shop, 'shop.example.com'), { allowPrivate: true, resolve });
    expect((await faultOf(post())).message).toContain('ENOTFOUND');
    isKnown = true;
    expect(await post()).toMatchObject({ status: 204 });
  });
});

it('has one deadline for a notice that had to be sent twice, because a kept connection was closed', async () => {
  const shop = await startCallback();
  const { post } = open(shop.url, { allowPrivate: true, deadlineMs: 1_500 });
  await post();
  shop.answerWith((_, response) => {
    if (shop.notices.length === 2) setTimeout(() => response.socket?.destroy(), 300);
    // Within a deadline of its own, and after that of both.
    else setTimeout(() => response.end('late'), 1_350);
    return undefined;
  });
  expect((await faultOf(post())).code).toBe('shop_timeout');
  expect(shop.notices).toHaveLength(3);
});

const unknown = ((_: string, __: unknown, done: (error: Error) => void) => {
  done(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }));
}) as unknown as typeof lookup;

/** A server that sends this to every client. */
async function startSpeaking(text: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(text));
  });
  const { url, close } = await listen(server);
  onTestFinished(() => void close());
  return `${url}/`;
}
