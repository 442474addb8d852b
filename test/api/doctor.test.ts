import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { freePort, listen } from '../support/network.ts';
import { readableLog, samples } from '../support/observe.ts';
import { peek, tamper } from '../support/rows.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { sharedApp } from '../support/shared.ts';
import { saying, surfacesOf } from '../support/surfaces.ts';
import { eventually } from '../support/timing.ts';

type Check = { name: string; status: string; detail: string };

async function checksOf(app: TestApp): Promise<Record<string, Check>> {
  const { status, body } = await app.api('/v1/admin/doctor');
  expect(status).toBe(200);
  return Object.fromEntries((body.checks as Check[]).map((check) => [check.name, check]));
}

/** Without an API, a callback and a public address. */
const alone = sharedApp();

/** A proxy that passes `/pay/…` on, and does something to the body or to the headers. */
function passing(
  change: (body: Buffer) => Buffer,
  changeHeaders = (headers: Record<string, string>) => headers,
): (hooksPort: number) => RequestListener {
  return (hooksPort) => async (request, response) => {
    const body = change(await whole(request));
    const { 'content-length': _, connection: __, ...headers } = request.headers;
    const answer = await fetch(`http://127.0.0.1:${hooksPort}${request.url?.replace('/pay', '')}`, {
      method: 'POST',
      headers: changeHeaders(headers as Record<string, string>),
      body,
    });
    response.writeHead(answer.status).end(await answer.text());
  };
}

async function whole(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function startAsking(environment: Record<string, string> = {}, options = {}) {
  const sandbox = await startTestSandbox(options);
  const settled = await startTestApp({
    environment: { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey, ...environment },
  });
  return { sandbox, settled };
}

describe('doctor: the public address', () => {
  /** What stands at the public address, before the port of the hooks. */
  let answering: (hooksPort: number) => RequestListener = () => () => {};
  let hooksPort = 0;
  const proxy = createServer((request, response) => answering(hooksPort)(request, response));
  const environment: Record<string, string> = {};
  beforeAll(async () => {
    hooksPort = await freePort();
    const { url, close } = await listen(proxy);
    environment.SETTLED_HOOKS_LISTEN = `127.0.0.1:${hooksPort}`;
    environment.SETTLED_PUBLIC_URL = `${url}/pay`;
    return close;
  });
  const settled = sharedApp({ environment });

  /** settled behind whatever stands at its public address. */
  function behind(standing: typeof answering): TestApp {
    answering = standing;
    return settled();
  }

  it('sees its own signed delivery arrive, and records nothing of it', async () => {
    const app = behind(passing((body) => body));
    const probes = async () => {
      const { body } = await app.api('/metrics');
      return samples(body)['settled_deliveries_total{outcome="probe"}'] ?? 0;
    };
    const before = await probes();
    expect((await checksOf(app))['public address']).toMatchObject({ status: 'warning' });
    expect((await checksOf(app))['public address']?.detail).toContain('set SETTLED_PUBLIC_URL');
    for (const table of ['inbox', 'rejection', 'hint', 'link_check']) {
      expect(peek(app.storePath, `SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 0 }]);
    }
    expect((await probes()) - before).toBe(2);
  });

  it('finds a proxy that rewrites bodies', async () => {
    const rewrite = (body: Buffer) => Buffer.from(JSON.stringify(JSON.parse(body.toString())));
    const app = behind(passing(rewrite));
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('changed on the way');
    expect(peek(app.storePath, 'SELECT count(*) AS n FROM rejection')).toEqual([{ n: 0 }]);
  });

  it.each<[string, (headers: Record<string, string>) => Record<string, string>]>([
    ['another signature', (headers) => ({ ...headers, 'x-service-signature': 'ab'.repeat(32) })],
    ['another timestamp', (headers) => ({ ...headers, 'x-service-timestamp': '1760000000000' })],
    ['no signature', ({ 'x-service-signature': _, ...headers }) => headers],
    ['no timestamp', ({ 'x-service-timestamp': _, ...headers }) => headers],
  ])('does not take its own delivery for arrived if it comes with %s', async (_what, change) => {
    const app = behind(passing((body) => body, change));
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('is answered 401: its body or its headers were changed on the way');
  });

  it('finds another server in its place', async () => {
    const app = behind(() => (_request, response) => response.writeHead(404).end());
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('answered 404: something else answers there');
  });

  it('finds another server that says 200 to everything', async () => {
    const app = behind(() => (_request, response) => response.end('<h1>Welcome</h1>'));
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('answered 200: something else answers there');
  });

  it('finds another server that says 200 and never ends, and reads no more of it than it needs', async () => {
    let sent = 0;
    const app = behind(() => (_request, response) => {
      const send = () => {
        do sent += 65_536;
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', send);
      send();
    });
    const check = (await checksOf(app))['public address'];
    expect(check?.detail).toContain('answered 200: something else answers there');
    // What is kept on the way at both ends.
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  it('finds within seconds that a server there takes the delivery and never answers', async () => {
    const app = behind(() => () => {});
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('does not arrive (The operation was aborted due to timeout)');
  });

  it('finds that nothing answers there', async () => {
    const app = await startTestApp({ environment: { SETTLED_PUBLIC_URL: `http://127.0.0.1:${await freePort()}` } });
    const check = (await checksOf(app))['public address'];
    expect(check).toMatchObject({ status: 'failing' });
    expect(check?.detail).toContain('does not arrive (ECONNREFUSED): check SETTLED_PUBLIC_URL');
  });
});

describe('doctor: the service', () => {
  it('says what is missing without an API', async () => {
    const checks = await checksOf(alone());
    expect(checks.service).toMatchObject({ status: 'warning' });
    expect(checks.service?.detail).toContain('Set SETTLED_API_URL and SETTLED_API_KEY');
  });

  it('finds the key, the merchant, the clock and the budget well', async () => {
    const { settled } = await startAsking();
    const checks = await checksOf(settled);
    expect(checks.service).toMatchObject({ status: 'ok' });
    expect(checks.service?.detail).toContain('which is ACTIVE');
    expect(checks.clock).toMatchObject({ status: 'ok', detail: "the service's clock agrees with ours to 30 s" });
    // The profile call itself holds a slot for a minute.
    expect(checks['api budget']).toMatchObject({ status: 'ok', detail: '1 of 50 requests a minute are in use' });
  });

  it('finds a clock that is off', async () => {
    const { sandbox, settled } = await startAsking();
    await sandbox.clock.advance(120_000);
    const { clock } = await checksOf(settled);
    expect(clock).toMatchObject({ status: 'warning' });
    expect(clock?.detail).toMatch(/^The service's clock is (2 min|1\d\d\.?\d* s|12\d s).* ahead of ours/);
  });

  it.each([
    ['a key that is refused', { SETTLED_API_KEY: 'not-the-key' }, {}, /401/],
    ['a merchant that is inactive', {}, { merchantInactive: true }, /403/],
  ])('finds %s', async (_name, environment, options, status) => {
    const { settled } = await startAsking(environment, options);
    const { service } = await checksOf(settled);
    expect(service).toMatchObject({ status: 'failing' });
    expect(service?.detail).toMatch(status);
    expect(service?.detail).not.toContain('not-the-key');
  });
});

describe('doctor: the signing secrets', () => {
  it('finds that they can be opened', async () => {
    await alone().reserve('order-1');
    expect((await checksOf(alone())).secrets).toMatchObject({ status: 'ok' });
  });
});

describe('doctor: the public address that open links have', () => {
  it('names each other one, until when, whether a delivery arrives there, and tells it no secret of a link', async () => {
    const port = await freePort();
    const tokens: string[] = [];
    let isOurs = true;
    const other = createServer(async (request, response) => {
      tokens.push(request.url?.split('/').at(-1) ?? '');
      if (isOurs) return passing((body) => body)(port)(request, response);
      response.writeHead(200).end('<html>for sale</html>');
    });
    const { url, close } = await listen(other);
    onTestFinished(close);
    const old = `${url}/pay`;
    const { log, lines } = readableLog();
    const { sandbox, settled } = await startAsking({
      SETTLED_PUBLIC_URL: old,
      SETTLED_HOOKS_LISTEN: `127.0.0.1:${port}`,
    });
    const openOrder = async (app: TestApp, reference: string) =>
      expect((await app.api('/v1/orders', { body: { reference, title: 'A chair', amount: '100.00' } })).status).toBe(
        201,
      );
    for (const reference of ['old-1', 'old-2', 'old-3']) await openOrder(settled, reference);
    const reserved = await settled.reserve('old-4');
    expect((await checksOf(settled))['other addresses']).toBeUndefined();
    await settled.app.stop();
    const now = `http://127.0.0.1:${port}`;
    const environment = {
      SETTLED_API_URL: sandbox.url,
      SETTLED_API_KEY: sandbox.apiKey,
      SETTLED_HOOKS_LISTEN: `127.0.0.1:${port}`,
      SETTLED_PUBLIC_URL: now,
    };
    const moved = await startTestApp({ environment, storePath: settled.storePath, log });
    await openOrder(moved, 'new-1');
    await eventually(() =>
      expect(lines).toContainEqual(
        expect.objectContaining({
          kind: 'other_address',
          trouble: expect.stringContaining(`3 open links to ${old} until`),
        }),
      ),
    );
    const until = (await moved.api('/v1/orders/old-3')).body.order.link.expiresAt;
    tokens.length = 0;
    const found = async (query = '') =>
      (await moved.api(`/v1/admin/doctor${query}`)).body.checks.find(({ name }: Check) => name === 'other addresses');
    const said = `3 open links to ${old} until ${until}`;
    expect(await found('?probe=false')).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining(`${said}. Let`),
    });
    expect(tokens).toEqual([]);
    expect(await found()).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining(`${said}, and a signed delivery arrives there`),
    });
    const away = await surfacesOf(moved, 'old-3', ['other addresses']);
    expect(away).toEqual(saying(new RegExp(`3 open links to ${old} until`), 'settled_troubles 1'));
    isOurs = false;
    expect(await found()).toMatchObject({
      status: 'failing',
      detail: expect.stringContaining(`${said}, where none arrives`),
    });
    await close();
    expect(await found()).toMatchObject({ status: 'failing', detail: expect.stringContaining('where none arrives') });
    const own = peek(moved.storePath, 'SELECT token FROM link').map(({ token }) => token);
    expect(tokens.filter((token) => own.includes(token))).toEqual([]);
    expect(new Set(tokens).size).toBe(1);
    expect(own).toContain(reserved.webhookUrl.split('/').at(-1));
    // A link that can no longer be paid needs no address.
    for (const reference of ['old-1', 'old-2', 'old-3'])
      await moved.api(`/v1/orders/${reference}/cancel`, { method: 'POST' });
    tamper(
      moved.storePath,
      "UPDATE link SET status = 'EXPIRED', next_check_at_ms = NULL WHERE link_id IS NOT NULL AND webhook_base = ?",
      old,
    );
    await eventually(async () => expect(await found()).toBeUndefined());
  });
});
