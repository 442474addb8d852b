import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { paymentEvent, signedHeaders } from '../test/support/deliveries.ts';
import { ATTACKS, type Attack, type AttackPlan } from './attacks.ts';
import { type Installed, type Link, reserve, startAsInstalled, TOKEN } from './settled_process.ts';

/**
 * `npm run prove:flood [-- ATTACK…]`: sends 40 genuine deliveries, a tenth of a second apart, during each attack on one
 * of the listeners, and beside each asks the private one, as a probe and as a shop. settled must acknowledge all
 * deliveries within 3 s, within 1 s if the private listener is attacked, answer every question, in less than 400 MB,
 * with fewer than 200 log lines.
 */
const DELIVERIES = 40;
const MUST = { slowestMs: 3_000, slowestPrivateMs: 1_000, rssMb: 400, logLines: 200 } as const;
/** How long the attack runs before the first delivery. */
const HEAD_START_MS = 200;

type Result = {
  acknowledged: number;
  slowestMs: number;
  /** Questions to the private listener that were answered, and the slowest of them. */
  asked: number;
  slowestAskMs: number;
  rssMb: number;
  logLines: number;
  attack: unknown;
};

/**
 * Sends one genuine delivery over its own connection. Resolves with its status, 0 if the connection broke, and its
 * time.
 */
function deliver(
  port: number,
  { path, secret, reference }: Link,
  isChunked: boolean,
): Promise<{ status: number; ms: number }> {
  const event = paymentEvent({ id: `evt_${reference}`, linkId: `pl_${reference}`, amount: '100.00' });
  const body = isChunked ? event.padEnd(20_000) : event;
  const length = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(Buffer.byteLength(body)) };
  const headers = { ...signedHeaders(secret, body), ...length };
  const sentAt = performance.now();
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ status, ms: performance.now() - sentAt });
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent: false }, (answer) => {
      answer.resume().once('end', () => end(answer.statusCode ?? 0));
    });
    sent.once('error', () => end(0));
    sent.setTimeout(20_000, () => sent.destroy(new Error('no answer within 20 s')));
    sent.end(body);
  });
}

/** Asks the private listener over a connection of its own, as an orchestrator's probe or as the shop. */
function ask(port: number, n: number): Promise<{ status: number; ms: number }> {
  const sentAt = performance.now();
  const path = n % 2 === 0 ? '/readyz' : '/v1/orders';
  const headers = n % 2 === 0 ? {} : { authorization: `Bearer ${TOKEN}` };
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ status, ms: performance.now() - sentAt });
    const sent = request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      answer.resume().once('end', () => end(answer.statusCode ?? 0));
    });
    sent.once('error', () => end(0));
    sent.setTimeout(20_000, () => sent.destroy(new Error('no answer within 20 s')));
    sent.end();
  });
}

async function run(attack: Attack): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-flood-'));
  const served = await startAsInstalled(folder);
  try {
    const links = await Promise.all(Array.from({ length: DELIVERIES }, (_, n) => reserve(served, n + 1)));
    const before = served.lines();
    const { isPrivate }: AttackPlan = ATTACKS[attack];
    const port = isPrivate ? served.operatorPort : served.hooksPort;
    const flooder = fork(fileURLToPath(new URL('attacks.ts', import.meta.url)), [attack, String(port)], {
      execPath: process.execPath,
    });
    let said: unknown = null;
    const asks = [];
    flooder.on('message', (message) => (said = message));
    await after(HEAD_START_MS);
    const answers = [];
    for (const [n, link] of links.entries()) {
      answers.push(deliver(served.hooksPort, link, attack === 'chunked'));
      asks.push(ask(served.operatorPort, n));
      await after(100);
    }
    const [ended, told] = await Promise.all([Promise.all(answers), Promise.all(asks)]);
    const rssMb = peakMb(served);
    flooder.send('report');
    await after(300);
    flooder.kill('SIGKILL');
    return {
      acknowledged: ended.filter(({ status }) => status === 200).length,
      slowestMs: Math.round(Math.max(...ended.map(({ ms }) => ms))),
      // 503 says that settled is not ready, which is an answer too.
      asked: told.filter(({ status }) => status === 200 || status === 503).length,
      slowestAskMs: Math.round(Math.max(...told.map(({ ms }) => ms))),
      rssMb,
      logLines: served.lines() - before,
      attack: said,
    };
  } finally {
    served.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The peak of its memory. */
function peakMb({ child }: Installed): number {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'));
  return Math.round(Number(peak?.[1]) / 1024);
}

function holds(attack: Attack, { acknowledged, slowestMs, asked, rssMb, logLines }: Result): boolean {
  const all = acknowledged === DELIVERIES && asked === DELIVERIES;
  const { isPrivate }: AttackPlan = ATTACKS[attack];
  const slowestMax = isPrivate ? MUST.slowestPrivateMs : MUST.slowestMs;
  return all && slowestMs < slowestMax && rssMb < MUST.rssMb && logLines < MUST.logLines;
}

const named = process.argv.slice(2) as Attack[];
let failed = 0;
for (const attack of named.length > 0 ? named : (Object.keys(ATTACKS) as Attack[])) {
  const result = await run(attack);
  if (!holds(attack, result)) failed++;
  const { acknowledged, slowestMs, asked, slowestAskMs, rssMb, logLines } = result;
  const figures = `${acknowledged} of ${DELIVERIES}, slowest ${slowestMs} ms, ${asked} asked, slowest ${slowestAskMs} ms, ${rssMb} MB, ${logLines} log lines`;
  process.stdout.write(`${holds(attack, result) ? 'ok  ' : 'FAIL'} ${ATTACKS[attack].about}: ${figures}\n`);
  process.stdout.write(`     ${JSON.stringify(result.attack)}\n`);
}
process.exitCode = failed === 0 ? 0 : 1;
