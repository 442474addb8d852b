import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The settled that prove/flood.ts and prove/proxies.ts deliver to. */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What `npm start` gives Node. */
const START = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  .scripts.start.split(' ')
  .slice(1);

const OPERATOR_TOKEN = 'operator-token-of-the-proof';

export type Served = { child: ChildProcess; hooksPort: number; operatorPort: number; lines: () => number };

/** Starts `settled serve` on free ports, with a database in this folder. */
export async function serve(folder: string): Promise<Served> {
  const child = spawn(process.execPath, START, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      SETTLED_STORE: `sqlite:${join(folder, 'settled.db')}`,
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
    },
  });
  let count = 0;
  const started = Promise.withResolvers<{ hooks: { port: number }; operator: { port: number } }>();
  child.once('exit', (code) => started.reject(new Error(`settled ended with ${code}`)));
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    count++;
    if (line.includes('"settled is serving"')) started.resolve(JSON.parse(line));
  });
  const { hooks, operator } = await started.promise;
  return { child, hooksPort: hooks.port, operatorPort: operator.port, lines: () => count };
}

export type Link = { path: string; secret: string; reference: string };

/** A link for the order of this number. */
export async function reserve({ operatorPort }: Served, n: number): Promise<Link> {
  const reference = `order-${n}`;
  const answer = await fetch(`http://127.0.0.1:${operatorPort}/v1/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ reference, amount: '100.00' }),
  });
  const { link } = (await answer.json()) as { link: { webhookUrl: string; webhookSecret: string } };
  return { path: new URL(link.webhookUrl).pathname, secret: link.webhookSecret, reference };
}
