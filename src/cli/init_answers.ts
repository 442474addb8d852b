import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isLoopback, isPublicAddress } from '../config/addresses.ts';
import { readSetting } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';
import { readGivenFile } from './command.ts';
import { CommandError, UsageError } from './exit.ts';
import { printable } from './output.ts';

/** The five questions of `settled init`: from where each answer comes, and whether it can be used. */

type Question = { setting: { name: string }; lines: readonly string[]; usual?: string };

/** `usual`: what Enter alone means, and what is taken if nobody is asked. */
const QUESTIONS = {
  'service-url': {
    setting: SETTINGS.apiUrl,
    lines: ['Where is the payment-link service? Like https://links.example.com.'],
  },
  'api-key-file': { setting: SETTINGS.apiKey, lines: ['What is your API key there? It is not shown while you type.'] },
  'public-url': {
    setting: SETTINGS.publicUrl,
    lines: [
      'At which https address does the service reach settled?',
      'That of your proxy, like https://pay.example.com. Every link keeps it:',
      'choose one that stays. A sandbox here reaches http://127.0.0.1:8787.',
    ],
  },
  store: {
    setting: SETTINGS.store,
    lines: [
      'Where are orders kept? In a file of SQLite, like the one below, which is',
      'enough for most shops. Or write postgres, and give its address then.',
    ],
    usual: SETTINGS.store.fallback ?? '',
  },
  'shop-url': {
    setting: SETTINGS.shopUrl,
    lines: [
      'Where does the shop take notices? Like https://shop.example.com/settled.',
      'Enter alone: the shop reads the feed instead.',
    ],
    usual: '',
  },
} as const satisfies Record<string, Question>;
type AnswerName = keyof typeof QUESTIONS;
const NAMES = Object.keys(QUESTIONS) as AnswerName[];

export type InitOptions = { readonly [Name in AnswerName]?: string } & {
  readonly 'shop-allow-private'?: true;
  readonly yes?: true;
};

/** What `.env` and `data/` will say. Undefined: the environment of the process gives it. */
export type InitAnswers = {
  apiUrl: string | undefined;
  apiKey: string | undefined;
  publicUrl: string | undefined;
  store: string | undefined;
  /** Whether the store is a PostgreSQL. */
  isShared: boolean;
  /** Empty: the shop reads the feed. */
  shopUrl: string | undefined;
  shopAllowPrivate: boolean;
};

/** `terminal`: null if nobody can be asked. */
type Source = { options: InitOptions; inherited: Environment; terminal: Terminal | null };

/**
 * Takes each answer from its option or the environment, else asks for it, and asks again if a start would refuse it. Throws
 * `UsageError` if something is missing or given twice, and `answer_refused`.
 */
export async function answerQuestions(source: Source): Promise<InitAnswers> {
  const { options, inherited, terminal } = source;
  refuseMissing(source);
  const { apiUrl, apiKey, publicUrl, store, shopUrl } = SETTINGS;
  let shopAllowPrivate =
    options['shop-allow-private'] === true || readSetting(inherited, SETTINGS.shopAllowPrivate) === true;
  const takeShop = async (text: string) => {
    if (text === '') return '';
    const url = shopUrl.parse(text) as string;
    if (isPublicAddress(url)) return url;
    shopAllowPrivate ||= (await terminal?.confirm('Is the shop on this machine or in this network?')) ?? false;
    if (shopAllowPrivate) return url;
    throw new Error('is no public https address. If the shop is meant to be there, give --shop-allow-private');
  };
  const service = await answerTo('service-url', source, (text) => apiUrl.parse(text) as string);
  const key = await answerTo('api-key-file', source, (text) => apiKey.parse(text) as string);
  const serviceUrl = service ?? readSetting(inherited, apiUrl) ?? '';
  const reached = await answerTo('public-url', source, (text) => reachedFrom(serviceUrl, publicUrl.parse(text)));
  let isShared = readSetting(inherited, store)?.engine === 'postgres';
  const place = await answerTo('store', source, (text) => {
    isShared = store.parse(text).engine === 'postgres';
    return text;
  });
  const shop = await answerTo('shop-url', source, takeShop);
  return { apiUrl: service, apiKey: key, publicUrl: reached, store: place, isShared, shopUrl: shop, shopAllowPrivate };
}

function refuseMissing({ options, inherited, terminal }: Source): void {
  const isInherited = (name: AnswerName) => isGiven(inherited, QUESTIONS[name].setting.name);
  const twice = NAMES.find((name) => options[name] !== undefined && isInherited(name));
  if (twice !== undefined) {
    const setting = QUESTIONS[twice].setting.name;
    throw new UsageError(
      `--${twice} and ${setting} are both given, and .env cannot change the environment: give one of them.`,
    );
  }
  const missing = NAMES.filter(
    (name) => options[name] === undefined && !isInherited(name) && usualOf(name) === undefined,
  );
  if (terminal !== null || missing.length === 0) return;
  const why =
    options.yes === true ? 'With --yes `settled init` asks nothing' : '`settled init` asks on a terminal only';
  throw new UsageError(
    `${why}. Here it lacks: ${missing.map((name) => `--${name}`).join(', ')}. See: settled help init`,
  );
}

export function isGiven(environment: Environment, name: string): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

function usualOf(name: AnswerName): string | undefined {
  return (QUESTIONS[name] as Question).usual;
}

/** Undefined if the environment gives it. `take`: returns what is to be written, or throws a sentence without a subject. */
async function answerTo(
  name: AnswerName,
  { options, inherited, terminal }: Source,
  take: (text: string) => string | Promise<string>,
): Promise<string | undefined> {
  if (isGiven(inherited, QUESTIONS[name].setting.name)) return undefined;
  const option = options[name];
  const given = name === 'api-key-file' && option !== undefined ? readGivenFile(name, option).toString('utf8') : option;
  for (;;) {
    const text = given ?? (terminal === null ? (usualOf(name) ?? '') : await ask(name, terminal));
    try {
      if (/\p{Cc}/u.test(text.trim())) throw new Error('has a control character in it');
      return await take(text.trim());
    } catch (error) {
      if (error instanceof CommandError) throw error;
      const { message } = error as Error;
      if (given !== undefined || terminal === null) throw new CommandError('answer_refused', `--${name} ${message}.`);
      terminal.say(`  No: it ${message}.`);
    }
  }
}

/** Returns the public address if a service there can deliver to it. A sandbox on this machine always can. */
function reachedFrom(serviceUrl: string, publicUrl: string): string {
  const isHere = URL.canParse(serviceUrl) && isLoopback(new URL(serviceUrl).hostname);
  if (isHere || isPublicAddress(publicUrl)) return publicUrl;
  throw new Error('is no address to which the service can deliver: give an https address that the internet reaches');
}

async function ask(name: AnswerName, terminal: Terminal): Promise<string> {
  terminal.say(`\n${NAMES.indexOf(name) + 1} of ${NAMES.length}  ${QUESTIONS[name].lines.join('\n        ')}`);
  const usual = usualOf(name);
  const hint = usual ? `[${usual}] ` : '';
  const text = (await terminal.ask(`  ${hint}> `, { isSecret: name === 'api-key-file' })) || (usual ?? '');
  if (name !== 'store' || !/^postgres(ql)?$/i.test(text)) return text;
  // It holds a password.
  return terminal.ask('  postgres://user:password@host:5432/database, not shown while you type > ', { isSecret: true });
}

export type Terminal = NonNullable<ReturnType<typeof openTerminal>>;

/** Asks a person, on standard error, because standard output is for the report. Null if there is no terminal to ask on. */
export function openTerminal() {
  const { stdin, stderr } = process;
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  let isShown = false;
  const write = (chunk: Buffer, _: unknown, done: () => void) => {
    if (isShown) stderr.write(chunk);
    done();
  };
  const output = Object.assign(new Writable({ write }), { columns: stderr.columns });
  const reader = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
  // What was pasted after the line may be a secret.
  reader.on('line', () => {
    isShown = false;
  });
  reader.on('SIGINT', () => {
    reader.close();
    process.kill(process.pid, 'SIGINT');
  });
  const lines = reader[Symbol.asyncIterator]();
  const ask = async (prompt: string, { isSecret = false } = {}): Promise<string> => {
    isShown = true;
    reader.setPrompt(prompt);
    reader.prompt();
    isShown = !isSecret;
    const { value, done } = await lines.next();
    if (done) throw new CommandError('not_confirmed', 'The input ended before the last answer. Nothing was written.');
    if (isSecret) stderr.write('\n');
    return value.trim();
  };
  return {
    say: (text: string) => void stderr.write(`${text.split('\n').map(printable).join('\n')}\n`),
    ask,
    confirm: async (question: string) => /^y/i.test(await ask(`  ${question} [y/N] > `)),
    close: () => reader.close(),
  };
}
