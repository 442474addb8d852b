import type { Finding } from '../api/doctor_store.ts';
import { type Config, readConfig } from '../config/config.ts';
import { type Environment, processEnvironment } from '../config/environment.ts';
import { Fault } from '../fault.ts';
import { secretsKeyPath, storeFile } from '../store/address.ts';
import { type Report, readGivenFile } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { stayAlive } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import { connect } from './connection.ts';
import { check, checkLines, exitOfChecks } from './doctor.ts';
import { CommandError } from './exit.ts';
import { type InitPlan, isGiven, planFiles, refuseSecondTime, writeFiles } from './init_files.ts';
import { startHere } from './serve.ts';

/** The command of the first hour: it makes a configuration, and shows whether settled works with it. */

/** The setting that each option gives. */
const SETTING_OF = {
  'service-url': 'SETTLED_API_URL',
  'api-key-file': 'SETTLED_API_KEY',
  'public-url': 'SETTLED_PUBLIC_URL',
  store: 'SETTLED_STORE',
  'shop-url': 'SETTLED_SHOP_URL',
  'shop-allow-private': 'SETTLED_SHOP_ALLOW_PRIVATE',
} as const;
type OptionName = keyof typeof SETTING_OF;
const NAMES = Object.keys(SETTING_OF) as OptionName[];
const NEEDED: readonly OptionName[] = ['service-url', 'api-key-file', 'public-url'];

type InitOptions = { readonly [Name in OptionName]?: string | true };

export const init = defineCommand({
  usage: 'init',
  about: 'set up settled in this folder, and check it',
  details: [
    'It writes .env, and a file in data/ for each secret. A folder that has a .env or a data is left as it is.',
    '--service-url, --api-key-file and --public-url are needed, unless the environment has their settings.',
    'Last it starts settled for a moment, and shows what doctor finds.',
    'The exit code is 1 if all was written and settled does not start, or doctor found a failure; and 78 if an answer cannot',
    'be used: then nothing was written. docs/first-hour.md describes each step, and how to try a first order.',
  ],
  examples: [
    'settled init --service-url https://links.example.com --api-key-file FILE --public-url https://pay.example.com',
  ],
  options: {
    'service-url': { value: 'URL', about: "the payment-link service's address; SETTLED_API_URL" },
    'api-key-file': { value: 'FILE', about: 'a file with your API key at the service; - for standard input' },
    'public-url': { value: 'URL', about: 'the https address at which the service reaches settled; SETTLED_PUBLIC_URL' },
    store: { value: 'ADDRESS', about: 'sqlite:FILE, or postgres://…; sqlite:./data/settled.db if left out' },
    'shop-url': { value: 'URL', about: 'where the shop takes notices; without it the shop reads the feed' },
    'shop-allow-private': { about: 'the shop is on this machine or in this network' },
  },
  isLocal: true,
  run: ({ options }) => setUp(options),
});

/** Throws `UsageError`, the command's own reasons, and `configuration_invalid`; when it does, nothing was written. */
async function setUp(options: InitOptions): Promise<Report> {
  // What the database and its log hold is for this user alone, as under `settled serve`.
  process.umask(0o077);
  refuseSecondTime();
  const { inherited } = processEnvironment();
  const plan = planFiles(readAnswers(options, inherited), inherited);
  // Throws what a start would say of all settings together.
  const { publicUrl, publicUrlReaches } = readConfig(plan.environment);
  if (!publicUrlReaches) {
    const what = `The service cannot deliver to ${publicUrl}, which --public-url or SETTLED_PUBLIC_URL gives`;
    throw new CommandError('answer_refused', `${what}: give an https address that the internet reaches.`);
  }
  const files = await writeFiles(plan);
  const config = readConfig();
  const checks = await consultDoctor(config);
  const next = nextSteps(
    plan,
    config,
    Object.keys(inherited).filter((name) => name.startsWith('SETTLED_')),
  );
  return {
    data: { folder: process.cwd(), files, doctor: { checks }, next },
    lines: [
      `Written in ${process.cwd()}, for this user alone: ${files.join(', ')}.`,
      '',
      'What doctor finds in a settled that was started for a moment:',
      ...checkLines(checks),
      '',
      'Next:',
      ...next.map((step, at) => `  ${at + 1}. ${step}`),
    ],
    exit: exitOfChecks(checks),
  };
}

/** The settings that the options give, by name. Throws `UsageError` if one is missing, or is in the environment as well. */
function readAnswers(options: InitOptions, inherited: Environment): Record<string, string> {
  const isInherited = (name: OptionName) => isGiven(inherited, SETTING_OF[name]);
  const missing = NEEDED.filter((name) => !options[name] && !isInherited(name));
  if (missing.length > 0) {
    throw new UsageError(`\`settled init\` lacks ${missing.map((name) => `--${name}`).join(', ')}: settled help init`);
  }
  const given = NAMES.filter((name) => options[name]);
  const twice = given.find(isInherited);
  if (twice !== undefined) {
    throw new UsageError(
      `--${twice} and ${SETTING_OF[twice]} are both given, and .env cannot change the environment: give one of them.`,
    );
  }
  const textOf = (name: OptionName) => {
    const text = String(options[name]);
    const value = (name === 'api-key-file' ? readGivenFile(name, text).toString('utf8') : text).trim();
    if (value === '') throw new UsageError(`--${name} ${text} gives nothing: it is empty.`);
    return value;
  };
  return Object.fromEntries(given.map((name) => [SETTING_OF[name], textOf(name)]));
}

/** Doctor's checks of a server that runs for the moment, in this process. A start that fails is a check that fails. */
async function consultDoctor(config: Config): Promise<Finding[]> {
  const { openLog } = await import('../observe/log.ts');
  const release = stayAlive();
  try {
    const app = await startHere(config, openLog('silent'));
    try {
      const { data } = await check(config, connect(config));
      return (data as { checks: Finding[] }).checks;
    } finally {
      await app.stop();
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return [{ name: 'start', status: 'failing', detail: fault.message }];
  } finally {
    release();
  }
}

/** What a person does then, a step each. */
function nextSteps({ settings }: InitPlan, config: Config, inherited: readonly string[]): string[] {
  const file = (name: string) => settings[`${name}_FILE`] ?? name;
  const { host, port } = config.operatorListen;
  const key = config.secretsKey === null ? secretsKeyPath(storeFile(config.store)) : file('SETTLED_SECRETS_KEY');
  const notices =
    config.shopUrl === null
      ? 'It reads what happened to its orders from the feed, GET /v1/feed.'
      : `Notices to it are signed with the secret in ${file('SETTLED_SHOP_SECRET')}.`;
  const also =
    inherited.length === 0 ? '' : ` Its environment must have ${inherited.join(', ')} as it has now: .env does not.`;
  return [
    'If something is failing, correct it: settings are in .env, secrets in data/. Then `settled doctor` checks again.',
    'Start it in this folder: `settled serve`; in a checkout `npm start`; if settled is a package in this folder, ' +
      '`npx settled serve`. For good: the unit of systemd or compose.yaml, see Run it in docs/operations.md.' +
      also,
    `Give the shop its token, which is in ${file('SETTLED_SHOP_TOKEN')}. It opens orders at ${host}:${port}: ` +
      `docs/integrate.md. ${notices}`,
    `Keep a copy of ${key} elsewhere, apart from the backups. Without it no delivery can be verified.`,
  ];
}
