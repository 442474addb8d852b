import { signedDeliveries } from './deliveries.ts';
import { burst, type Figures, type Plan, type RunOptions, SEARCH_MS, sustained } from './measure.ts';
import { startCeiling, startSettled, startTextbook, withServer } from './servers.ts';
import { makeTextbookStore, type Range, registerLinks } from './stores.ts';
import type { Workspace } from './workspace.ts';

export const CONTESTANTS = [
  'ceiling',
  'ceiling, grouped',
  'settled burst',
  'settled burst, cold',
  'settled sustained',
  'textbook FULL burst',
  'textbook FULL sustained',
  'textbook NORMAL burst',
  'textbook NORMAL sustained',
] as const;
export type Contestant = (typeof CONTESTANTS)[number];

/** The figures of every round, in the order of the rounds. */
export type Rounds = ReadonlyMap<Contestant, Figures[]>;

type ContestOptions = RunOptions & { contestants: readonly Contestant[] };

const SETTLED_TEMPLATE = 'settled-template.db';
const TEXTBOOK_TEMPLATE = 'textbook-template.db';
const CALIBRATION_MS = 1_000;
const CALIBRATION_DELIVERIES = 40_000;
/** Room for a server that is faster than the calibration, and a bound on time and memory. */
const ROOM = 1.4;
const DELIVERIES_MAX = 250_000;

/** Measures every contestant once a round, each as a new process on a new database, with the same deliveries. */
export async function runContest(options: ContestOptions): Promise<Rounds> {
  const { workspace, rounds, contestants, warmUp, connections, forMs, measureWith, onProgress } = options;
  const range = { from: 0, count: await deliveriesNeeded(options) };
  onProgress(`signing ${range.count} deliveries and registering their links`);
  const deliveries = signedDeliveries(range.from, range.count);
  registerLinks(workspace.path(SETTLED_TEMPLATE), range);
  makeTextbookStore(workspace.path(TEXTBOOK_TEMPLATE), range);
  const plan = { deliveries, firstLink: range.from, warmUp, connections, forMs, warmCredentials: false };
  const found = new Map<Contestant, Figures[]>(contestants.map((contestant) => [contestant, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const contestant of contestants) {
      onProgress(`round ${round} of ${rounds}: ${contestant}`);
      found.get(contestant)?.push(await measureWith(() => measure(contestant, workspace, plan, range)));
    }
  }
  for (const template of [SETTLED_TEMPLATE, TEXTBOOK_TEMPLATE]) workspace.remove(template);
  return found;
}

/** As many deliveries as the fastest contestant may take in its time. */
async function deliveriesNeeded(options: ContestOptions): Promise<number> {
  const { workspace, warmUp, connections, forMs } = options;
  const range = { from: 0, count: warmUp + CALIBRATION_DELIVERIES };
  const deliveries = signedDeliveries(range.from, range.count);
  const plan = { deliveries, firstLink: 0, warmUp, connections, forMs: CALIBRATION_MS, warmCredentials: false };
  const { perSecond } = await withServer(startCeiling(workspace.log, range, 'each'), (server) => burst(server, plan));
  return Math.min(DELIVERIES_MAX, warmUp + Math.ceil((perSecond * ROOM * (SEARCH_MS + forMs)) / 1000));
}

function measure(contestant: Contestant, workspace: Workspace, plan: Plan, range: Range): Promise<Figures> {
  const { log } = workspace;
  // Registering a link puts its credentials into settled's memory. The bench registers before settled starts, so it
  // makes settled look them up instead. The ceiling gets the same requests, as part of its warm-up.
  const warm = { ...plan, warmCredentials: true };
  const settled = () => startSettled(log, workspace.freshCopy(SETTLED_TEMPLATE, 'settled.db'));
  const textbook = (synchronous: 'FULL' | 'NORMAL', mode: 'record' | 'settle') =>
    startTextbook(log, { path: workspace.freshCopy(TEXTBOOK_TEMPLATE, 'textbook.db'), synchronous, mode });
  switch (contestant) {
    case 'ceiling':
      return withServer(startCeiling(log, range, 'each'), (server) => burst(server, warm));
    case 'ceiling, grouped':
      return withServer(startCeiling(log, range, 'grouped'), (server) => burst(server, warm));
    case 'settled burst':
      return withServer(settled(), (server) => burst(server, warm));
    case 'settled burst, cold':
      return withServer(settled(), (server) => burst(server, plan));
    case 'settled sustained':
      return withServer(settled(), (server) => sustained(server, warm));
    case 'textbook FULL burst':
      return withServer(textbook('FULL', 'record'), (server) => burst(server, plan));
    case 'textbook FULL sustained':
      return withServer(textbook('FULL', 'settle'), (server) => sustained(server, plan));
    case 'textbook NORMAL burst':
      return withServer(textbook('NORMAL', 'record'), (server) => burst(server, plan));
    case 'textbook NORMAL sustained':
      return withServer(textbook('NORMAL', 'settle'), (server) => sustained(server, plan));
  }
}
