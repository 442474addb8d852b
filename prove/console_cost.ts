import { request } from 'node:http';
import { parseArgs } from 'node:util';
import { signedDeliveries } from '../bench/deliveries.ts';
import { type Figures, type Plan, sustained } from '../bench/measure.ts';
import { type Server, startSettled, withServer } from '../bench/servers.ts';
import { registerLinks } from '../bench/stores.ts';
import { openWorkspace } from '../bench/workspace.ts';
import { signIn } from './sign_in.ts';

/**
 * `npm run prove:console-cost`: what open consoles cost the deliveries. Rounds of sustained deliveries with no console and
 * with 20 take turns; each console follows the stream of changes, and fetches the first page anew after each. Prints the
 * processor time of a delivery, and the ratio of the medians. Then 1 000 openings by the shop's token take turns with as many
 * by the operator's, each of which writes a row of the audit chain: the shop's must write none and take no longer.
 */

const { values } = parseArgs({ options: { rounds: { type: 'string' }, consoles: { type: 'string' } } });
const ROUNDS = Number(values.rounds ?? 5);
const CONSOLES = Number(values.consoles ?? 20);
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
    if (isBusy) {
      isOwed = true;
      return;
    }
    isBusy = true;
    const waitMs = lastMs + FETCH_EVERY_MS - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    lastMs = performance.now();
    // The server is killed when the round is over.
    const status = await fetch(url, { headers: { cookie, accept: 'text/html' } }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    if (isClosed) return;
    if (status !== 200) throw new Error(`the page answered ${status}`);
    fetched++;
    isBusy = false;
    if (isOwed) {
      isOwed = false;
      void fetchPage();
    }
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

const workspace = openWorkspace();
const range = { from: 0, count: WARM_UP + DELIVERIES };
registerLinks(workspace.path('template.db'), range);
const deliveries = signedDeliveries(range.from, range.count);
const plan: Plan = { deliveries, firstLink: 0, warmUp: WARM_UP, connections: 64, forMs: 3_000, warmCredentials: true };

async function measure(consoles: number): Promise<Figures & { fetched: number }> {
  const path = workspace.freshCopy('template.db', 'settled.db');
  return withServer(startSettled(workspace.log, path), async (server) => {
    const operator = server.operator as NonNullable<Server['operator']>;
    const open: Console[] = [];
    for (let n = 0; n < consoles; n++) open.push(openConsole(`${operator.url}/`, await signIn(operator)));
    const figures = await sustained(server, plan);
    for (const one of open) one.close();
    return { ...figures, fetched: open.reduce((sum, one) => sum + one.fetched(), 0) };
  });
}

function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] as number;
}

const found: Record<'without' | 'with', number[]> = { without: [], with: [] };
for (let round = 0; round < ROUNDS; round++) {
  for (const which of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
    const { cpuMicros, perSecond, fetched } = await measure(which === 'with' ? CONSOLES : 0);
    found[which].push(cpuMicros);
    process.stdout.write(
      `${which} consoles: ${cpuMicros.toFixed(1)} µs, ${Math.round(perSecond)}/s, ${fetched} pages\n`,
    );
  }
}
const ratio = median(found.with) / median(found.without);
const pairs = median(found.with.map((micros, at) => micros / (found.without[at] as number)));
process.stdout.write(
  `medians: ratio ${ratio.toFixed(3)}; of pairs ${pairs.toFixed(3)}; must be at most ${RATIO_MAX}\n`,
);

const SHOP_TOKEN = 'shop-token-of-the-proof';
const OPENINGS = 1_000;
const AT_ONCE = 8;

/** Opens orders with a token, several at once; returns the milliseconds of one, on average. */
async function openOrders(url: string, token: string, name: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  let next = 0;
  const startMs = performance.now();
  const open = async () => {
    while (next < OPENINGS) {
      const body = JSON.stringify({ reference: `${name}-${next++}`, amount: '100.00' });
      const response = await fetch(`${url}/v1/links`, { method: 'POST', headers, body });
      await response.arrayBuffer();
      if (response.status !== 201) throw new Error(`an opening was answered ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, open));
  return (performance.now() - startMs) / OPENINGS;
}

const settings = { SETTLED_SHOP_TOKEN: SHOP_TOKEN };
const slower = await withServer(
  startSettled(workspace.log, workspace.path('openings.db'), settings),
  async (server) => {
    const { url, token } = server.operator as NonNullable<Server['operator']>;
    const audited = async (): Promise<number> => {
      const response = await fetch(`${url}/v1/audit/verification`, { headers: { authorization: `Bearer ${token}` } });
      const { isWhole, rows } = (await response.json()) as { isWhole: boolean; rows: number };
      if (!isWhole) throw new Error('the audit chain is not whole');
      return rows;
    };
    const took: Record<'shop' | 'operator', number[]> = { shop: [], operator: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const who of round % 2 === 0 ? (['shop', 'operator'] as const) : (['operator', 'shop'] as const)) {
        const before = await audited();
        took[who].push(await openOrders(url, who === 'shop' ? SHOP_TOKEN : token, `${who}-${round}`));
        const added = (await audited()) - before;
        const wanted = who === 'shop' ? 0 : OPENINGS;
        if (added !== wanted) throw new Error(`the openings of the ${who} wrote ${added} rows of the audit`);
      }
    }
    const [shop, operator] = [median(took.shop), median(took.operator)];
    process.stdout.write(`an opening: ${shop.toFixed(2)} ms by the shop, ${operator.toFixed(2)} ms by the operator\n`);
    return shop > operator;
  },
);
process.exit(Math.min(ratio, pairs) <= RATIO_MAX && !slower ? 0 : 1);
