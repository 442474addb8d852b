import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { paymentEvent, signedHeaders } from '../test/support/deliveries.ts';
import { freePort } from '../test/support/http.ts';
import { begin, ROOT, type Served, TOKEN } from './settled_process.ts';

/** What proofs of a move share: a store that is served, a shop that is told, and who delivers and reads meanwhile. */

export type Link = { reference: string; path: string; secret: string };

export type Place = { environment: Record<string, string>; hooksPort: number; shop: Shop };
export type Shop = { url: string; told: Map<string, number>; close(): void };

/** A shop that takes every notice, and counts how often it was told each. */
export async function startShop(): Promise<Shop> {
  const told = new Map<string, number>();
  const server = createServer((asked, answer) => {
    const id = String(asked.headers['webhook-id']);
    told.set(id, (told.get(id) ?? 0) + 1);
    asked.resume().on('end', () => answer.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}/told`, told, close };
}

/** The settings of a settled on a SQLite file, with ports that every start of it uses. */
export async function placeOf(folder: string, shop: Shop): Promise<Place> {
  const [hooksPort, operatorPort] = [await freePort(), await freePort()];
  const environment = {
    SETTLED_STORE: `sqlite:${join(folder, 'settled.db')}`,
    SETTLED_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    SETTLED_HOOKS_LISTEN: `127.0.0.1:${hooksPort}`,
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
    SETTLED_OPERATOR_TOKEN: TOKEN,
    SETTLED_SHOP_URL: shop.url,
    SETTLED_SHOP_SECRET: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
    SETTLED_SHOP_ALLOW_PRIVATE: 'true',
    SETTLED_LOG_FORMAT: 'json',
  };
  return { environment, hooksPort, shop };
}

export function serveAt({ environment }: Place): ReturnType<typeof begin> {
  return begin(environment, '');
}

export type MoveEnd = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** `settled move` as a process. `preload`: what it loads before its own code. */
export function startMove(
  { environment }: Place,
  to: string,
  preload: Record<string, string> = {},
): { child: ChildProcess; ended: Promise<MoveEnd> } {
  const child = spawn(process.execPath, [join(ROOT, 'src/cli/main.ts'), 'move', '--to', to, '--json'], {
    env: { PATH: process.env.PATH ?? '', ...environment, ...preload },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<MoveEnd>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, ended };
}

export async function reserve(served: Served, reference: string): Promise<Link> {
  const answer = await served.api('/v1/links', { reference, amount: '100.00' });
  if (answer?.status !== 201) throw new Error(`no link for ${reference}: ${JSON.stringify(answer)}`);
  const { webhookUrl, webhookSecret } = answer.body.link;
  return { reference, path: new URL(webhookUrl).pathname, secret: webhookSecret };
}

/** Delivers that a link was paid. Returns the status; 0 if there was no answer. */
export function deliver(hooksPort: number, { reference, path, secret }: Link): Promise<number> {
  const money = { linkId: `pl_${reference}`, amount: '100.00' };
  const body = paymentEvent({ id: `evt_${reference}`, paymentId: `pay_${reference}`, ...money });
  const headers = { ...signedHeaders(secret, body), 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve) => {
    const sent = request({
      host: '127.0.0.1',
      port: hooksPort,
      method: 'POST',
      path,
      headers,
      agent: false,
      timeout: 20_000,
    });
    sent.once('error', () => resolve(0));
    sent.once('timeout', () => sent.destroy());
    sent.once('response', (response) => {
      const wait = response.headers['retry-after'];
      response
        .resume()
        .once('end', () =>
          resolve(response.statusCode === 503 && wait === undefined ? -503 : (response.statusCode ?? 0)),
        );
    });
    sent.end(body);
  });
}

const DELIVER_EVERY_MS = 40;
const WAIT_MAX_MS = 60_000;

type Answered = { status: number; atMs: number };

/** Delivers one payment after the other until it is ended, to whoever listens there; one that was refused comes again. */
export function keepDelivering(links: readonly Link[], hooksPort: number, everyMs = DELIVER_EVERY_MS) {
  const answers: Answered[] = [];
  const taken: Link[] = [];
  let isOver = false;
  const one = async (link: Link): Promise<void> => {
    while (!isOver) {
      const status = await deliver(hooksPort, link);
      answers.push({ status, atMs: performance.now() });
      await pause(everyMs);
      if (status !== 200) continue;
      taken.push(link);
      return;
    }
  };
  const all = async () => {
    for (const link of links) await one(link);
  };
  const done = all();
  const end = (): Promise<void> => {
    isOver = true;
    return done;
  };
  return { answers, taken, done, end };
}

/** Waits until each of these orders is paid. */
export async function paid(served: Served, links: readonly Link[]): Promise<void> {
  const states = new Map<string, unknown>();
  for (const { reference } of links) {
    await waitFor(
      () => states.get(reference) === 'paid',
      async () => {
        const answer = await served.api(`/v1/orders/${reference}`);
        states.set(reference, answer?.body?.order?.state);
      },
    );
  }
}

/** Looks again and again, a minute at most. */
export async function waitFor(isSo: () => boolean, look: () => Promise<void> = async () => {}): Promise<void> {
  const untilMs = performance.now() + WAIT_MAX_MS;
  for (await look(); !isSo(); await look()) {
    if (performance.now() > untilMs) throw new Error(`waited for a minute: ${isSo}`);
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, ms));
}
