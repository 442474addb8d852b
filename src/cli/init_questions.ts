import { isLoopback } from '../config/addresses.ts';
import type { Environment } from '../config/environment.ts';
import { parseApiKey } from '../config/parsers.ts';
import { SETTINGS } from '../config/settings.ts';
import { readGivenFile } from './command.ts';
import { UsageError } from './exit.ts';
import {
  ANSWERS,
  type AnswerName,
  AnswerRefused,
  type CheckNote,
  checkPublicUrl,
  checkService,
  checkShop,
  checkStore,
  parseAnswer,
  parseSetting,
} from './init_checks.ts';
import { type InitAnswers, isGiven, type SettingsBefore, settingText } from './init_files.ts';
import type { Terminal } from './init_terminal.ts';
import { printable } from './output.ts';

/** The five questions of `settled init`: from where each answer comes, and what happens if it cannot be used. */

/** The setting that each answer becomes. */
const SETTING_OF = {
  'service-url': 'SETTLED_API_URL',
  'api-key-file': 'SETTLED_API_KEY',
  'public-url': 'SETTLED_PUBLIC_URL',
  store: 'SETTLED_STORE',
  'shop-url': 'SETTLED_SHOP_URL',
} as const satisfies Record<AnswerName, string>;

export type InitOptions = { readonly [Name in AnswerName]?: string } & {
  readonly 'shop-allow-private'?: true;
  readonly yes?: true;
};

type Source = {
  options: InitOptions;
  before: SettingsBefore;
  /** Null: everything must be given. */
  terminal: Terminal | null;
  signal: AbortSignal;
};

/**
 * Takes each answer from its option, the environment, the person, or without one the `.env` that is there. Checks each as it
 * is given; a person is asked again, and without one a refusal ends it. Throws `AnswerRefused` and faults of the store.
 */
export async function answerQuestions(
  source: Source,
  given: ReadonlyMap<AnswerName, string>,
): Promise<{ answers: InitAnswers; notes: CheckNote[] }> {
  const { terminal, options, before } = source;
  const known = new Map(given);
  const asked = { allowPrivate: options['shop-allow-private'] === true || allowsPrivate(before) };
  const notes = new Map<AnswerName, CheckNote>();
  for (let at = 0; at < ANSWERS.length; ) {
    const name = ANSWERS[at] as AnswerName;
    try {
      const text = known.get(name) ?? (await ask(name, source, known));
      known.set(name, text);
      const note = await check(name, known, source, asked);
      if (note !== null) notes.set(name, note);
      if (note !== null) terminal?.say(`  ${note.status === 'ok' ? 'ok' : 'warning'}: ${printable(note.detail)}.`);
      at++;
    } catch (error) {
      if (!(error instanceof AnswerRefused)) throw error;
      const isFixed = isGiven(before.inherited, SETTING_OF[error.of]);
      if (isFixed || terminal === null) throw error.named(isFixed ? SETTING_OF[error.of] : `--${error.of}`);
      terminal.say(`  no: ${printable(error.message)}`);
      known.delete(error.of);
      at = ANSWERS.indexOf(error.of);
    }
  }
  const answers = {
    apiUrl: known.get('service-url') as string,
    apiKey: known.get('api-key-file') as string,
    publicUrl: known.get('public-url') as string,
    store: known.get('store') as string,
    shopUrl: known.get('shop-url') as string,
    shopAllowPrivate: asked.allowPrivate,
  };
  return { answers, notes: [...notes.values()] };
}

/** What needs no question. Throws `UsageError` if an option and the environment differ, or if something is missing. */
export function givenAnswers({ options, before, terminal }: Source): ReadonlyMap<AnswerName, string> {
  const given = new Map<AnswerName, string>();
  for (const name of ANSWERS) {
    const setting = SETTING_OF[name];
    const option = textOfOption(name, options[name]);
    const inherited = isGiven(before.inherited, setting) ? (settingText(before.inherited, setting) ?? '') : undefined;
    if (option !== undefined && inherited !== undefined && option !== inherited) {
      throw new UsageError(
        `--${name} differs from ${setting} in the environment, which .env cannot change: give one of them.`,
      );
    }
    const kept = terminal === null ? (settingText(before.file, setting) ?? FALLBACK[name]) : undefined;
    const text = option ?? inherited ?? kept;
    if (text !== undefined) given.set(name, text);
  }
  const missing = ANSWERS.filter((name) => !given.has(name)).map((name) => `--${name}`);
  if (terminal === null && options.yes !== true) missing.push('--yes');
  if (terminal !== null || missing.length === 0) return given;
  const [why, instead] =
    options.yes === true
      ? ['With --yes `settled init` asks nothing', 'leave out --yes on a terminal']
      : ['`settled init` asks on a terminal only', 'run it on a terminal'];
  throw new UsageError(
    `${why}. Here it lacks: ${missing.join(', ')}. Give these, or ${instead}. See: settled help init`,
  );
}

/** What is answered without a person, an option and a setting. */
const FALLBACK: Readonly<Partial<Record<AnswerName, string>>> = {
  store: SETTINGS.store.fallback ?? '',
  'shop-url': '',
};

function textOfOption(name: AnswerName, option: string | undefined): string | undefined {
  if (option === undefined || name !== 'api-key-file') return option?.trim();
  return readGivenFile(name, option).toString('utf8').trim();
}

function allowsPrivate({ inherited, file }: SettingsBefore): boolean {
  const text = settingText(inherited, 'SETTLED_SHOP_ALLOW_PRIVATE') ?? settingText(file, 'SETTLED_SHOP_ALLOW_PRIVATE');
  return text === 'true' || text === 'on';
}

/** What a person reads before each answer. */
const QUESTIONS: Readonly<Record<AnswerName, readonly string[]>> = {
  'service-url': [
    'Where is the payment-link service?',
    'Its address, like https://links.example.com. settled adds /api/v1.',
  ],
  'api-key-file': ['What is your API key there?', 'It is not shown while you type. One request tries it.'],
  'public-url': [
    'At which address does the service reach settled?',
    'The https address of your proxy, like https://pay.example.com. Every link keeps it: choose one that stays.',
  ],
  store: [
    'SQLite or PostgreSQL?',
    'SQLite is one file on this machine, and enough for most shops. PostgreSQL lets several servers share the work.',
  ],
  'shop-url': [
    'Where does the shop take notices of payments?',
    'Its address, like https://shop.example.com/settled. Enter alone: the shop reads the feed instead.',
  ],
};

async function ask(name: AnswerName, source: Source, known: Known): Promise<string> {
  const terminal = source.terminal as Terminal;
  const [question, ...details] = QUESTIONS[name];
  terminal.say('');
  terminal.say(`${ANSWERS.indexOf(name) + 1} of ${ANSWERS.length}  ${question}`);
  for (const line of details) terminal.say(`        ${line}`);
  const before = settingText(source.before.file, SETTING_OF[name]);
  if (name === 'store') return askForStore(terminal, before);
  if (name === 'api-key-file') {
    const hint = before === undefined ? '' : '[Enter keeps the one that is there] ';
    return (await terminal.askHidden(`  ${hint}> `)) || (before ?? '');
  }
  if (name === 'shop-url' && before !== undefined) return askForShop(terminal, before);
  const offered = before ?? (name === 'public-url' ? localAddress(known, source) : undefined);
  const hint = offered === undefined ? '' : `[${printable(offered)}] `;
  return (await terminal.ask(`  ${hint}> `)) || (offered ?? '');
}

/** Where a service on this machine, such as the sandbox, reaches settled. Undefined if either of them is elsewhere. */
function localAddress(known: Known, { before }: Source): string | undefined {
  const listen = settingText({ ...before.file, ...before.inherited }, 'SETTLED_HOOKS_LISTEN');
  const [service, here] = [known.get('service-url') ?? '', `http://${listen ?? SETTINGS.hooksListen.fallback}`];
  const areBothHere = [service, here].every((one) => isLoopback(URL.parse(one)?.hostname ?? ''));
  return areBothHere ? here : undefined;
}

/** Its path or its query may be a secret, and is not shown. */
async function askForShop(terminal: Terminal, before: string): Promise<string> {
  const origin = URL.parse(before)?.origin ?? 'the one that is there';
  const answer = await terminal.ask(`  [${origin}; "none" for the feed] > `);
  return answer.toLowerCase() === 'none' ? '' : answer || before;
}

/** The address of PostgreSQL holds a password, and is not shown. */
async function askForStore(terminal: Terminal, before: string | undefined): Promise<string> {
  const wasShared = before !== undefined && !before.startsWith('sqlite:');
  for (;;) {
    const engine = (await terminal.ask(`  [${wasShared ? 'postgresql' : 'sqlite'}] > `)).toLowerCase();
    const isShared = engine === '' ? wasShared : /^(p|postgres|postgresql)$/.test(engine);
    if (!isShared && !['', 's', 'sqlite'].includes(engine)) continue;
    if (!isShared) {
      const usual = (wasShared ? undefined : before) ?? SETTINGS.store.fallback ?? '';
      const path = await terminal.ask(`  Which file? [${printable(usual.replace(/^sqlite:/, ''))}] > `);
      return path === '' ? usual : `sqlite:${path.replace(/^sqlite:/, '')}`;
    }
    const hint = wasShared ? ', or Enter for the one that is there' : '';
    terminal.say('  Its address: postgres://user:password@host:5432/database. It is not shown while you type.');
    return (await terminal.askHidden(`  postgres://…${hint} > `)) || (before ?? '');
  }
}

type Known = Map<AnswerName, string>;

/** Reads and tries an answer, and keeps it as it will be written. Null if there is nothing to say about it. */
async function check(
  name: AnswerName,
  known: Known,
  source: Source,
  asked: { allowPrivate: boolean },
): Promise<CheckNote | null> {
  const text = known.get(name) ?? '';
  const others: Environment = { ...source.before.file, ...source.before.inherited };
  const apiUrl = known.get('service-url') ?? '';
  switch (name) {
    case 'service-url':
      known.set(name, parseAnswer(name, "The service's address", text, SETTINGS.apiUrl.parse) as string);
      return null;
    case 'api-key-file':
      return checkService(apiUrl, parseAnswer(name, 'The API key', text, parseApiKey));
    case 'public-url': {
      const publicUrl = parseAnswer(name, 'The public address', text, SETTINGS.publicUrl.parse);
      known.set(name, publicUrl);
      const listen = settingText(others, 'SETTLED_HOOKS_LISTEN') ?? SETTINGS.hooksListen.fallback ?? '';
      return checkPublicUrl(
        publicUrl,
        apiUrl,
        parseSetting('SETTLED_HOOKS_LISTEN', listen, SETTINGS.hooksListen.parse),
      );
    }
    case 'store':
      return checkStore(text, others, source.signal);
    case 'shop-url':
      if (text === '') return null;
      known.set(name, parseAnswer(name, "The shop's address", text, SETTINGS.shopUrl.parse) as string);
      return checkShop(text, async () => {
        const question = "The shop's address is private, or not https. Is the shop on this machine or in this network?";
        asked.allowPrivate ||= (await source.terminal?.confirm(question, false)) ?? false;
        return asked.allowPrivate;
      });
  }
}
