import { randomInt } from 'node:crypto';
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import {
  type AddressInfo,
  createServer,
  connect as dial,
  type ListenOptions,
  type NetConnectOpts,
  type Server,
  type Socket,
} from 'node:net';

/** A server that listens on this machine. `close` ends connections of HTTP, and waits for others to end. */
export type Listening = { port: number; url: string; close(): Promise<void> };

/** Has a server listen on a port that the system chooses. */
export async function listen(server: Server | HttpServer): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

export type Passed = { status: number; headers: Record<string, string>; text: string };

/** Passes a request on to this address, and returns the answer with the headers that hold for its text. */
export async function passOn(
  url: string,
  { method = 'GET', headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  body: Buffer,
  signal: AbortSignal | null = null,
): Promise<Passed> {
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...kept } = headers;
  const sent = { method, headers: kept as Record<string, string>, signal };
  const answer = await fetch(url, method === 'GET' || body.length === 0 ? sent : { ...sent, body });
  const ofTransport = ['connection', 'content-length', 'content-encoding', 'transfer-encoding'];
  const given = Object.fromEntries([...answer.headers].filter(([name]) => !ofTransport.includes(name)));
  return { status: answer.status, headers: given, text: await answer.text() };
}

/** Systems give the ports above these to outgoing connections and to listeners on port 0, at any moment. */
const RANGE = { from: 20_000, to: 32_000 } as const;
const given = new Set<number>();

/** A free port that the system gives only to programs that ask for it by number, and that is given here once. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(RANGE.from, RANGE.to);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** The way to a server, which can be cut. */
export type Network = {
  /** Nothing gets through any more in either direction, and no connection ends. */
  cut(): void;
  /** Ends the connections that were cut, and lets new ones through. Does nothing if it is not cut. */
  heal(): void;
  end(): void;
};

/** Passes on what clients and a server say to each other. `target` is asked anew for each connection. */
export function startNetwork(at: ListenOptions, target: () => NetConnectOpts): Network {
  const sockets = new Set<Socket>();
  let isCut = false;
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  const passOn = (one: Socket, other: Socket) => {
    sockets.add(one);
    one.on('data', (bytes) => isCut || other.write(bytes));
    one.on('error', () => {});
    one.on('close', () => {
      sockets.delete(one);
      if (!isCut) other.destroy();
    });
  };
  const network = createServer((near) => {
    const far = dial(target());
    passOn(near, far);
    passOn(far, near);
  });
  network.listen(at);
  return {
    cut: () => {
      isCut = true;
    },
    heal: () => {
      if (!isCut) return;
      isCut = false;
      // What was sent meanwhile is lost.
      end();
    },
    end: () => {
      end();
      network.close();
    },
  };
}
