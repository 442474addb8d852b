import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { connectSandbox, connectSettled, type Sandbox, type Settled } from './clients.ts';
import type { Folder } from './folder.ts';
import { AddressTaken, HOST, startAtPorts, USUAL_PORTS } from './ports.ts';
import type { Processes } from './processes.ts';
import { listenAt, NOTICES_PATH, openShop, type Shop } from './shop/server.ts';

/** Where everything listens: on this machine only. */
export type Addresses = { shop: string; sandbox: string; operator: string; hooks: string };

export type Demo = {
  readonly addresses: Addresses;
  readonly storePath: string;
  /** With the shop's token, and with the operator's, which may read rejections. */
  readonly settled: { asShop: Settled; asOperator: Settled };
  readonly sandbox: Sandbox;
  /** What the shop knows of an order from signed notices. */
  readonly noticesOf: Shop['noticesOf'];
  /** Closes the shop, and leaves the processes running. */
  close(): void;
};

/**
 * Starts the sandbox and settled as processes, and the shop in this one. They speak HTTP. The shop listens before
 * settled starts, because settled must know where to send notices.
 */
export async function startDemo(folder: Folder, processes: Processes): Promise<Demo> {
  const apiKey = randomToken();
  const shopToken = randomToken();
  const sandbox = await startSandbox({ folder, processes, apiKey });
  const storePath = join(folder.path, 'settled.db');
  const { server, url } = await listenForShop();
  const shopSecret = `whsec_${randomBytes(32).toString('base64')}`;
  const { hooks, operator } = await startSettled({
    processes,
    storePath,
    apiKey,
    shopToken,
    shopSecret,
    shopUrl: url + NOTICES_PATH,
    sandbox,
  });
  const asShop = connectSettled(operator, shopToken);
  const operatorToken = readFileSync(`${storePath}.operator-token`, 'utf8').trim();
  const asOperator = connectSettled(operator, operatorToken);
  const shop = openShop({
    server,
    url,
    settled: asShop,
    secret: shopSecret,
    sandboxUrl: sandbox,
    consoleLink: asOperator.consoleLink,
    consoleUrl: operator,
  });
  return {
    addresses: { shop: url, sandbox, operator, hooks },
    storePath,
    settled: { asShop, asOperator },
    sandbox: connectSandbox(sandbox),
    noticesOf: shop.noticesOf,
    close: shop.close,
  };
}

/** The addresses that are not at their usual ports. */
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
      args: ['sandbox', '--json', '--listen', `${HOST}:${ports.sandbox}`, '--data', join(folder.path, 'sandbox.db')],
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
  shopSecret: string;
  shopUrl: string;
  sandbox: string;
};

function startSettled(start: SettledStart) {
  const { processes, storePath, apiKey, shopToken, shopSecret, shopUrl, sandbox } = start;
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
        SETTLED_SHOP_URL: shopUrl,
        SETTLED_SHOP_SECRET: shopSecret,
        SETTLED_SHOP_ALLOW_PRIVATE: 'true',
        SETTLED_LOG_FORMAT: 'pretty',
        SETTLED_CONSOLE_BADGE: 'demo',
      },
      ready: /settled is serving/,
    });
    return { hooks, operator };
  });
}

function listenForShop(): Promise<{ server: Server; url: string }> {
  return startAtPorts(['shop'], async ({ shop }) => {
    const server = await listenAt(shop).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EADDRINUSE' ? new AddressTaken() : error;
    });
    return { server, url: urlOf(shop) };
  });
}

function urlOf(port: number): string {
  return `http://${HOST}:${port}`;
}

function randomToken(): string {
  return randomBytes(24).toString('base64url');
}
