import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/support/chromium.ts';
import { freePort } from '../test/support/http.ts';

/**
 * `npm run prove:console-proxy`: the console behind nginx and Caddy, with TLS under `/ops/pay`, as in deploy/. In a real
 * browser: signs in by a cookie with the prefix `__Host-`, follows what happens, exports a list and signs out.
 */

const PREFIX = '/ops/pay';
const TOKEN = 'operator-token-of-the-proof';
const LIVE_WITHIN_MS = 3_000;

type Proxy = {
  file: string;
  /** The configuration in deploy/, for this port, certificate and settled. */
  here: (text: string, at: { port: number; folder: string }) => string;
  command: (file: string) => [string, ...string[]];
};

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    file: 'nginx-console.conf',
    here: (text, { port, folder }) =>
      `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {}\nhttp { access_log off;\n${text
        .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
        .replace('/etc/ssl/shop.example.com.pem', `${folder}/cert.pem`)
        .replace('/etc/ssl/shop.example.com.key', `${folder}/key.pem`)
        .replace('shop.example.com', 'localhost')}\n}`,
    command: (file) => ['nginx', '-c', file],
  },
  caddy: {
    file: 'Caddyfile-console',
    here: (text, { port, folder }) =>
      `{\n\tadmin off\n\tauto_https off\n}\n${text.replace(
        'shop.example.com {',
        `https://localhost:${port} {\n\ttls ${folder}/cert.pem ${folder}/key.pem`,
      )}`,
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
};

function makeCertificate(folder: string): void {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const named = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const args = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    ...named,
    '-keyout',
    key,
    '-out',
    certificate,
  ];
  const made = spawnSync('openssl', args);
  if (made.status !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`);
}

/** Waits until an address answers at all. */
async function untilAnswered(url: string): Promise<void> {
  for (let n = 0; ; n++) {
    const status = await new Promise<number>((resolve) => {
      request(url, { rejectUnauthorized: false }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      })
        .once('error', () => resolve(0))
        .end();
    });
    if (status === 200) return;
    if (n > 100) throw new Error(`${url} answers ${status || 'nothing'}`);
    await after(100);
  }
}

function serve(folder: string, environment: Record<string, string>): ChildProcess {
  const launcher = fileURLToPath(new URL('../bin/settled.mjs', import.meta.url));
  const log = { SETTLED_STORE: `sqlite:${folder}/settled.db`, SETTLED_HOOKS_LISTEN: '127.0.0.1:0', ...environment };
  return spawn(process.execPath, [launcher, 'serve'], {
    env: { PATH: process.env.PATH ?? '', ...log },
    stdio: 'ignore',
  });
}

function api(port: number, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  return fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** What a person does; throws the first thing that does not work. */
async function use(page: Page, { url, operatorPort }: { url: string; operatorPort: number }): Promise<void> {
  const wrongs: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') wrongs.push(message.text());
  });
  page.on('pageerror', (error) => wrongs.push(error.message));
  await page.goto(`${url}/orders?state=held`);
  check(page.url().startsWith(`${url}/sign-in?back=`), `not led to sign in, but to ${page.url()}`);
  await page.fill('#token', TOKEN);
  await page.click('main button');
  await page.waitForURL(`${url}/orders?state=held`);
  const [cookie, ...others] = await page.context().cookies();
  check(others.length === 0 && cookie?.name.startsWith('__Host-') === true, `the cookie is ${cookie?.name}`);
  check(cookie?.secure === true && cookie.httpOnly && cookie.path === '/', 'the cookie is not as it must be');
  await page.goto(`${url}/orders`);
  const reference = `order-${Date.now()}`;
  const made = await api(operatorPort, '/v1/links', { reference, amount: '150.00' });
  check(made.status === 201, `no order was made: ${made.status}`);
  await page.getByText(reference).first().waitFor({ timeout: LIVE_WITHIN_MS });
  const exported = await page.request.get(`${url}/v1/orders.csv`, { ignoreHTTPSErrors: true });
  check(exported.status() === 200 && (await exported.text()).includes(reference), `no CSV: ${exported.status()}`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(`${url}/sign-in`);
  check((await page.context().cookies()).length === 0, 'the cookie stays after signing out');
  check(wrongs.length === 0, `the browser complained: ${wrongs.join('; ')}`);
}

async function prove(name: string, proxy: Proxy, browser: Browser): Promise<boolean> {
  if (spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0) {
    process.stdout.write(`skip ${name}: it is not installed\n`);
    return true;
  }
  const folder = mkdtempSync(join(tmpdir(), 'settled-console-proxy-'));
  const [port, operatorPort] = [await freePort(), await freePort()];
  makeCertificate(folder);
  const text = readFileSync(fileURLToPath(new URL(`../deploy/${proxy.file}`, import.meta.url)), 'utf8');
  const file = join(folder, proxy.file);
  writeFileSync(file, proxy.here(text, { port, folder }).replaceAll('127.0.0.1:8788', `127.0.0.1:${operatorPort}`));
  const url = `https://localhost:${port}${PREFIX}`;
  const settled = serve(folder, {
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
    SETTLED_OPERATOR_TOKEN: TOKEN,
    SETTLED_CONSOLE_URL: url,
  });
  const [command, ...args] = proxy.command(file);
  const child = spawn(command, args, { stdio: 'ignore', env: { ...process.env, HOME: folder } });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    await untilAnswered(`${url}/sign-in`);
    await use(await context.newPage(), { url, operatorPort });
    process.stdout.write(`ok   ${name}: signed in, followed, exported and signed out under ${PREFIX}\n`);
    return true;
  } catch (error) {
    process.stdout.write(`FAIL ${name}: ${(error as Error).message}\n`);
    return false;
  } finally {
    await context.close();
    child.kill('SIGTERM');
    settled.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

const browser = await launchChromium();
try {
  for (const [name, proxy] of Object.entries(PROXIES)) if (!(await prove(name, proxy, browser))) process.exitCode = 1;
} finally {
  await browser.close();
}
