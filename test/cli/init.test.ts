import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { envText } from '../../src/cli/init_files.ts';
import { readConfig } from '../../src/config/config.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/http.ts';
import { serverAt } from '../support/postgres.ts';
import { type Finished, spawnSettled } from '../support/process.ts';
import { startTestSandbox } from '../support/sandbox.ts';

const SECRET_FILES = ['api-key', 'operator-token', 'secrets-key', 'shop-secret', 'shop-token', 'store'];
const API_KEY = 'key-of-the-test-that-nothing-may-show';

/** A folder to set settled up in, a service that takes `API_KEY`, and what answers the questions. */
async function prepare() {
  const sandbox = await startTestSandbox({ apiKey: API_KEY });
  const [hooks, operator] = [await freePort(), await freePort()];
  const folder = testFolder();
  const keyFile = join(testFolder(), 'key');
  writeFileSync(keyFile, `${API_KEY}\n`);
  const environment = { SETTLED_HOOKS_LISTEN: `127.0.0.1:${hooks}`, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operator}` };
  const answers = {
    'service-url': sandbox.url,
    'api-key-file': keyFile,
    'public-url': `http://127.0.0.1:${hooks}`,
  } as Record<string, string>;
  const init = (more: Record<string, string> = {}, switches: readonly string[] = [], extra = {}) => {
    const given = Object.entries({ ...answers, ...more }).flatMap(([name, value]) => [`--${name}`, value]);
    const args = ['init', '--yes', '--json', '--skip-order', ...switches, ...given];
    return spawnSettled(args, { ...environment, ...extra }, { cwd: folder }).finished;
  };
  return { sandbox, folder, environment, answers, init };
}

function refusal({ stdout, stderr }: Finished): { code: string; exit: number; message: string } {
  expect(stdout).toBe('');
  return JSON.parse(stderr).error;
}

const modeOf = (path: string) => statSync(path).mode & 0o777;
const contentOf = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8').trim();

/** A server that answers every request alike. */
async function answering(status: number, body = ''): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.writeHead(status, { 'content-type': 'text/html' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** A server that answers with more than anybody can read. `sent`: how many bytes of it. */
async function flooding(): Promise<{ url: string; sent: () => number }> {
  let sent = 0;
  const server = createServer((_, response) => {
    const send = () => {
      do sent += 65_536;
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on('drain', send);
    send();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent: () => sent };
}

describe('cli: init writes what works', () => {
  it('with SQLite: settings, secrets for this user alone, and doctor finds nothing failing', async () => {
    const { folder, answers, init, environment } = await prepare();
    const end = await init({ store: "sqlite:./it's $HOME #1/s.db" });
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    const { doctor, files, order, notes } = JSON.parse(end.stdout);
    expect(files.map(({ path }: { path: string }) => path)).toEqual(['data/api-key', 'data/shop-token', '.env']);
    expect(doctor.checks.filter(({ status }: { status: string }) => status === 'failing')).toEqual([]);
    expect(doctor.checks.find(({ name }: { name: string }) => name === 'public address').status).toBe('ok');
    expect(notes.find(({ answer }: { answer: string }) => answer === 'public-url').status).toBe('ok');
    expect(order).toBeNull();
    expect([modeOf(join(folder, 'data')), modeOf(join(folder, '.env'))]).toEqual([0o700, 0o600]);
    for (const file of readdirSync(join(folder, 'data'))) expect(modeOf(join(folder, 'data', file))).toBe(0o600);
    expect(readdirSync(join(folder, "it's $HOME #1"))).toContain('s.db');
    expect(parseEnv(readFileSync(join(folder, '.env'), 'utf8'))).toEqual({
      SETTLED_PUBLIC_URL: answers['public-url'],
      SETTLED_API_URL: `${answers['service-url']}/api/v1`,
      SETTLED_API_KEY_FILE: 'data/api-key',
      SETTLED_STORE: "sqlite:./it's $HOME #1/s.db",
      SETTLED_SHOP_TOKEN_FILE: 'data/shop-token',
    });
    for (const secret of [API_KEY, contentOf(folder, 'data/shop-token')]) expect(end.stdout).not.toContain(secret);
    // The server starts with it, and takes the shop's token.
    const serving = spawnSettled(['serve'], environment, { cwd: folder });
    await serving.line(/settled is serving/);
    const asked = await fetch(`http://${environment.SETTLED_OPERATOR_LISTEN}/v1/orders`, {
      headers: { authorization: `Bearer ${contentOf(folder, 'data/shop-token')}` },
    });
    expect(asked.status).toBe(200);
    // Once more: nothing is left to write, and doctor looks at the server that runs.
    const again = await init({ store: "sqlite:./it's $HOME #1/s.db" }, ['--force']);
    expect(again).toMatchObject({ code: EXIT.ok, stderr: '' });
    expect(JSON.parse(again.stdout)).toMatchObject({ files: [], doctor: { ranAlready: true } });
    // No setting names the database any more: its orders may be of a trial.
    rmSync(join(folder, '.env'));
    const unnamed = await init({ store: "sqlite:./it's $HOME #1/s.db" });
    const noteOfStore = ({ stdout }: Finished): string =>
      JSON.parse(stdout).notes.find(({ answer }: { answer: string }) => answer === 'store').detail;
    const warns = [end, again, unnamed].map((one) => noteOfStore(one).includes('name another file'));
    expect(warns).toEqual([false, false, true]);
  });

  it('with PostgreSQL and a callback: each secret in a file; and says that the public address leads elsewhere, of which it reads little', async () => {
    const { folder, init } = await prepare();
    const store = await serverAt(inject('postgres')).create(`test_${randomUUID()}`);
    const [shop, elsewhere] = [await answering(404), await flooding()];
    const given = { store, 'shop-url': `${shop.url}/settled?secret=of-the-path`, 'public-url': elsewhere.url };
    const end = await init(given, ['--shop-allow-private']);
    expect(end).toMatchObject({ code: EXIT.refused, stderr: '' });
    const { doctor, notes } = JSON.parse(end.stdout);
    expect(notes.find(({ answer }: { answer: string }) => answer === 'public-url')).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('something else answers there (200)'),
    });
    // Of the flood no more is read than is needed: this much is kept on the way, at both ends and by both checks.
    expect(elsewhere.sent()).toBeLessThan(2 * 16 * 1024 * 1024);
    const failing = doctor.checks.filter(({ status }: { status: string }) => status === 'failing');
    expect(failing.map(({ name }: { name: string }) => name)).toEqual(['public address']);
    expect(shop.requests).toEqual(['HEAD /settled?secret=of-the-path']);
    expect(readdirSync(join(folder, 'data'))).toEqual(SECRET_FILES);
    expect(readFileSync(join(folder, '.env'), 'utf8')).not.toContain('postgres:');
    for (const file of SECRET_FILES) expect(end.stdout).not.toContain(contentOf(folder, `data/${file}`));
    expect(end.stdout).not.toContain('of-the-path');
  });
});

describe('cli: init again', () => {
  it('changes nothing without --force; with it keeps secrets, other settings and a copy', async () => {
    const { folder, init } = await prepare();
    mkdirSync(join(folder, 'data'));
    chmodSync(join(folder, 'data'), 0o755);
    writeFileSync(join(folder, 'data/shop-token'), 'token-that-the-shop-has\n', { mode: 0o644 });
    const before = 'SETTLED_CURRENCY=EUR\n# a remark\nOTHER="two\nlines"\nSETTLED_PUBLIC_URL=https://old.example.com\n';
    writeFileSync(join(folder, '.env'), before);

    const refused = await init();
    expect(refused.code).toBe(EXIT.refused);
    expect(refusal(refused)).toMatchObject({ code: 'not_confirmed', message: expect.stringContaining('--force') });
    expect(contentOf(folder, '.env')).toBe(before.trim());
    expect(readdirSync(join(folder, 'data'))).toEqual(['shop-token']);

    const forced = await init({}, ['--force']);
    expect(forced.code).toBe(EXIT.ok);
    const { files } = JSON.parse(forced.stdout);
    const copy = files.find(({ path }: { path: string }) => path === '.env').before;
    expect(readFileSync(join(folder, copy), 'utf8')).toBe(before);
    expect(modeOf(join(folder, copy))).toBe(0o600);
    const settings = parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
    expect(settings).toMatchObject({ SETTLED_CURRENCY: 'EUR', OTHER: 'two\nlines' });
    expect(settings.SETTLED_PUBLIC_URL).toContain('http://127.0.0.1:');
    expect(contentOf(folder, 'data/shop-token')).toBe('token-that-the-shop-has');
    expect([modeOf(join(folder, 'data')), modeOf(join(folder, 'data/shop-token'))]).toEqual([0o700, 0o600]);
  });
});

describe('cli: init among strangers', () => {
  it('leaves the files alone to which links in the folder lead', async () => {
    const { folder, init } = await prepare();
    const others = testFolder();
    mkdirSync(join(folder, 'data'));
    for (const [file, name] of Object.entries({ '.env': 'a', 'data/api-key': 'b' })) {
      writeFileSync(join(others, name), 'OTHERS=1\n');
      chmodSync(join(others, name), 0o644);
      symlinkSync(join(others, name), join(folder, file));
    }
    expect((await init({}, ['--force'])).code).toBe(EXIT.ok);
    for (const name of ['a', 'b']) {
      expect([modeOf(join(others, name)), contentOf(others, name)]).toEqual([0o644, 'OTHERS=1']);
    }
    expect(contentOf(folder, 'data/api-key')).toBe(API_KEY);
    const open = readdirSync(join(folder, 'data')).filter((file) => modeOf(join(folder, 'data', file)) !== 0o600);
    expect(open).toEqual([]);
  });
});

describe('cli: init refuses an answer, and writes nothing', () => {
  it('without a terminal: names the options that are missing', async () => {
    const cwd = testFolder();
    const { code, stderr } = await spawnSettled(['init', '--public-url', 'https://pay.example.com'], {}, { cwd })
      .finished;
    expect(code).toBe(EXIT.usage);
    expect(stderr).toMatch(
      /asks on a terminal only\. .*lacks: --service-url, --api-key-file, --yes\. .* run it on a terminal/,
    );
    const told = await spawnSettled(['init', '--yes'], {}, { cwd }).finished;
    expect(told.stderr).toMatch(/^settled: With --yes .* lacks: --service-url, .*, or leave out --yes on a terminal\./);
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('a wrong key, told from a service that is not there and from one that is another', async () => {
    const { folder, init, answers } = await prepare();
    const wrong = join(testFolder(), 'wrong');
    writeFileSync(wrong, 'not-the-key');
    const refusing = await answering(401, '{"error": "no such key"}');
    const [ofKey, ofPort, ofPage] = await Promise.all([
      init({ 'api-key-file': wrong, 'service-url': refusing.url }),
      init({ 'service-url': `http://127.0.0.1:${await freePort()}` }),
      init({ 'service-url': (await answering(200, '<html>hello</html>')).url }),
    ]);
    expect(refusal(ofKey)).toMatchObject({ code: 'answer_refused', exit: EXIT.configuration });
    expect(refusal(ofKey).message).toMatch(/^--api-key-file: The service at \S+ answers, and does not take this key/);
    expect(refusing.requests).toEqual(['GET /api/v1/merchant/profile']);
    expect(refusal(ofPort)).toMatchObject({ code: 'answer_unreachable', exit: EXIT.unreachable });
    expect(refusal(ofPort).message).toMatch(/^--service-url: No service could be asked at .*ECONNREFUSED/);
    expect(refusal(ofPage)).toMatchObject({ code: 'answer_refused', exit: EXIT.configuration });
    expect(refusal(ofPage).message).toMatch(/^--service-url: What answers at \S+ is not the service's API/);
    expect(JSON.stringify([ofKey, ofPort, ofPage])).not.toContain(
      readFileSync(answers['api-key-file'] ?? '', 'utf8').trim(),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    ['http beyond this machine', { 'public-url': 'http://pay.example.com' }, /^--public-url: .*over https only/],
    [
      'a line end',
      { 'public-url': 'https://pay.example.com\nSETTLED_CURRENCY=EUR' },
      /^--public-url: .*control character/,
    ],
    ['no store', { store: 'mysql://db' }, /^--store: The store names no store/],
    ['a store on no disk', { store: 'sqlite:/proc/settled/s.db' }, /^--store: The folder of \/proc\/settled/],
    ['a shop of this network', { 'shop-url': 'http://127.0.0.1:9/settled' }, /^--shop-url: .*is not a public address/],
    ['a shop that no one knows', { 'shop-url': 'https://shop.invalid/settled' }, /^--shop-url: No address is known/],
  ])('%s', async (_, given, message) => {
    const { folder, init } = await prepare();
    const { code, exit, message: told } = refusal(await init(given as unknown as Record<string, string>));
    expect(told).toMatch(message);
    expect([code, exit]).toEqual(['answer_refused', EXIT.configuration]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('a PostgreSQL that does not answer', async () => {
    const { init, folder } = await prepare();
    const error = refusal(
      await init({ store: `postgres://settled:hidden-word@127.0.0.1:${await freePort()}/settled` }),
    );
    expect(error).toMatchObject({ code: 'answer_unreachable', exit: EXIT.unreachable });
    expect(error.message).not.toContain('hidden-word');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('another than the environment gives, which .env cannot change', async () => {
    const { init, folder } = await prepare();
    const ended = await init({}, [], { SETTLED_PUBLIC_URL: 'https://other.example.com' });
    expect(refusal(ended)).toMatchObject({ code: 'usage', message: expect.stringContaining('--public-url differs') });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('docs/first-hour.md', () => {
  it('names every option and every file', () => {
    const page = readFileSync(new URL('../../docs/first-hour.md', import.meta.url), 'utf8');
    const options = COMMANDS.find(({ name }) => name === 'init')?.options ?? {};
    expect(Object.keys(options)).toHaveLength(9);
    expect(Object.keys(options).filter((name) => !page.includes(`--${name}`))).toEqual([]);
    const files = ['.env', ...SECRET_FILES.map((file) => `data/${file}`)];
    expect(files.filter((file) => !page.includes(`\`${file}\``))).toEqual([]);
  });
});

describe('cli: init: a value in .env', () => {
  const unit = fc.constantFrom(...`'"\`$\\#=\n\t !{}()é \u2028ab1`);
  const value = fc.oneof(fc.string({ unit, maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 20 }));

  it('is read back as it was, beside others, or refused', () => {
    const values = fc.dictionary(fc.constantFrom('SETTLED_A', 'SETTLED_B', 'C', 'D_FILE'), value);
    let written = 0;
    fc.assert(
      fc.property(values, (settings) => {
        let text = '';
        try {
          text = envText(settings);
        } catch (error) {
          expect(error).toMatchObject({ code: 'answer_refused' });
          return;
        }
        written += Object.keys(settings).length;
        expect(parseEnv(text)).toEqual({ ...settings });
      }),
      { numRuns: 2_000 },
    );
    expect(written).toBeGreaterThan(500);
  });

  it('reaches the configuration as the shell and compose would give it too: between single quotes', () => {
    const store = 'sqlite:./$HOME/a b.db';
    expect(envText({ SETTLED_STORE: store })).toContain(`SETTLED_STORE='${store}'`);
    expect(readConfig(parseEnv(envText({ SETTLED_STORE: store }))).store).toMatchObject({ path: './$HOME/a b.db' });
  });
});
