import { createServer, type Server } from 'node:net';
import { describe, expect, it } from 'vitest';
import { AddressTaken, HOST, type PortName, startAtPorts, USUAL_PORTS } from '../../demo/ports.ts';

const NAMES = Object.keys(USUAL_PORTS) as PortName[];

describe('the ports of the demo', () => {
  it('are the usual ones if they are free', async () => {
    const before = await free();
    const chosen = await startAtPorts(NAMES, async (ports) => ports);
    const after = await free();
    for (const name of NAMES.filter((name) => before.includes(name) && after.includes(name))) {
      expect(chosen[name]).toBe(USUAL_PORTS[name]);
    }
  });

  it('are chosen again if another program took one meanwhile, but not endlessly', async () => {
    let tries = 0;
    const start = async ({ shop }: { shop: number }) => {
      tries += 1;
      if (tries < 3) throw new AddressTaken();
      return shop;
    };
    expect(await startAtPorts(['shop'], start)).toBeGreaterThan(0);
    expect(tries).toBe(3);
    const never = startAtPorts(['shop'], () => Promise.reject(new AddressTaken()));
    await expect(never).rejects.toThrow('No free port was found for shop');
  });
});

async function free(): Promise<PortName[]> {
  const found: PortName[] = [];
  for (const name of NAMES) {
    const server = await listen(USUAL_PORTS[name]);
    if (server === null) continue;
    found.push(name);
    await new Promise((resolve) => server.close(resolve));
  }
  return found;
}

function listen(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(null));
    server.listen({ port, host: HOST }, () => resolve(server));
  });
}
