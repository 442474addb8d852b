import type { Agent } from 'node:http';
import { type Exchanged, exchange, type Reserved } from '../../prove/harness/send.ts';
import { type Serving, serveEnvironment, whenServing } from '../../prove/harness/settled.ts';
import { type SpawnOptions, spawnSettled } from '../support/process.ts';

/** Where it listens. */
export const listenersOf = ({ hooksPort, operatorPort }: Pick<Serving, 'hooksPort' | 'operatorPort'>) => ({
  apiUrl: `http://127.0.0.1:${operatorPort}`,
  hooksUrl: `http://127.0.0.1:${hooksPort}`,
});

/** Starts `settled serve` on free ports and waits until it serves. */
export async function startServing(
  storePath: string,
  environment: Record<string, string> = {},
  options: SpawnOptions = {},
): Promise<Serving> {
  return whenServing(spawnSettled(['serve'], { ...serveEnvironment(storePath), ...environment }, options));
}

/** Links of the orders `order-1`, `order-2` … */
export async function reserveMany(serving: Serving, count: number, name = 'order'): Promise<Reserved[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => serving.reserve(`${name}-${n + 1}`)));
}

export function get({ hooksPort }: { hooksPort: number }, path: string, agent?: Agent): Promise<Exchanged> {
  return exchange({ ...(agent && { agent }), port: hooksPort, path, method: 'GET' });
}
