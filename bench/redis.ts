import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { until } from '../prove/harness/wait.ts';
import { AMOUNT_MINOR, CURRENCY } from './deliveries.ts';
import { cpuSecondsOfFamily, spawnServer } from './servers.ts';
import type { Workspace } from './workspace.ts';

/** A store that is made for one measurement, with an order for each link. */
export type Fresh = {
  /** How its server reaches it. */
  address: string;
  /** Processor time of its own process; 0 if it has none. */
  cpuSeconds(): number;
  /** Orders that are paid, and notices of that. */
  count(): Promise<{ paid: number; notices: number }>;
  dispose(): Promise<void>;
};

const READY_WITHIN_MS = 10_000;

const FILL = `
  for n = 0, ARGV[1] - 1 do
    redis.call('HSET', 'order:order-' .. n, 'amount_minor', ARGV[2], 'currency', ARGV[3], 'state', 'awaiting_payment')
  end`;
const COUNT = `
  local paid = 0
  for n = 0, ARGV[1] - 1 do
    if redis.call('HGET', 'order:order-' .. n, 'state') == 'paid' then paid = paid + 1 end
  end
  return cjson.encode({ paid = paid, notices = redis.call('XLEN', 'outbox') })`;

export function assertRedisIsThere(): void {
  if (spawnSync('redis-server', ['--version']).status === 0) return;
  throw new Error('it needs redis-server and redis-cli: apt-get install redis-server, or --only what works without');
}

/** A Redis of its own, on the disk of `TMPDIR`, which answers when what it was told is on the disk. */
export async function startRedis(workspace: Workspace, links: number): Promise<Fresh> {
  const folder = workspace.path('redis');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const address = `${folder}/socket`;
  const durable = [
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
    '--save',
    '',
    '--auto-aof-rewrite-percentage',
    '0',
  ];
  const flags = ['--port', '0', '--unixsocket', address, '--dir', folder, ...durable];
  const { child, exit } = spawnServer(workspace.log, 'redis-server', flags);
  const ask = async (...words: (string | number)[]) => {
    const { stdout } = await promisify(execFile)('redis-cli', ['-s', address, ...words.map(String)]);
    return stdout.trim();
  };
  await until('starting Redis', READY_WITHIN_MS, async () => (await ask('PING').catch(() => '')) === 'PONG');
  await ask('EVAL', FILL, 0, links, AMOUNT_MINOR, CURRENCY);
  return {
    address,
    cpuSeconds: () => cpuSecondsOfFamily(child.pid as number),
    count: async () => JSON.parse(await ask('EVAL', COUNT, 0, links)),
    dispose: () => {
      child.kill('SIGKILL');
      return exit;
    },
  };
}
