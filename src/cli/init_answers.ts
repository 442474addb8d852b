import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isLoopback, isPublicAddress } from '../config/addresses.ts';
import { readSetting } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { SETTINGS, type Setting } from '../config/settings.ts';
import { readGivenFile } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { printable } from '../terminal/output.ts';
import { CommandError } from './exit.ts';

/** The five questions of `settled init`: from where each answer comes, and whether it can be used. */

/** What is known while a question is asked: the answers before it, and what the environment gives. */
type Asked = { known: Environment; mayBePrivate: () => Promise<boolean> };

/**
 * `usual`: what Enter alone means, and what is taken if no person is asked. `take`: the setting's text, or throws a sentence
 * without a subject.
 */
type Question = {
  setting: { name: string };
  lines: readonly string[];
  usual?: string;
  take: (text: string, asked: Asked) => unknown;
};

const { apiUrl, apiKey, publicUrl, store, shopUrl, shopAllowPrivate } = SETTINGS;

const QUESTIONS = {
  'service-url': {
    setting: apiUrl,
    lines: ['Where is the payment-link service? Like https://links.example.com.'],
    take: apiUrl.parse,
  },
  'api-key-file': {
    setting: apiKey,
    lines: ['What is your API key there? It is not shown while you type.'],
    take: apiKey.parse,
  },
  'public-url': {
    setting: publicUrl,
    lines: [
      'At which https address does the service reach settled?',
      'That of your proxy, like https://pay.example.com. Every link keeps it:',
      'choose one that stays. A sandbox here reaches http://127.0.0.1:8787.',
    ],
    take: (text, { known }) => reachedFrom(settingOf(known, apiUrl), publicUrl.parse(text)),
  },
  store: {
    setting: store,
    lines: [
      'Where are orders kept? In a file of SQLite, like the one below, which is',
      'enough for most shops. Or write postgres, and give its address then.',
    ],
    usual: store.fallback ?? '',
    take: (text) => store.parse(text) && text,
  },
  'shop-url': {
    setting: shopUrl,
    lines: [
      'Where does the shop take notices? Like https://shop.example.com/settled.',
      'Enter alone: the shop reads the feed instead.',
    ],
    usual: '',
    take: async (text, { mayBePrivate }) => {
      const url = text === '' ? '' : (shopUrl.parse(text) as string);
      if (url === '' || isPublicAddress(url) || (await mayBePrivate())) return url;
      throw new Error(
        'is no public https address. If the shop is meant to be there, answer y, or give --shop-allow-private',
      );
    },
  },
} as const satisfies Record<string, Question>;
type AnswerName = keyof typeof QUESTIONS;
const NAMES = Object.keys(QUESTIONS) as AnswerName[];
const questionOf = (name: AnswerName): Question => QUESTIONS[name];

export type InitOptions = { readonly [Name in AnswerName]?: string } & {
  readonly 'shop-allow-private'?: true;
  readonly yes?: true;
};

/** `terminal`: null if no person can be asked. */
type Source = { options: InitOptions; inherited: Environment; terminal: Terminal | null };

/**
 * The settings that the environment does not give, each from its option, or from a person, who is asked again if a start
 * would refuse it. Throws `UsageError` if something is missing or given twice, and `answer_refused`.
 */
export async function answerQuestions(source: Source): Promise<Record<string, string>> {
  const { options, inherited, terminal } = source;
  refuseMissing(source);
  const answers: Record<string, string> = {};
  let isPrivate = options['shop-allow-private'] === true;
  const mayBePrivate = async () => {
    isPrivate ||= settingOf(inherited, shopAllowPrivate) === true;
    isPrivate ||= (await terminal?.confirm('Is the shop on this machine or in this network?')) === true;
    return isPrivate;
  };
  const refused: string[] = [];
  for (const name of NAMES) {
    const { setting } = questionOf(name);
    if (isGiven(inherited, setting.name)) continue;
    try {
      answers[setting.name] = await answerTo(name, source, { known: { ...inherited, ...answers }, mayBePrivate });
    } catch (error) {
      if (terminal !== null || !(error instanceof CommandError)) throw error;
      refused.push(error.message);
    }
  }
  if (refused.length > 0) throw new CommandError('answer_refused', refused.join(' '));
  const isShop = answers[shopUrl.name] !== '';
  if (isPrivate && isShop && !isGiven(inherited, shopAllowPrivate.name)) answers[shopAllowPrivate.name] = 'true';
  return answers;
}

function refuseMissing({ options, inherited, terminal }: Source): void {
  const isInherited = (name: AnswerName) => isGiven(inherited, questionOf(name).setting.name);
  const twice = NAMES.find((name) => options[name] !== undefined && isInherited(name));
  if (twice !== undefined) {
    const setting = questionOf(twice).setting.name;
    throw new UsageError(
      `--${twice} and ${setting} are both given, and .env cannot change the environment: give one of them.`,
    );
  }
  const missing = NAMES.filter(
    (name) => options[name] === undefined && !isInherited(name) && questionOf(name).usual === undefined,
  );
  if (terminal !== null || missing.length === 0) return;
  const lacking = missing.map((name) => `--${name}`).join(', ');
  throw new UsageError(
    `With --yes, or without a terminal, \`settled init\` asks nothing, and here it lacks: ${lacking}.`,
  );
}

export function isGiven(environment: Environment, name: string): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

/** Reads a setting. Throws `answer_refused` if it cannot be used: the environment gives it, and asking would not help. */
export function settingOf<T>(environment: Environment, setting: Setting<T>): T | null {
  try {
    return readSetting(environment, setting);
  } catch (error) {
    throw new CommandError('answer_refused', `${setting.name} ${(error as Error).message}.`);
  }
}

async function answerTo(name: AnswerName, { options, terminal }: Source, asked: Asked): Promise<string> {
  const { take, usual = '' } = questionOf(name);
  const option = options[name];
  const given = name === 'api-key-file' && option !== undefined ? readGivenFile(name, option).toString('utf8') : option;
  let isHidden = false;
  for (;;) {
    const text = (given ?? (await ask(name, terminal, isHidden)) ?? usual).trim();
    // Enter alone leads back to the question.
    const isTurned = isHidden ? text === '' : name === 'store' && terminal !== null && /^postgres(ql)?$/i.test(text);
    if (isTurned && given === undefined) {
      isHidden = !isHidden;
      continue;
    }
    try {
      if (/\p{Cc}/u.test(text)) throw new Error('has a control character in it');
      return (await take(text, asked)) as string;
    } catch (error) {
      if (error instanceof CommandError) throw error;
      const { message } = error as Error;
      if (given !== undefined || terminal === null) throw new CommandError('answer_refused', `--${name} ${message}.`);
      terminal.say(`  No: it ${message}.`);
    }
  }
}

/** Returns the public address if a service there can deliver to it: one on this machine always can. Null: its address was refused. */
function reachedFrom(serviceUrl: string | null, address: string): string {
  const isHere = serviceUrl === null || isLoopback(new URL(serviceUrl).hostname);
  if (isHere || isPublicAddress(address)) return address;
  throw new Error('is no address to which the service can deliver: give an https address that the internet reaches');
}

const HIDDEN_ADDRESS = '  postgres://user:password@host:5432/database, not shown while you type > ';

/** Undefined if no person can be asked, or if Enter alone was typed. */
async function ask(name: AnswerName, terminal: Terminal | null, isHidden: boolean): Promise<string | undefined> {
  if (terminal === null) return undefined;
  // It holds a password.
  if (isHidden) return terminal.ask(HIDDEN_ADDRESS, { isSecret: true });
  const { lines, usual } = questionOf(name);
  terminal.say(`\n${NAMES.indexOf(name) + 1} of ${NAMES.length}  ${lines.join('\n        ')}`);
  const hint = usual ? `[${usual}] ` : '';
  const text = await terminal.ask(`  ${hint}> `, { isSecret: name === 'api-key-file' });
  return text || undefined;
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
