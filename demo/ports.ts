import { createServer, type Server } from 'node:net';
import { DemoError, EXIT } from './command.ts';

/** The port of each address, if it is free. */
export const USUAL_PORTS = { hooks: 8787, operator: 8788, shop: 8789, sandbox: 8790 } as const;

export type PortName = keyof typeof USUAL_PORTS;

export const HOST = '127.0.0.1';

const TRIES = 3;

/** An address that was free a moment ago is taken now. */
export class AddressTaken extends Error {}

/**
 * Calls `start` with these ports: the usual ones, and a free one for each that is taken. If `start` throws
 * `AddressTaken`, because another program took a port meanwhile, it chooses again, up to three times.
 */
export async function startAtPorts<Name extends PortName, T>(
  names: readonly Name[],
  start: (ports: Record<Name, number>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start(await choosePorts(names));
    } catch (error) {
      if (!(error instanceof AddressTaken)) throw error;
      if (attempt < TRIES) continue;
      throw new DemoError(EXIT.failed, `No free port was found for ${names.join(' and ')}. Try again.`);
    }
  }
}

async function choosePorts<Name extends PortName>(names: readonly Name[]): Promise<Record<Name, number>> {
  // Hold all of them at once, so that no port is chosen twice.
  const held: Server[] = [];
  try {
    const ports = {} as Record<Name, number>;
    for (const name of names) {
      const server = (await listen(USUAL_PORTS[name])) ?? (await listen(0));
      if (server === null) throw new DemoError(EXIT.failed, `Nothing can listen at ${HOST} on this machine.`);
      held.push(server);
      ports[name] = (server.address() as { port: number }).port;
    }
    return ports;
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/** Null if the port is taken. */
function listen(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(null));
    server.listen({ port, host: HOST }, () => resolve(server));
  });
}
