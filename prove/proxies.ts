import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { type DeployedProxy, provedBehind } from './harness/behind.ts';
import { inFolder } from './harness/proof.ts';
import { eventOf, outcomeOf } from './harness/send.ts';
import { startAsInstalled } from './harness/settled.ts';
import { until } from './harness/wait.ts';

/**
 * `npm run prove:proxies`: sends 3 000 genuine deliveries through nginx, Caddy and HAProxy, configured as in deploy/
 * but without TLS. They come in bursts with pauses, over 20 kept connections. None may fail.
 */
const BURSTS = 6;
const BURST_DELIVERIES = 500;
const PAUSE_MS = 1_500;

const PASSES_WITHIN_MS = 5_000;

const PROXIES: Record<string, DeployedProxy> = {
  nginx: {
    file: 'nginx.conf',
    here: (text, { port, folder }) =>
      `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {}\nhttp { access_log off;\n${text
        .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
        .replace(/^ *ssl_.*\n/gm, '')
        .replace('/var/log/nginx/settled.log', `${folder}/settled.log`)}\n}`,
    command: (file) => ['nginx', '-c', file],
  },
  caddy: {
    file: 'Caddyfile',
    here: (text, { port }) =>
      `{\n\tadmin off\n\tauto_https off\n}\n${text.replace('pay.example.com {', `http://127.0.0.1:${port} {`)}`,
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
  haproxy: {
    file: 'haproxy-tls.cfg',
    here: (text, { port }) => text.replace(/bind :443 .*/, `bind 127.0.0.1:${port}`),
    command: (file) => ['haproxy', '-f', file],
  },
};

await inFolder('proxies', async (folder) => {
  const served = await startAsInstalled(folder);
  const { hooksPort } = served;
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  try {
    const link = await served.reserve('order-1');
    for (const [name, proxy] of Object.entries(PROXIES)) {
      const isProved = await provedBehind(name, proxy, { address: '127.0.0.1:8787', port: hooksPort }, async (port) => {
        const deliver = (id: string) => outcomeOf(port, link, eventOf(link, id, 'PENDING'), { agent });
        await until('passing on a delivery', PASSES_WITHIN_MS, async () => (await deliver(`evt_${name}`)) === '200');
        const counts: Record<string, number> = {};
        for (let burst = 0; burst < BURSTS; burst++) {
          const ids = Array.from({ length: BURST_DELIVERIES }, (_, n) => `evt_${name}_${burst}_${n}`);
          for (const outcome of await Promise.all(ids.map(deliver))) counts[outcome] = (counts[outcome] ?? 0) + 1;
          await after(PAUSE_MS);
        }
        const found = JSON.stringify(counts);
        if (counts['200'] !== BURSTS * BURST_DELIVERIES) throw new Error(found);
        return found;
      });
      if (!isProved) process.exitCode = 1;
    }
  } finally {
    agent.destroy();
    await served.end('SIGKILL');
  }
});
