import { createServer, connect as dial, type ListenOptions, type NetConnectOpts, type Socket } from 'node:net';

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
