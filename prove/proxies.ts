import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { paymentEvent, signedHeaders } from '../test/support/deliveries.ts';
import { freePort } from '../test/support/http.ts';
import { type Installed, type Link, reserve, startAsInstalled } from './settled_process.ts';

/**
 * `npm run prove:proxies`: sends 3 000 genuine deliveries through nginx, Caddy and HAProxy, configured as in deploy/
 * but without TLS. They come in bursts with pauses, over 20 kept connections. None may fail.
 */
const BURSTS = 6;
const BURST_DELIVERIES = 500;
const PAUSE_MS = 1_500;

type Proxy = {
  file: string;
  /** The configuration for an address without TLS. */
  plain: (text: string, at: { port: number; hooksPort: number; folder: string }) => string;
  command: (file: string) => [string, ...string[]];
};

const PROXIES: Record<string, Proxy> = {
  nginx: {
    file: 'nginx.conf',
    plain: (text, { port, folder }) =>
      `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {}\nhttp { access_log off;\n${text
        .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
        .replace(/^ *ssl_.*\n/gm, '')
        .replace('/var/log/nginx/settled.log', `${folder}/settled.log`)}\n}`,
    command: (file) => ['nginx', '-c', file],
  },
  caddy: {
    file: 'Caddyfile',
    plain: (text, { port }) =>
      `{\n\tadmin off\n\tauto_https off\n}\n${text.replace('pay.example.com {', `http://127.0.0.1:${port} {`)}`,
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
  haproxy: {
    file: 'haproxy-tls.cfg',
    plain: (text, { port }) => text.replace(/bind :443 .*/, `bind 127.0.0.1:${port}`),
    command: (file) => ['haproxy', '-f', file],
  },
};

function deliver(port: number, { path, secret }: Link, id: string, agent: Agent): Promise<string> {
  const body = paymentEvent({ id, status: 'PENDING' });
  const headers = { ...signedHeaders(secret, body), 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent }, (answer) => {
      answer.resume().once('end', () => resolve(String(answer.statusCode)));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    sent.end(body);
  });
}

async function prove(name: string, proxy: Proxy, served: Installed, link: Link): Promise<boolean> {
  if (spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0) {
    process.stdout.write(`skip ${name}: it is not installed\n`);
    return true;
  }
  const folder = mkdtempSync(join(tmpdir(), 'settled-proxy-'));
  const port = await freePort();
  const { hooksPort } = served;
  const text = readFileSync(fileURLToPath(new URL(`../deploy/${proxy.file}`, import.meta.url)), 'utf8');
  const file = join(folder, proxy.file);
  const plain = proxy.plain(text, { port, hooksPort, folder });
  writeFileSync(file, plain.replace('127.0.0.1:8787', `127.0.0.1:${hooksPort}`));
  const [command, ...args] = proxy.command(file);
  const child: ChildProcess = spawn(command, args, { stdio: 'ignore', env: { ...process.env, HOME: folder } });
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  try {
    for (let n = 0; (await deliver(port, link, `evt_${name}`, agent)) !== '200'; n++) {
      if (n > 50) throw new Error(`${name} does not pass deliveries on`);
      await after(100);
    }
    const counts: Record<string, number> = {};
    for (let burst = 0; burst < BURSTS; burst++) {
      const ids = Array.from({ length: BURST_DELIVERIES }, (_, n) => `evt_${name}_${burst}_${n}`);
      const answers = await Promise.all(ids.map((id) => deliver(port, link, id, agent)));
      for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
      await after(PAUSE_MS);
    }
    const holds = counts['200'] === BURSTS * BURST_DELIVERIES;
    process.stdout.write(`${holds ? 'ok  ' : 'FAIL'} ${name}: ${JSON.stringify(counts)}\n`);
    return holds;
  } finally {
    agent.destroy();
    child.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  }
}

const folder = mkdtempSync(join(tmpdir(), 'settled-proxies-'));
const served = await startAsInstalled(folder);
try {
  const link = await reserve(served, 1);
  for (const [name, proxy] of Object.entries(PROXIES)) {
    if (!(await prove(name, proxy, served, link))) process.exitCode = 1;
  }
} finally {
  served.child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
