import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Systems give ports above these to connections that leave, and to whoever asks for any: they are taken at any moment. */
const RANGE = { from: 20_000, to: 32_000 } as const;

/** A port that nothing listens on now, and that nobody is given who does not ask for it. */
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
