import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { readConfig } from '../src/config/config.ts';
import { testFolder } from './support/app.ts';
import { blocksIn } from './support/markdown.ts';
import { freePort } from './support/network.ts';
import { paste, skipWithout, spawnSandbox, spawnSettled } from './support/process.ts';
import { eventuallyAfter } from './support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const [README, TRY, POSTGRES, SOURCE] = ['README.md', 'docs/try.md', 'docs/postgres.md', 'docs/source.md'].map(
  text,
) as [string, string, string, string];

/** settled without more than what it needs, for the tests that take it as it is: the first of them starts it. */
const plain = sharedServe();

describe('the README', () => {
  it('names only commands and files that are there', () => {
    const links = [...README.matchAll(/\]\(([^)#]+)\)/g)].map(([, target]) => target as string);
    expect(links.filter((target) => !target.startsWith('http') && !existsSync(join(ROOT, target)))).toEqual([]);
    const folders = [...sectionOf('The folders', SOURCE).matchAll(/`(\w+\/[\w/.]*)`/g)].map(
      ([, path]) => path as string,
    );
    expect(folders.length).toBeGreaterThan(15);
    expect(folders.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['demo', 'start', 'test', 'settled', 'sandbox']));
  });

  it('has every local link of the other documents lead somewhere', () => {
    const documents = ['docs', 'examples', 'sandbox'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.md'))
        .map((file) => join(ROOT, folder, file)),
    );
    const broken = documents.flatMap((document) =>
      [...readFileSync(document, 'utf8').matchAll(/\]\(([^)#]+)[^)]*\)/g)]
        .map(([, target]) => target as string)
        .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(document), target)))
        .map((target) => `${document} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('begins with a command that plays the story which it tells', () => {
    const [first = ''] = blocksOf('Try it');
    expect(first).toBe('npm ci && npm run demo\n');
    expect(README).toContain('`npm run demo -- --once`');
    const told = [...sectionOf('Try it').matchAll(/^\| \d \| (.*) \| .* \|$/gm)].map(([, step = '']) => step);
    const output = paste('npm run -s demo -- --once');
    const [head = '', ...lines] = output.trimEnd().split('\n');
    expect(head).toMatch(/^# {2}STEP +WHAT HAPPENED +ORDER +SECONDS$/);
    const steps = lines.slice(0, 7).map((line) => /^(\d) {2}(.*?) {2,}.* {2}\d+\.\d\d$/.exec(line)?.slice(1));
    expect(steps).toEqual(told.map((step, at) => [String(at + 1), step.replaceAll('`', '')]));
    expect(output).toMatch(/^All 7 steps succeeded, in \d+\.\d s/m);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it('shows how it is run and tested, each by a command that works alone', () => {
    expect(blocksOf('Run it', TRY)[0]).toBe('npm start\n');
    expect(blocksOf('Test it')).toEqual(['npm ci && npm test\n']);
  });

  it('shows commands that open an order, pay it, and find a payment whose webhooks are lost when they are pasted', async ({
    skip,
  }) => {
    skipWithout(skip, ['bash', 'curl']);
    const [startSandbox = '', startSettled = '', pay = '', call = ''] = blocksOf('Open an order', TRY);
    const [, options = ''] = /^npm run -s sandbox -- (.*)\n$/.exec(startSandbox) ?? [];
    const sandbox = spawnSandbox([...options.split(' '), '--listen', '127.0.0.1:0', '--json']);
    const { url } = JSON.parse(await sandbox.line(/"url"/));
    const [, apiUrl, apiKey = ''] =
      /^SETTLED_API_URL=(\S+) SETTLED_API_KEY=(\S+) npm start\n$/.exec(startSettled) ?? [];
    expect(apiUrl).toBe('http://127.0.0.1:8790');
    const hooks = `127.0.0.1:${await freePort()}`;
    const served = await serve({
      SETTLED_API_URL: url,
      SETTLED_API_KEY: apiKey,
      SETTLED_HOOKS_LISTEN: hooks,
      SETTLED_PUBLIC_URL: `http://${hooks}`,
    });
    const lose = blocksOf('When webhooks are lost', TRY).join('');
    const [readFeed = ''] = blocksOf('Tell your shop', TRY);
    const at = (commands: string) =>
      paste(atTest(commands, served).replaceAll(/( sandbox .*)$/gm, `$1 --url ${url}`), served.environment);
    const [open = '', payIt = '', why = ''] = pay.trimEnd().split('\n');
    expect(at(open)).toContain(`${url}/pay/`);
    at(payIt);
    // The webhook was answered; the order is paid a moment later.
    await eventually(() => expect(at(why)).toMatch(/Order order-1001 .*is paid/));
    const [opened = '', lost = ''] = at(`${call}printf '\n--\n'\n${lose}`).split('\n--\n');
    expect(opened).toContain('"state":"awaiting_payment"');
    expect(lost).toMatch(/Order order-1002 .*is paid\. The service reported 60\.00 BRL when settled asked/);
    const feed = at(`${call}${readFeed}`);
    expect(feed.match(/"type":"order\.paid"/g)).toHaveLength(2);
    const orders = await fetch(`http://127.0.0.1:${served.operator.port}/v1/orders/order-1001`, {
      headers: { authorization: `Bearer ${readFileSync(`${served.folder}/data/settled.db.operator-token`, 'utf8')}` },
    });
    expect(await orders.json()).toMatchObject({ order: { learnedBy: 'webhook' } });
  });

  it('shows how a callback is configured', ({ skip }) => {
    skipWithout(skip, ['bash', 'openssl']);
    const [, configure = ''] = blocksOf('Tell your shop', TRY);
    const [, makeSecret = '', url = '', file = ''] =
      /^(.*)\nSETTLED_SHOP_URL=(\S+) SETTLED_SHOP_SECRET_FILE=(\S+) npm start\n$/.exec(configure) ?? [];
    const cwd = testFolder();
    execFileSync('bash', ['-euc', makeSecret], { cwd });
    const { shopUrl, shopSecrets } = readConfig({ SETTLED_SHOP_URL: url, SETTLED_SHOP_SECRET_FILE: join(cwd, file) });
    expect([shopUrl, shopSecrets?.map(({ length }) => length)]).toEqual([url, [32]]);
  });

  it('shows commands that start a replica on PostgreSQL, and not a shop on a file, when they are pasted', ({
    skip,
  }) => {
    skipWithout(skip, ['bash', 'openssl']);
    const [make = '', start = ''] = blocksOf('The replicas', POSTGRES);
    const cwd = testFolder();
    expect(start).toMatch(/\nnpm start\n$/);
    const pasted = `${make}${start.replace('npm start', `'${process.execPath}' -p 'JSON.stringify(process.env)'`)}`;
    const environment = JSON.parse(execFileSync('bash', ['-euc', pasted], { cwd, encoding: 'utf8' }));
    const given = Object.entries(environment).filter(([name]) => /^SETTLED_(?!TEST_)/.test(name));
    const { store, secretsKey, operatorToken } = readConfig(
      Object.fromEntries(given.map(([name, file]) => [name, join(cwd, String(file))])),
    );
    expect(store).toMatchObject({ engine: 'postgres', name: 'postgres://db.example.com:5432/settled' });
    expect([secretsKey?.length, operatorToken?.length]).toEqual([32, 48]);
  });

  it('shows commands that deliver by hand when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash', 'curl', 'openssl']);
    const served = await plain();
    const [name = '', reserve = '', deliver = '', look = ''] = blocksOf('Deliver by hand', TRY);
    const at = (commands: string) =>
      paste(
        atTest(commands, served).replace('"$WEBHOOK_URL"', `"\${WEBHOOK_URL/8787/${served.hooks.port}}"`),
        served.environment,
      );
    const delivered = at(`${name}${reserve}${deliver}`);
    expect(delivered).toContain('HTTP/1.1 200 OK');
    expect(delivered).toContain('{"received":true,"duplicate":false}');
    await eventually(() => {
      const looked = at(`${name}${look}`);
      expect(looked).toContain('"state":"paid"');
      expect(looked).toMatch(/Order order-2001 .*is paid/);
    });
  });
});

describe('the README of the sandbox', () => {
  it('shows commands that play a scenario at settled when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash']);
    const { hooks, environment } = await plain();
    const readme = readFileSync(join(ROOT, 'sandbox/README.md'), 'utf8');
    const block = /\n## Scenarios[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)?.[1] as string;
    const launcher = `'${process.execPath}' bin/settled.mjs`;
    const script = block
      .replace('--webhook-url "$WEBHOOK_URL"', `--webhook-url "\${WEBHOOK_URL/8787/${hooks.port}}"`)
      .replaceAll('npm run -s settled --', launcher)
      .replace('npm run -s sandbox --', `${launcher} sandbox`);
    const output = paste(script, environment);
    expect(output).toMatch(/^PASSED$/m);
    expect(output).toMatch(/Order play-1 .*is paid/);
  });
});

function sectionOf(title: string, page = README): string {
  const found = page.split('\n## ').find((section) => section.startsWith(`${title}\n`));
  if (found === undefined) throw new Error(`there is no section "${title}"`);
  return found;
}

/** The commands of a section, block by block. */
function blocksOf(title: string, page = README): string[] {
  return blocksIn(sectionOf(title, page));
}

/** The commands as they are at the server of the test. */
function atTest(commands: string, { folder, operator }: Served): string {
  const launcher = `'${process.execPath}' bin/settled.mjs`;
  return commands
    .replaceAll('http://127.0.0.1:8788', `http://127.0.0.1:${operator.port}`)
    .replaceAll('data/settled.db', `${folder}/data/settled.db`)
    .replaceAll('npm run -s sandbox --', `${launcher} sandbox`)
    .replaceAll('npm run -s settled --', launcher);
}

type Served = {
  folder: string;
  hooks: { port: number };
  operator: { port: number };
  environment: Record<string, string>;
};

function sharedServe(): () => Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  let served: Promise<Served> | undefined;
  let kill = () => {};
  afterAll(() => {
    kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    served ??= serve({}, { folder, atEnd: (end) => (kill = end) });
    return served;
  };
}

/** settled on free ports, and the environment in which its commands find it. */
async function serve(
  more: Record<string, string> = {},
  { folder = testFolder(), ...options }: { folder?: string; atEnd?: (kill: () => void) => void } = {},
): Promise<Served> {
  const environment = {
    SETTLED_STORE: `sqlite:${folder}/data/settled.db`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    ...more,
  };
  const served = spawnSettled(['serve'], environment, options);
  const { hooks, operator } = JSON.parse(await served.line(/settled is serving/));
  const reachable = { ...environment, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operator.port}` };
  return { folder, hooks, operator, environment: reachable };
}
