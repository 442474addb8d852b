import { spawnSync } from 'node:child_process';
import { request } from 'node:https';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/support/chromium.ts';
import { freePort } from '../test/support/network.ts';
import { type DeployedProxy, provedBehind } from './harness/behind.ts';
import { OPERATOR_TOKEN, type Serving, serveEnvironment, startSettled, whenServing } from './harness/settled.ts';
import { until } from './harness/wait.ts';

/**
 * `npm run prove:console-proxy`: the console behind nginx and Caddy, with TLS under `/ops/pay`, as in deploy/. In a real
 * browser: signs in by a cookie with the prefix `__Host-`, follows what happens, exports a list and signs out.
 */

const PREFIX = '/ops/pay';
const LIVE_WITHIN_MS = 3_000;
const ANSWERS_WITHIN_MS = 10_000;

const PROXIES: Readonly<Record<string, DeployedProxy>> = {
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
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  const named = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const made = spawnSync('openssl', [...'req -x509 -newkey rsa:2048 -nodes -days 2'.split(' '), ...named, ...files]);
  if (made.status !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`);
}

/** The status of an answer; 0 if there is none. */
function statusOf(url: string): Promise<number> {
  return new Promise((resolve) => {
    const asking = request(url, { rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asking.once('error', () => resolve(0)).end();
  });
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** What a person does; throws the first thing that does not work. */
async function use(page: Page, url: string, settled: Serving): Promise<void> {
  const wrongs: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') wrongs.push(message.text());
  });
  page.on('pageerror', (error) => wrongs.push(error.message));
  await page.goto(`${url}/orders?state=held`);
  check(page.url().startsWith(`${url}/sign-in?back=`), `not led to sign in, but to ${page.url()}`);
  await page.fill('#token', OPERATOR_TOKEN);
  await page.click('main button');
  await page.waitForURL(`${url}/orders?state=held`);
  const [cookie, ...others] = await page.context().cookies();
  check(others.length === 0 && cookie?.name.startsWith('__Host-') === true, `the cookie is ${cookie?.name}`);
  check(cookie?.secure === true && cookie.httpOnly && cookie.path === '/', 'the cookie is not as it must be');
  await page.goto(`${url}/orders`);
  const reference = `order-${Date.now()}`;
  await settled.reserve(reference);
  await page.getByText(reference).first().waitFor({ timeout: LIVE_WITHIN_MS });
  const exported = await page.request.get(`${url}/v1/orders.csv`, { ignoreHTTPSErrors: true });
  check(exported.status() === 200 && (await exported.text()).includes(reference), `no CSV: ${exported.status()}`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(`${url}/sign-in`);
  check((await page.context().cookies()).length === 0, 'the cookie stays after signing out');
  check(wrongs.length === 0, `the browser complained: ${wrongs.join('; ')}`);
}

async function prove(name: string, proxy: DeployedProxy, browser: Browser): Promise<boolean> {
  const operatorPort = await freePort();
  const here: DeployedProxy['here'] = (text, at) => {
    makeCertificate(at.folder);
    return proxy.here(text, at);
  };
  return provedBehind(
    name,
    { ...proxy, here },
    { address: '127.0.0.1:8788', port: operatorPort },
    async (port, folder) => {
      const url = `https://localhost:${port}${PREFIX}`;
      const settled = startSettled({
        ...serveEnvironment(join(folder, 'settled.db')),
        SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
        SETTLED_CONSOLE_URL: url,
      });
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      try {
        const serving = await whenServing(settled);
        await until(`answering ${url}`, ANSWERS_WITHIN_MS, async () => (await statusOf(`${url}/sign-in`)) === 200, 100);
        await use(await context.newPage(), url, serving);
        return `signed in, followed, exported and signed out under ${PREFIX}`;
      } finally {
        await context.close();
        await settled.end('SIGKILL');
      }
    },
  );
}

const browser = await launchChromium();
try {
  for (const [name, proxy] of Object.entries(PROXIES)) if (!(await prove(name, proxy, browser))) process.exitCode = 1;
} finally {
  await browser.close();
}
