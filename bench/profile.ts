import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { setTimeout as after } from 'node:timers/promises';
import { table } from '../prove/harness/proof.ts';
import { ROOT } from '../prove/harness/settled.ts';
import { until } from '../prove/harness/wait.ts';
import { enoughFor, planOf, type RunOptions, sustained } from './measure.ts';
import type { Probed } from './probe.ts';
import { atMost, type Found } from './report.ts';
import { startSettled, withServer } from './servers.ts';
import { registerLinks } from './stores.ts';

const PROBE = new URL('./probe.ts', import.meta.url).href;
/** The name of what the measurement itself costs. */
const PROBING = '(probe)';
/** The threads of a server on SQLite, by number. */
const THREADS = ['main', 'writer', 'reader'] as const;
const FUNCTIONS_MAX = 15;
const NAME_LENGTH_MAX = 90;
/** Statements that take less time and run less often for a delivery are one row. */
const MICROS_MIN = 0.1;
const CALLS_MIN = 0.01;
/** To begin sampling stops a thread for up to half a second. */
const BEGIN_MS = 2_000;
const WRITTEN_WITHIN_MS = 30_000;

/** A channel of alerts, which has nothing to tell: it must add nothing to a delivery. */
const WITH_ALERTS = {
  SETTLED_ALERT_URL: 'http://127.0.0.1:9/alerts',
  SETTLED_ALERT_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  SETTLED_ALERT_ALLOW_PRIVATE: 'true',
};

/** A statement or function and what it costs for each delivery. */
type Cost = { name: string; calls: number; micros: number };

/** Where the time of a sustained delivery goes: which statements run, and which functions. */
export async function runProfile(options: RunOptions): Promise<Found> {
  const { workspace, onProgress } = options;
  const folder = workspace.path('profile');
  mkdirSync(folder);
  const range = { from: 0, count: enoughFor(options) };
  onProgress('registering links');
  registerLinks(workspace.path('profiled.db'), range);
  const settings = { ...WITH_ALERTS, NODE_OPTIONS: `--import ${PROBE}`, BENCH_PROFILE: folder };
  const starting = startSettled(workspace.log, workspace.path('profiled.db'), settings);
  const { figures, probed } = await withServer(starting, async (server) => {
    onProgress('profiling');
    const toggle = () => process.kill(server.pid, 'SIGUSR2');
    const onStart = async () => {
      toggle();
      await after(BEGIN_MS);
    };
    const figures = await sustained(server, planOf(options, range), { onStart, onEnd: toggle });
    return { figures, probed: await readProbed(folder) };
  });
  const { deliveries } = figures;
  const { main, writer, reader } = probed;
  const statements = { writer: statementCosts(writer, deliveries), reader: statementCosts(reader, deliveries) };
  const functions = { main: functionCosts(main, deliveries), writer: functionCosts(writer, deliveries) };
  return {
    part: 'profile',
    tables: [
      statementTable(statements, deliveries),
      functionTable('main', functions.main),
      functionTable('writer', functions.writer),
    ],
    verdicts: [atMost('statements per settled delivery', sum('writer', statements.writer).calls, 10)],
    rounds: { figures, statements, functions },
    measured: [figures],
  };
}

async function readProbed(folder: string): Promise<Record<(typeof THREADS)[number], Probed>> {
  const paths = THREADS.map((thread, number) => [thread, `${folder}/${number}`] as const);
  await until('writing a profile', WRITTEN_WITHIN_MS, async () => paths.every(([, path]) => existsSync(path)));
  return Object.fromEntries(paths.map(([thread, path]) => [thread, JSON.parse(readFileSync(path, 'utf8'))])) as never;
}

/** The most expensive first. */
function statementCosts({ statements }: Probed, deliveries: number): Cost[] {
  return statements
    .map(({ sql, calls, micros }) => ({ name: sql, calls: calls / deliveries, micros: micros / deliveries }))
    .sort((one, other) => other.micros - one.micros);
}

/** How long each function itself ran, without what it called; the most expensive first. */
function functionCosts({ profile }: Probed, deliveries: number): Cost[] {
  const { nodes, samples = [], timeDeltas = [] } = profile;
  const callers = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)));
  const names = new Map(nodes.map((node) => [node.id, nameOf(node, callers)]));
  const costs = new Map<string, Cost>();
  for (const [index, id] of samples.entries()) {
    const name = names.get(id) as string;
    const cost = costs.get(name) ?? { name, calls: 0, micros: 0 };
    cost.micros += (timeDeltas[index] ?? 0) / deliveries;
    costs.set(name, cost);
  }
  for (const name of ['(idle)', PROBING]) costs.delete(name);
  return [...costs.values()].sort((one, other) => other.micros - one.micros);
}

/** A function and its place. A native one has none: the nearest caller that has one, and is not the probe, names it. */
function nameOf(node: Profiler.ProfileNode, callers: ReadonlyMap<number, Profiler.ProfileNode>): string {
  const { functionName, url } = node.callFrame;
  if (url === PROBE || url === 'node:inspector') return PROBING;
  if (url !== '') return placed(node);
  if (functionName.startsWith('(')) return functionName;
  let caller = callers.get(node.id);
  const name = caller?.callFrame.url === PROBE ? 'SQL' : functionName;
  while (caller !== undefined && ['', PROBE].includes(caller.callFrame.url)) caller = callers.get(caller.id);
  return caller === undefined ? name : `${name} < ${placed(caller)}`;
}

function placed({ callFrame: { functionName, url, lineNumber } }: Profiler.ProfileNode): string {
  const file = url.replace(/^file:\/\//, '').replace(ROOT, '');
  return `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}`;
}

function statementTable({ writer, reader }: Record<'writer' | 'reader', Cost[]>, deliveries: number): string {
  const isShown = ({ calls, micros }: Cost) => calls >= CALLS_MIN || micros >= MICROS_MIN;
  const few = writer.filter((one) => !isShown(one));
  const rows = [...writer.filter(isShown), sum(`${few.length} others`, few), sum('all', writer)];
  // It only answers the bench, which asks how much is settled.
  const shown = [...rows, sum('reader thread', reader)];
  const cells = shown.map(({ name, calls, micros }) => [shortened(name), calls.toFixed(2), micros.toFixed(1)]);
  return table(`Statements of the writer thread, for each of ${deliveries} deliveries`, ['', 'calls', 'µs'], cells);
}

function sum(name: string, costs: readonly Cost[]): Cost {
  const total = (of: 'calls' | 'micros') => costs.reduce((so, cost) => so + cost[of], 0);
  return { name, calls: total('calls'), micros: total('micros') };
}

/** One line of a statement, without what is in parentheses and without columns: tables tell statements apart. */
function shortened(sql: string): string {
  let short = sql.replace(/\s+/g, ' ').trim();
  for (let before = ''; before !== short; ) {
    before = short;
    short = short.replace(/\((?!…\))[^()]*\)/g, '(…)');
  }
  return cut(short.replace(/SELECT .*? FROM/g, 'SELECT … FROM'));
}

function cut(text: string): string {
  return text.length > NAME_LENGTH_MAX ? `${text.slice(0, NAME_LENGTH_MAX - 1)}…` : text;
}

function functionTable(thread: string, costs: readonly Cost[]): string {
  const rest = costs.slice(FUNCTIONS_MAX);
  const shown = [...costs.slice(0, FUNCTIONS_MAX), sum(`${rest.length} others`, rest), sum('all', costs)];
  const rows = shown.map(({ name, micros }) => [cut(name), micros.toFixed(1)]);
  return table(`Functions of the ${thread} thread, without what they call`, ['', 'µs'], rows);
}
