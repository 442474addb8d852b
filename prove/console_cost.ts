import { Agent, request } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { type Figures, inRounds, planOf, sustained } from '../bench/measure.ts';
import { type SettledServer, signIn, startSettled, withServer } from '../bench/servers.ts';
import { registerLinks } from '../bench/stores.ts';
import { openWorkspace, type Workspace } from '../bench/workspace.ts';
import { command, type Given, median, say, whole } from './harness/proof.ts';
import { exchange } from './harness/send.ts';
import { eachAtOnce } from './harness/wait.ts';

/**
 * `npm run prove:console-cost`: what open consoles cost the deliveries. Rounds of sustained deliveries with no console and
 * with 20 take turns; each console follows the stream of changes, and fetches the first page anew after each. Counted is the
 * processor time of the server alone, for each delivery. Then 1 000 openings by the shop's token take turns with as many by
 * the operator's, each of which writes a row of the audit chain: the shop's must write none, and cost no more. Prints the
 * median of the rounds' ratios and what is proved.
 */

const OPTIONS = {
  // Even, so that either kind goes first as often: A B, B A.
  rounds: whole('rounds of each kind; an even number', 6),
  consoles: whole('open consoles', 20),
};
const DELIVERIES = 60_000;
const WARM_UP = 5_000;
/** The script of the page fetches at most once a second. */
const FETCH_EVERY_MS = 1_000;
const RATIO_MAX = 1.05;

type Console = { fetched: () => number; close: () => void };

/** A browser's part of the work, without a browser: its processor time would be measured too. */
function openConsole(url: string, cookie: string): Console {
  let isClosed = false;
  let fetched = 0;
  let isBusy = false;
  let isOwed = false;
  let lastMs = 0;
  const fetchPage = async () => {
    isOwed = true;
    if (isBusy) return;
    isBusy = true;
    for (; isOwed; fetched++) {
      isOwed = false;
      await after(Math.max(0, lastMs + FETCH_EVERY_MS - performance.now()));
      lastMs = performance.now();
      // The server is killed when the round is over.
      const response = await fetch(url, { headers: { cookie, accept: 'text/html' } }).catch(() => null);
      await response?.arrayBuffer().catch(() => null);
      if (isClosed) return;
      if (response?.status !== 200) throw new Error(`the page answered ${response?.status}`);
    }
    isBusy = false;
  };
  const stream = request(`${url}live`, { headers: { cookie } }, (answer) => {
    answer.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('event: changed')) void fetchPage();
    });
  });
  stream.on('error', () => {}).end();
  return {
    fetched: () => fetched,
    close: () => {
      isClosed = true;
      stream.destroy();
    },
  };
}

/** Returns how many times the processor time of a delivery it takes with the consoles. */
async function costOfConsoles({ consoles, rounds }: Given<typeof OPTIONS>, workspace: Workspace): Promise<number> {
  const range = { from: 0, count: WARM_UP + DELIVERIES };
  registerLinks(workspace.path('template.db'), range);
  const plan = planOf({ warmUp: WARM_UP, connections: 64, forMs: 3_000 }, range);
  const measure = async (count: number): Promise<Figures & { fetched: number }> => {
    const path = workspace.freshCopy('template.db', 'settled.db');
    return withServer(startSettled(workspace.log, path), async (server) => {
      const { operator } = server;
      const open: Console[] = [];
      for (let n = 0; n < count; n++) open.push(openConsole(`${operator.url}/`, await signIn(operator)));
      const figures = await sustained(server, plan);
      for (const one of open) one.close();
      return { ...figures, fetched: open.reduce((sum, one) => sum + one.fetched(), 0) };
    });
  };
  const found = await inRounds({ rounds, onProgress: () => {} }, ['without', 'with'] as const, async (which) => {
    const { cpuMicros, perSecond, fetched } = await measure(which === 'with' ? consoles : 0);
    say(`${which} consoles: ${cpuMicros.toFixed(1)} µs, ${Math.round(perSecond)}/s, ${fetched} pages`);
    return cpuMicros;
  });
  return median(found.with.map((micros, at) => micros / (found.without[at] as number)));
}

const SHOP_TOKEN = 'shop-token-of-the-proof';
const OPENINGS = 1_000;
const AT_ONCE = 8;
const agent = new Agent({ keepAlive: true });

/** Opens orders with a token, several at once; returns the microseconds of the server's processors for each. */
async function openOrders(server: SettledServer, token: string, name: string): Promise<number> {
  const port = Number(new URL(server.operator.url).port);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const before = server.cpuSeconds().allThreads;
  const references = Array.from({ length: OPENINGS }, (_, n) => `${name}-${n}`);
  await eachAtOnce(AT_ONCE, references, async (reference) => {
    const body = JSON.stringify({ reference, amount: '100.00' });
    const { status } = await exchange({ agent, port, path: '/v1/links', headers, body });
    if (status !== 201) throw new Error(`an opening was answered ${status}`);
  });
  return ((server.cpuSeconds().allThreads - before) * 1_000_000) / OPENINGS;
}

/** Returns the microseconds of an opening by each. Throws if the audit has other rows of them than it must. */
function costOfOpenings(rounds: number, workspace: Workspace): Promise<{ shop: number; operator: number }> {
  const starting = startSettled(workspace.log, workspace.path('openings.db'), { SETTLED_SHOP_TOKEN: SHOP_TOKEN });
  return withServer(starting, async (server) => {
    const { url, token } = server.operator;
    const audited = async (): Promise<number> => {
      const response = await fetch(`${url}/v1/audit/verification`, { headers: { authorization: `Bearer ${token}` } });
      const { isWhole, rows } = (await response.json()) as { isWhole: boolean; rows: number };
      if (!isWhole) throw new Error('the audit chain is not whole');
      return rows;
    };
    let opened = 0;
    const took = await inRounds({ rounds, onProgress: () => {} }, ['shop', 'operator'] as const, async (who) => {
      const before = await audited();
      const micros = await openOrders(server, who === 'shop' ? SHOP_TOKEN : token, `${who}-${++opened}`);
      const added = (await audited()) - before;
      const wanted = who === 'shop' ? 0 : OPENINGS;
      if (added !== wanted) throw new Error(`the openings of the ${who} wrote ${added} rows of the audit`);
      return micros;
    });
    return { shop: median(took.shop), operator: median(took.operator) };
  });
}

await command('prove:console-cost', OPTIONS, async (given) => {
  const workspace = openWorkspace();
  const ratio = await costOfConsoles(given, workspace);
  say(
    `${given.consoles} consoles: ${ratio.toFixed(3)} times the processor time of a delivery; must be at most ${RATIO_MAX}`,
  );
  const { shop, operator } = await costOfOpenings(given.rounds, workspace);
  say(
    `an opening: ${shop.toFixed(0)} µs by the shop, ${operator.toFixed(0)} µs by the operator: ratio ${(shop / operator).toFixed(3)}`,
  );
  return [
    ...(ratio > RATIO_MAX ? ['open consoles cost deliveries too much'] : []),
    ...(shop > operator ? ['an opening by the shop costs more than one by the operator'] : []),
  ];
});
