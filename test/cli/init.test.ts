import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import type { Finished } from '../../prove/harness/program.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { envText } from '../../src/cli/init_files.ts';
import { readConfig } from '../../src/config/config.ts';
import { emptyDatabase } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { serverAt } from '../support/postgres.ts';
import { runSandbox, spawnSettled } from '../support/process.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';
import { runIn } from './settled.ts';

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
    return runIn(folder, ['init', '--json', ...switches, ...given], { ...environment, ...extra });
  };
  return { folder, environment, answers, init };
}

function refusal({ stdout, stderr }: Finished): { code: string; exit: number; message: string } {
  expect(stdout).toBe('');
  return JSON.parse(stderr).error;
}

type Check = { name: string; status: string; detail: string };
const failingIn = ({ stdout }: Finished): Check[] =>
  JSON.parse(stdout).doctor.checks.filter(({ status }: Check) => status === 'failing');

const modeOf = (path: string) => statSync(path).mode & 0o777;
const contentOf = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8').trim();

describe('cli: init writes what works', () => {
  it('with SQLite: settings, secrets for this user alone, and doctor finds nothing failing', async () => {
    const { folder, answers, init, environment } = await prepare();
    const end = await init({ store: 'sqlite:./its $HOME #1/s.db' });
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    const { doctor, files } = JSON.parse(end.stdout);
    expect(files).toEqual(['data/api-key', 'data/shop-token', '.env']);
    const ok = doctor.checks.filter(({ status }: Check) => status === 'ok').map(({ name }: Check) => name);
    expect(ok).toEqual(expect.arrayContaining(['server', 'public address', 'service']));
    expect(failingIn(end)).toEqual([]);
    expect([modeOf(join(folder, 'data')), modeOf(join(folder, '.env'))]).toEqual([0o700, 0o600]);
    for (const file of readdirSync(join(folder, 'data'))) expect(modeOf(join(folder, 'data', file))).toBe(0o600);
    expect(modeOf(join(folder, 'its $HOME #1/s.db'))).toBe(0o600);
    expect(parseEnv(readFileSync(join(folder, '.env'), 'utf8'))).toEqual({
      SETTLED_PUBLIC_URL: answers['public-url'],
      SETTLED_API_URL: answers['service-url'],
      SETTLED_API_KEY_FILE: 'data/api-key',
      SETTLED_STORE: 'sqlite:./its $HOME #1/s.db',
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
  });

  it('with PostgreSQL and a callback: each secret in a file', async () => {
    const { folder, init } = await prepare();
    const store = await emptyDatabase();
    const shopUrl = `http://127.0.0.1:${await freePort()}/settled?secret=of-the-path`;
    const end = await init({ store, 'shop-url': shopUrl }, ['--shop-allow-private']);
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    expect(failingIn(end)).toEqual([]);
    expect(readdirSync(join(folder, 'data'))).toEqual(SECRET_FILES);
    expect(readFileSync(join(folder, '.env'), 'utf8')).not.toContain('postgres:');
    expect(readFileSync(join(folder, '.env'), 'utf8')).toContain('SETTLED_SHOP_ALLOW_PRIVATE=true\n');
    for (const file of SECRET_FILES) expect(end.stdout).not.toContain(contentOf(folder, `data/${file}`));
    expect(end.stdout).not.toContain('of-the-path');
  });

  it('and says what is wrong with it, once it is written', async () => {
    const wrong = join(testFolder(), 'wrong');
    writeFileSync(wrong, 'not-the-key');
    const noDatabase = serverAt(inject('postgres')).url('none');
    const table: [Record<string, string>, string, RegExp][] = [
      [{ 'api-key-file': wrong }, 'service', /key/],
      [{ 'public-url': `http://127.0.0.1:${await freePort()}` }, 'public address', /does not arrive \(ECONNREFUSED\)/],
      [{ store: 'sqlite:./data/api-key/s.db' }, 'start', /data\/api-key/],
      [{ store: 'sqlite:/proc/settled/s.db' }, 'start', /\/proc\/settled/],
      [{ store: noDatabase }, 'start', /database "none" does not exist/],
    ];
    for (const [given, name, detail] of table) {
      const { folder, init } = await prepare();
      const end = await init(given);
      expect(end).toMatchObject({ code: EXIT.refused, stderr: '' });
      expect(failingIn(end)).toEqual([{ name, status: 'failing', detail: expect.stringMatching(detail) }]);
      expect(JSON.parse(end.stdout).next[0]).toMatch(/^If something is failing, correct it/);
      expect(readdirSync(folder)).toContain('.env');
      expect(end.stdout).not.toContain('not-the-key');
    }
  });
});

describe('cli: init where something is already', () => {
  it.each([
    ['a .env', '.env'],
    ['a folder of secrets, perhaps of another user', 'data'],
    ['a link to one', 'data ->'],
  ])('changes nothing if there is %s', async (_, name) => {
    const { folder, init } = await prepare();
    const others = testFolder();
    const [path = ''] = name.split(' ');
    if (path === '.env') writeFileSync(join(folder, path), 'OTHER=1\n');
    else if (name === path) mkdirSync(join(folder, path));
    else symlinkSync(others, join(folder, path));
    const refused = refusal(await init());
    expect(refused).toMatchObject({ code: 'not_confirmed', exit: EXIT.refused });
    expect(refused.message).toContain(`${join(folder, path)} exists, and nothing was changed`);
    expect([readdirSync(folder), readdirSync(others)]).toEqual([[path], []]);
  });

  it('says so if the folder cannot be written', async () => {
    const { answers, environment } = await prepare();
    const given = Object.entries(answers).flatMap(([name, value]) => [`--${name}`, value]);
    const refused = refusal(await runIn('/proc', ['init', '--json', ...given], environment));
    expect(refused).toMatchObject({ code: 'files_unwritable', exit: EXIT.notAllowed });
    expect(refused.message).toMatch(/^\/proc\/data cannot be written \(E\w+\)/);
  });
});

describe('cli: init refuses an answer, and writes nothing', () => {
  it('names the options that are missing', async () => {
    const cwd = testFolder();
    const said = async (args: readonly string[]) => {
      const { code, stderr } = await runIn(cwd, ['init', ...args], {});
      expect([code, readdirSync(cwd)]).toEqual([EXIT.usage, []]);
      return stderr;
    };
    expect(await said(['--public-url', 'https://pay.example.com'])).toMatch(
      /^settled: `settled init` lacks --service-url, --api-key-file: settled help init$/m,
    );
    expect(await said([])).toContain('lacks --service-url, --api-key-file, --public-url:');
  });

  it('that a start would refuse, or that the environment gives as well', async () => {
    const { folder, init } = await prepare();
    const service = 'https://links.example.com';
    const refused = { code: 'answer_refused', exit: EXIT.configuration };
    const invalid = { code: 'configuration_invalid', exit: EXIT.configuration };
    const table: [Record<string, string>, Record<string, string>, object, RegExp][] = [
      [{ 'service-url': 'links' }, {}, invalid, /- SETTLED_API_URL is not an address/],
      [
        { 'service-url': service, 'public-url': 'http://pay.example.com' },
        {},
        refused,
        /^The service cannot deliver to http:.* --public-url .*https address/,
      ],
      [{ 'service-url': service }, {}, refused, /^The service cannot deliver to http:/],
      [
        { 'public-url': 'https://pay.example.com\nSETTLED_CURRENCY=EUR' },
        {},
        refused,
        /^SETTLED_PUBLIC_URL cannot be written into \.env/,
      ],
      [{ store: 'mysql://db' }, {}, invalid, /- SETTLED_STORE names no store/],
      [{ 'shop-url': 'http://127.0.0.1:9/settled' }, {}, invalid, /- SETTLED_SHOP_URL leads .*_ALLOW_PRIVATE=true/],
      [{}, { SETTLED_STORE: 'mysql://db' }, invalid, /- SETTLED_STORE names no store/],
      [{ 'shop-url': service }, { SETTLED_SHOP_ALLOW_PRIVATE: 'perhaps' }, invalid, /- SETTLED_SHOP_ALLOW_PRIVATE is/],
      [
        { 'api-key-file': '/dev/null' },
        {},
        { code: 'usage' },
        /^--api-key-file \/dev\/null gives nothing: it is empty/,
      ],
      [{}, { SETTLED_CURRENCY: 'real' }, invalid, /SETTLED_CURRENCY/],
      [{}, { SETTLED_PUBLIC_URL: service }, { code: 'usage' }, /^--public-url and SETTLED_PUBLIC_URL are both given/],
    ];
    for (const [given, environment, error, message] of table) {
      const told = refusal(await init(given, [], environment));
      expect(told).toMatchObject(error);
      expect(told.message).toMatch(message);
      expect(readdirSync(folder)).toEqual([]);
    }
  });
});

describe('docs/first-hour.md', () => {
  const page = readFileSync(new URL('../../docs/first-hour.md', import.meta.url), 'utf8');
  const [trial = ''] = page.split('## Try a first order').slice(1);
  const [setUp = [], order = []] = [...trial.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) =>
    block.trim().split('\n'),
  );

  it('tries a first order at the sandbox by commands that can be pasted', async () => {
    const { environment, folder, answers, init } = await prepare();
    const given = Object.keys(answers).map((name) => `--${name} `);
    expect(given.filter((option) => !setUp[0]?.includes(option))).toEqual([]);
    expect([setUp.length, setUp[1]]).toEqual([2, 'settled serve']);
    expect((await init()).code).toBe(EXIT.ok);
    await spawnSettled(['serve'], environment, { cwd: folder }).line(/settled is serving/);
    const outputs: string[] = [];
    for (const line of order) {
      const [, ...words] = [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
      const paste = async () => {
        const end =
          words[0] === 'sandbox'
            ? await runSandbox([...words.slice(1), '--url', answers['service-url'] ?? ''])
            : await runIn(folder, words, environment);
        expect(end).toMatchObject({ code: 0, stderr: '' });
        if (words[0] === 'why') expect(end.stdout).toMatch(/^Order trial-1 \(60\.00 BRL\) is paid\./);
        return end.stdout;
      };
      outputs.push(await eventually(paste));
    }
    expect(outputs).toHaveLength(3);
  });

  it('names every option and every file', () => {
    const options = COMMANDS.find(({ name }) => name === 'init')?.options ?? {};
    expect(Object.keys(options)).toHaveLength(6);
    expect(Object.keys(options).filter((name) => !page.includes(`--${name}`))).toEqual([]);
    const files = ['.env', ...SECRET_FILES.map((file) => `data/${file}`)];
    expect(files.filter((file) => !page.includes(`\`${file}\``))).toEqual([]);
  });
});

describe('cli: init: a value in .env', () => {
  const unit = fc.constantFrom(...`'"\`$\\#= !{}()é ab1`);
  const value = fc.oneof(fc.string({ unit, maxLength: 20 }), fc.string({ maxLength: 20 }));

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
      { numRuns: 1_000 },
    );
    expect(written).toBeGreaterThan(500);
  });

  it('reaches the configuration as the shell and compose would give it too: between single quotes', () => {
    const store = 'sqlite:./$HOME/a b.db';
    expect(envText({ SETTLED_STORE: store })).toContain(`SETTLED_STORE='${store}'`);
    expect(readConfig(parseEnv(envText({ SETTLED_STORE: store }))).store).toMatchObject({ path: './$HOME/a b.db' });
  });
});
