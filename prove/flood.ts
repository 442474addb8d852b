import { fork } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ATTACKS, type Attack, type AttackPlan } from './attacks.ts';
import { command, facts, inFolder, say, some } from './harness/proof.ts';
import { eventOf, exchange, outcomeOf, type Reserved } from './harness/send.ts';
import { OPERATOR_TOKEN, peakKib, startAsInstalled } from './harness/settled.ts';

/**
 * `npm run prove:flood`: sends 40 genuine deliveries, a tenth of a second apart, during each attack on one
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

type Answered = { isGood: boolean; ms: number };

async function timed(isGood: () => Promise<boolean>): Promise<Answered> {
  const sentAt = performance.now();
  return { isGood: await isGood(), ms: performance.now() - sentAt };
}

/** Sends one genuine delivery over its own connection. */
function deliver(port: number, link: Reserved, isChunked: boolean): Promise<Answered> {
  const event = eventOf(link);
  const body = isChunked ? event.padEnd(20_000) : event;
  return timed(async () => (await outcomeOf(port, link, body, { isChunked })) === '200');
}

/** Asks the private listener over a connection of its own, as an orchestrator's probe or as the shop. */
function ask(port: number, n: number): Promise<Answered> {
  const path = n % 2 === 0 ? '/readyz' : '/v1/orders';
  const headers: Record<string, string> = n % 2 === 0 ? {} : { authorization: `Bearer ${OPERATOR_TOKEN}` };
  // 503 says that settled is not ready, which is an answer too.
  return timed(() =>
    exchange({ port, path, method: 'GET', headers, patienceMs: 20_000 }).then(
      ({ status }) => [200, 503].includes(status),
      () => false,
    ),
  );
}

async function run(attack: Attack, folder: string): Promise<Result> {
  const served = await startAsInstalled(folder);
  try {
    const links = await Promise.all(Array.from({ length: DELIVERIES }, (_, n) => served.reserve(`order-${n + 1}`)));
    const lines = () => served.stdout().split('\n').length;
    const before = lines();
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
    const rssMb = Math.round(peakKib(served) / 1024);
    flooder.send('report');
    await after(300);
    flooder.kill('SIGKILL');
    return {
      acknowledged: ended.filter(({ isGood }) => isGood).length,
      slowestMs: Math.round(Math.max(...ended.map(({ ms }) => ms))),
      asked: told.filter(({ isGood }) => isGood).length,
      slowestAskMs: Math.round(Math.max(...told.map(({ ms }) => ms))),
      rssMb,
      logLines: lines() - before,
      attack: said,
    };
  } finally {
    await served.end('SIGKILL');
  }
}

function holds(attack: Attack, { acknowledged, slowestMs, asked, rssMb, logLines }: Result): boolean {
  const all = acknowledged === DELIVERIES && asked === DELIVERIES;
  const { isPrivate }: AttackPlan = ATTACKS[attack];
  const slowestMax = isPrivate ? MUST.slowestPrivateMs : MUST.slowestMs;
  return all && slowestMs < slowestMax && rssMb < MUST.rssMb && logLines < MUST.logLines;
}

const ALL = Object.keys(ATTACKS) as Attack[];

await command('prove:flood', { attack: some('NAME', 'attacks, with commas between (all)', ALL) }, async (given) => {
  const broken: string[] = [];
  for (const attack of given.attack) {
    const result = await inFolder('flood', (folder) => run(attack, folder));
    const { attack: said, ...figures } = result;
    for (const line of [`${ATTACKS[attack].about}: ${JSON.stringify(said)}`, ...facts(figures)]) say(line);
    if (!holds(attack, result)) broken.push(attack);
  }
  return broken;
});
