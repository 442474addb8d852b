import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Folder } from './folder.ts';
import { AddressTaken, HOST, startAtPorts, USUAL_PORTS } from './ports.ts';
import type { Processes } from './processes.ts';
import { connectSandbox, type Sandbox } from './sandbox.ts';
import { connectSettled, type Settled } from './settled.ts';
import { openShop, type Shop } from './shop/server.ts';

/** Where everything is. None of it is reached from another machine. */
export type Addresses = { shop: string; sandbox: string; operator: string; hooks: string };

export type Demo = {
  readonly addresses: Addresses;
  readonly storePath: string;
  /** As the shop, and as the operator, who may see what was refused. */
  readonly settled: { asShop: Settled; asOperator: Settled };
  readonly sandbox: Sandbox;
  /** Closes the shop; the processes are stopped by themselves. */
  close(): void;
};

/** Starts the sandbox, settled on it, and the shop on settled: the first two as processes that are spoken to by HTTP. */
export async function startDemo(folder: Folder, processes: Processes): Promise<Demo> {
  const apiKey = randomToken();
  const shopToken = randomToken();
  const sandbox = await startSandbox({ folder, processes, apiKey });
  const storePath = join(folder.path, 'settled.db');
  const { hooks, operator } = await startSettled({ processes, storePath, apiKey, shopToken, sandbox });
  const asShop = connectSettled(operator, shopToken);
  const shop = await startShop(asShop, sandbox);
  const operatorToken = readFileSync(`${storePath}.operator-token`, 'utf8').trim();
  return {
    addresses: { shop: shop.url, sandbox, operator, hooks },
    storePath,
    settled: { asShop, asOperator: connectSettled(operator, operatorToken) },
    sandbox: connectSandbox(sandbox),
    close: shop.close,
  };
}

/** Those of the addresses that are not where they are looked for first. */
export function unusual(addresses: Addresses): { usual: number; instead: string }[] {
  const names = Object.keys(USUAL_PORTS) as (keyof Addresses)[];
  return names
    .filter((name) => addresses[name] !== urlOf(USUAL_PORTS[name]))
    .map((name) => ({ usual: USUAL_PORTS[name], instead: addresses[name] }));
}

type SandboxStart = { folder: Folder; processes: Processes; apiKey: string };

function startSandbox({ folder, processes, apiKey }: SandboxStart): Promise<string> {
  return startAtPorts(['sandbox'], async (ports) => {
    await processes.start({
      name: 'sandbox',
      args: [
        'sandbox',
        '--json',
        '--listen',
        `${HOST}:${ports.sandbox}`,
        '--data',
        join(folder.path, 'sandbox.db'),
      ],
      environment: { SETTLED_SANDBOX_API_KEY: apiKey },
      ready: /^\{"url"/,
    });
    return urlOf(ports.sandbox);
  });
}

type SettledStart = {
  processes: Processes;
  storePath: string;
  apiKey: string;
  shopToken: string;
  sandbox: string;
};

function startSettled({ processes, storePath, apiKey, shopToken, sandbox }: SettledStart) {
  return startAtPorts(['hooks', 'operator'], async (ports) => {
    const [hooks, operator] = [urlOf(ports.hooks), urlOf(ports.operator)];
    await processes.start({
      name: 'settled',
      args: ['serve'],
      environment: {
        SETTLED_STORE: `sqlite:${storePath}`,
        SETTLED_HOOKS_LISTEN: `${HOST}:${ports.hooks}`,
        SETTLED_OPERATOR_LISTEN: `${HOST}:${ports.operator}`,
        SETTLED_PUBLIC_URL: hooks,
        SETTLED_SHOP_TOKEN: shopToken,
        SETTLED_API_URL: sandbox,
        SETTLED_API_KEY: apiKey,
        SETTLED_RETURN: 'on',
      },
      ready: /settled is serving/,
    });
    return { hooks, operator };
  });
}

function startShop(settled: Settled, sandboxUrl: string): Promise<Shop> {
  return startAtPorts(['shop'], ({ shop }) =>
    openShop({ port: shop, settled, sandboxUrl }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EADDRINUSE' ? new AddressTaken() : error;
    }),
  );
}

function urlOf(port: number): string {
  return `http://${HOST}:${port}`;
}

function randomToken(): string {
  return randomBytes(24).toString('base64url');
}
