import { flushCompileCache } from 'node:module';
import { DEFAULT_LISTEN, type SandboxOptions } from '../options.ts';
import type { Sandbox } from '../sandbox.ts';
import { HEADER_PREFIX_OPTION, readHeaderPrefix } from './arguments.ts';
import { banner, NOTICE } from './banner.ts';
import { type Call, defineCommand, type Options } from './command.ts';
import { connect } from './control.ts';
import { CommandError, EXIT, UsageError } from './exit.ts';
import { readPlanText } from './faults.ts';
import { readSwitches } from './silences.ts';

/** Where a real second would be more than a day, retries could not be told apart any more. */
const TIME_SCALE_MAX = 86_400;

const OPTIONS = {
  listen: { value: 'HOST:PORT', about: 'where it listens; default 127.0.0.1:8790; port 0 takes a free one' },
  environment: {
    value: 'NAME',
    about: '`production`: links can be paid, events are delivered (the default); or `sandbox`: neither',
  },
  data: { value: 'FILE', about: 'keep everything in this file; default: in memory' },
  'api-key': {
    value: 'KEY',
    about: 'the API key, also from SETTLED_SANDBOX_API_KEY; default: one that follows from the seed',
  },
  seed: { value: 'TEXT', about: 'the same seed gives the same ids and secrets; default: a new one for each sandbox' },
  'time-scale': { value: 'N', about: 'how many seconds of the sandbox pass in a real one; default 1' },
  'header-prefix': HEADER_PREFIX_OPTION,
  set: { value: 'NAME=VALUE', isRepeatable: true, about: 'a switch for what the specification leaves open' },
  fault: { value: 'JSON', isRepeatable: true, about: 'a fault plan, such as {"fault": "duplicate"}' },
  'no-rate-limit': { about: 'answer more than 60 requests a minute' },
  'merchant-inactive': { about: 'answer every call with 403, as for an inactive merchant' },
  'allow-remote': { about: 'listen where it is not loopback: everybody there may do everything' },
} as const satisfies Options;

type Given = Call<typeof OPTIONS>['options'];

export const serve = defineCommand({
  name: 'serve',
  positional: '',
  about: 'start a sandbox, until SIGTERM or SIGINT; the command where none is named',
  options: { ...OPTIONS, json: { about: 'print the addresses as one line of JSON' } },
  run: async ({ options }) => {
    const stopped = stopAsked();
    const chosen = readOptions(options);
    const plans = await readPlans(options.fault ?? []);
    const sandbox = await start(chosen);
    const control = connect(sandbox.url);
    for (const plan of plans) await control.post('/faults', plan);
    const planned = (await control.get('/faults')).faults as { remaining: number | null }[];
    const open = planned.filter(({ remaining }) => remaining !== 0).length;
    const lines = options.json === true ? [JSON.stringify(addresses(sandbox))] : banner(sandbox, chosen, open);
    process.stdout.write(`${lines.join('\n')}\n`);
    // Written now, because a process that is killed never gets to write it at its end.
    flushCompileCache();
    await stopped;
    await sandbox.stop();
    return null;
  },
});

/** Judged before anything listens. */
async function readPlans(texts: readonly string[]): Promise<Record<string, unknown>[]> {
  const plans = texts.map(readPlanText);
  if (plans.length === 0) return plans;
  // Loaded here, so that the commands that need no fault plan are quick.
  const { readPlan } = await import('../dispatch/faults.ts');
  for (const plan of plans) {
    try {
      readPlan(plan);
    } catch (error) {
      throw new UsageError(`--fault: ${(error as Error).message}`);
    }
  }
  return plans;
}

/** Resolves when somebody wants this process to stop. Asking again changes nothing. */
function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve());
    // The launcher that started this process is gone, killed perhaps.
    process.once('disconnect', () => resolve());
    if (process.connected === false) resolve();
  });
}

function readOptions(given: Given): SandboxOptions {
  const environment = given.environment ?? 'production';
  if (environment !== 'production' && environment !== 'sandbox') {
    throw new UsageError(`--environment is "${environment}"; known: production, sandbox`);
  }
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
  const listen = given.listen === undefined ? DEFAULT_LISTEN : readListen(given.listen);
  return {
    environment,
    listen,
    allowRemote: given['allow-remote'] === true,
    data: given.data ?? null,
    apiKey,
    seed: given.seed ?? null,
    timeScale,
    headerPrefix: readHeaderPrefix(given['header-prefix']),
    silences: readSwitches('--set', given.set ?? []),
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
    return new CommandError(
      EXIT.inUse,
      'address_in_use',
      `${where} is in use by another program. Choose another: --listen ${listen.host}:0; ` +
        `or, where that is a sandbox, use the one that is there: --url http://${where}`,
    );
  }
  if (['EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND'].includes(code)) {
    return new UsageError(`Nothing can listen at ${where} (${code}). Choose another: --listen HOST:PORT`);
  }
  if (code === 'SQLITE_BUSY') {
    const told = `${data} is in use by another program. Name another file.`;
    return new CommandError(EXIT.inUse, 'data_in_use', told);
  }
  const isData = /^SQLITE_|^ERR_INVALID|^SEED_DIFFERS|directory does not exist/.test(code || message);
  if (data === null || !isData) return error;
  return new CommandError(EXIT.cannotOpen, 'data_unusable', `${data} cannot be opened: ${message}.`);
}

function addresses({ url, apiKey, seed }: Sandbox) {
  return { url, api: `${url}/api/v1`, control: `${url}/_control`, apiKey, seed, notice: NOTICE };
}
