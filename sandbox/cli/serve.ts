import { flushCompileCache } from 'node:module';
import type { Given, Options } from '../../src/terminal/command.ts';
import { Failure, UsageError } from '../../src/terminal/failure.ts';
import { type Block, reportText, verbatim } from '../../src/terminal/output.ts';
import { stopAsked } from '../../src/terminal/process.ts';
import { record } from '../../src/terminal/table.ts';
import { durationText } from '../duration.ts';
import { DEFAULT_LISTEN, DEFAULT_SWITCHES, type SandboxOptions, type Switches } from '../options.ts';
import type { Sandbox } from '../sandbox.ts';
import { connect, DEFAULT_URL, defineCommand, HEADER_PREFIX_OPTION, readHeaderPrefix } from './client.ts';
import { EXIT } from './exit.ts';
import { readPlanText } from './faults.ts';
import { likeness, readSwitchOptions } from './switches.ts';

/** A day a second: beyond that retries would run into each other. */
const TIME_SCALE_MAX = 86_400;

const OPTIONS = {
  listen: { value: 'HOST:PORT', about: 'where it listens; default 127.0.0.1:8790; port 0 takes a free one' },
  environment: {
    value: 'NAME',
    choices: ['production', 'sandbox'],
    about: '`production`: links can be paid, events are delivered (the default); or `sandbox`: neither',
  },
  data: { value: 'FILE', about: 'keep everything in this file; default: in memory' },
  'api-key': { value: 'KEY', about: 'the API key, also from SETTLED_SANDBOX_API_KEY; default: derived from the seed' },
  seed: { value: 'TEXT', about: 'the same seed gives the same ids and secrets; default: a new one for each sandbox' },
  'time-scale': { value: 'N', about: 'how many seconds of the sandbox pass in a real one; default 1' },
  'header-prefix': HEADER_PREFIX_OPTION,
  like: {
    value: 'FILE',
    about: 'switches and header prefix as in a recording of `settled first-contact`; a --set beside it wins',
  },
  set: { value: 'NAME=VALUE', isRepeatable: true, about: 'a switch for what the specification leaves open' },
  fault: { value: 'JSON', isRepeatable: true, about: 'a fault plan, such as {"fault": "duplicate"}' },
  'no-rate-limit': { about: 'answer more than 60 requests a minute' },
  'merchant-inactive': { about: 'answer every call with 403, as for an inactive merchant' },
  'allow-remote': { about: 'listen on addresses beyond loopback: anyone there can do everything' },
} as const satisfies Options;

export const serve = defineCommand({
  usage: 'serve',
  about: 'start a sandbox that runs until SIGTERM or SIGINT; the default command',
  details: ['With --json it prints its addresses as one line of JSON.'],
  options: OPTIONS,
  isLocal: true,
  run: async ({ options, json, screen, print }) => {
    const stopped = stopAsked();
    const chosen = readOptions(options);
    const unplayed = likeness(options.like).unplayed;
    const plans = await readPlans(options.fault ?? []);
    const sandbox = await start(chosen);
    const control = connect(sandbox.url);
    for (const plan of plans) await control.post('/faults', plan);
    const planned = (await control.get('/faults')).faults as { remaining: number | null }[];
    const open = planned.filter(({ remaining }) => remaining !== 0).length;
    await print(
      reportText({ data: addresses(sandbox), lines: banner(sandbox, chosen, { open, unplayed }) }, json, screen),
    );
    // Written now, because a process that is killed never gets to write it at its end.
    flushCompileCache();
    await stopped;
    await sandbox.stop();
    return EXIT.ok;
  },
});

/** Checks the plans before the sandbox listens. */
async function readPlans(texts: readonly string[]): Promise<Record<string, unknown>[]> {
  const plans = texts.map(readPlanText);
  if (plans.length === 0) return plans;
  // Loaded here, so that the commands that need no fault plan are quick.
  const { readPlan } = await import('../fault_plans.ts');
  for (const plan of plans) {
    try {
      readPlan(plan);
    } catch (error) {
      throw new UsageError(`--fault: ${(error as Error).message}`);
    }
  }
  return plans;
}

function readOptions(given: Given<typeof OPTIONS>): SandboxOptions {
  const environment = given.environment === 'sandbox' ? 'sandbox' : 'production';
  const timeScale = Number(given['time-scale'] ?? 1);
  if (!(timeScale > 0 && timeScale <= TIME_SCALE_MAX)) {
    const message = `--time-scale is "${given['time-scale']}". Write a number above 0, up to ${TIME_SCALE_MAX}.`;
    throw new UsageError(message);
  }
  const apiKey = given['api-key'] ?? process.env.SETTLED_SANDBOX_API_KEY ?? null;
  if (apiKey !== null && !/^[\x21-\x7e]{1,200}$/.test(apiKey)) {
    throw new UsageError('The API key must be 1 to 200 printable ASCII characters without spaces.');
  }
  for (const name of ['data', 'seed'] as const) {
    if (given[name] === '') throw new UsageError(`--${name} must not be empty.`);
  }
  const like = likeness(given.like);
  const listen = given.listen === undefined ? DEFAULT_LISTEN : readListen(given.listen);
  return {
    environment,
    listen,
    allowRemote: given['allow-remote'] === true,
    data: given.data ?? null,
    apiKey,
    seed: given.seed ?? null,
    timeScale,
    headerPrefix: readHeaderPrefix(given['header-prefix'] ?? like.headerPrefix),
    switches: readSwitchOptions('--set', [...like.pairs, ...(given.set ?? [])]),
    rateLimit: given['no-rate-limit'] === true ? null : 60,
    merchantInactive: given['merchant-inactive'] === true,
  };
}

function readListen(text: string): { host: string; port: number } {
  const [, v6, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/i.exec(text) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  if (host !== undefined && port <= 65_535) return { host, port };
  throw new UsageError(`--listen is "${text}". Write HOST:PORT, such as 127.0.0.1:8790 or [::1]:8790.`);
}

async function start(options: SandboxOptions): Promise<Sandbox> {
  // Loaded here, so that the commands that need no server of their own are quick.
  const { assertMayListen, startSandbox } = await import('../sandbox.ts');
  try {
    assertMayListen(options);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  return await startSandbox(options).catch((error: { code?: string; message: string }) => {
    throw startError(error, options);
  });
}

function startError(error: { code?: string; message: string }, { listen, data }: SandboxOptions): unknown {
  const where = `${listen.host}:${listen.port}`;
  const { code = '', message } = error;
  if (code === 'EADDRINUSE') {
    const why =
      `${where} is in use by another program. Choose another: --listen ${listen.host}:0; ` +
      `or, if that program is a sandbox, use it: --url http://${where}`;
    return new Failure('address_in_use', why, EXIT.inUse);
  }
  if (['EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND'].includes(code)) {
    return new UsageError(`Nothing can listen at ${where} (${code}). Choose another: --listen HOST:PORT`);
  }
  if (code === 'SQLITE_BUSY') {
    return new Failure('data_in_use', `${data} is in use by another program. Name another file.`, EXIT.inUse);
  }
  const isData = /^SQLITE_|^ERR_INVALID|^SEED_DIFFERS|directory does not exist/.test(code || message);
  if (data === null || !isData) return error;
  return new Failure('data_unusable', `${data} cannot be opened: ${message}.`, EXIT.cannotOpen);
}

function addresses({ url, apiKey, seed }: Sandbox) {
  return { url, api: `${url}/api/v1`, control: `${url}/_control`, apiKey, seed, notice: NOTICE };
}

const NOTICE = 'No money here is real.';

/** `open`: how many fault plans are not spent. `unplayed`: what a recording has and no switch. */
type Notes = { open: number; unplayed: readonly string[] };

/** What `serve` prints once it listens. */
function banner(sandbox: Sandbox, options: SandboxOptions, notes: Notes): Block[] {
  const { url, apiKey, seed } = sandbox;
  return [
    '',
    `SANDBOX. ${NOTICE.toUpperCase()} No money moves.`,
    '',
    ...record(
      Object.fromEntries([
        ['API', `${url}/api/v1`],
        ['API key', apiKey],
        ['environment', environmentText(options)],
        ['page and panel', `${url}/pay/LINK`],
        ['control', `${url}/_control`],
        ['data', options.data ?? 'in memory, gone when it stops; keep it with --data FILE'],
        ['seed', seed],
        ['clock', clockText(sandbox, options)],
        ...unusual(options, notes),
      ]),
    ),
    '',
    ...howToGoOn(sandbox, options).map(verbatim),
    '',
  ];
}

function environmentText({ environment }: SandboxOptions): string {
  return environment === 'production'
    ? '`production`: links can be paid, and every event is delivered'
    : '`sandbox`: payments are disabled, and only the panel sends events';
}

function clockText({ aheadMs, clock }: Sandbox, { timeScale }: SandboxOptions): string {
  const now = new Date(clock.nowMs()).toISOString();
  const isTurned = aheadMs > 1_000;
  const time = isTurned ? `turned ${durationText(aheadMs)} ahead of real time: ${now}` : 'real time';
  return timeScale === 1 ? time : `${time}, and from there ${timeScale} times as fast`;
}

/** The options that are not the default and change how the sandbox answers. */
function unusual({ switches, merchantInactive, rateLimit }: SandboxOptions, { open, unplayed }: Notes) {
  const names = Object.keys(DEFAULT_SWITCHES) as (keyof Switches)[];
  const changed = names.filter((name) => switches[name] !== DEFAULT_SWITCHES[name]);
  const rows: [string, string][] = [];
  if (changed.length > 0) rows.push(['switches', changed.map((name) => `${name}=${switches[name]}`).join(', ')]);
  if (unplayed.length > 0) rows.push(['not played', unplayed.join(', ')]);
  if (open > 0) rows.push(['fault plans', `${open}: list them with the command faults`]);
  if (merchantInactive) rows.push(['merchant', 'inactive: every call of the API is answered 403']);
  if (rateLimit === null) rows.push(['rate limit', 'none']);
  return rows;
}

function howToGoOn({ url, apiKey }: Sandbox, { environment }: SandboxOptions): string[] {
  const command = ownCommand();
  const other = url === DEFAULT_URL ? '' : ` --url ${url}`;
  const creation = [
    `    curl -s ${url}/api/v1/payment-links -H 'x-api-key: ${apiKey}' -H 'Content-Type: application/json' \\`,
    `      -d '{"title": "Test", "amount": 100, "externalReference": "order-1"}'; echo`,
  ];
  const ways =
    environment === 'production'
      ? [
          '  Create a link, and pay it. This one has no "webhookUrl": add the address of a receiver to send it events.',
          ...creation,
          `    ${command} pay order-1${other}`,
        ]
      : [
          '  Create a link, and open the "url" of the answer in a browser: the panel there simulates events. This link has',
          '  no "webhookUrl": add the address of a receiver to send it events.',
          ...creation,
        ];
  return [...ways, `  More: ${command} help, and sandbox/README.md. Stop with Ctrl+C.`];
}

/** In a checkout the command is npm's, which names its script in the environment. The launcher says what npx runs. */
function ownCommand(): string {
  const { CALLED_AS, npm_lifecycle_event } = process.env;
  const isByNpm = CALLED_AS === undefined && npm_lifecycle_event !== undefined;
  return isByNpm ? 'npm run -s sandbox --' : `${CALLED_AS ?? 'settled'} sandbox`;
}
