import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Systems give the ports above these to outgoing connections and to listeners on port 0, at any moment. */
const RANGE = { from: 20_000, to: 32_000 } as const;

/** A free port that the system gives to nobody who does not ask for it by number. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(RANGE.from, RANGE.to);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
