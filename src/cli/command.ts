import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { isLoopback } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import { type Environment, TARGET_NAMES } from '../config/environment.ts';
import { type Fault, terminalFault } from '../fault.ts';
import { type Command, commandOf, type Definition, type Option, type Options } from '../terminal/command.ts';
import { UsageError, whyUnreadable } from '../terminal/failure.ts';
import type { Clock } from '../work/clock.ts';
import type { Elsewhere, ServerApi } from './connection.ts';

/** What all commands of `settled` have, and the options that say which server they ask. */

/** What a command of `settled` has besides its arguments and its screen. */
export type Around = {
  /** In place of the process's own. */
  readonly environment: Environment | undefined;
  /** Reads the configuration. Faults: `configuration_invalid`. */
  readonly config: () => Config;
  /** Connects to the running server: the one that --at names, else the one of the configuration. */
  readonly server: () => ServerApi;
  /** Whether that server is named by --at or SETTLED_AT, so that no configuration of this machine says anything of it. */
  readonly isElsewhere: () => boolean;
  readonly clock: Clock;
};

export type SettledCommand = Command<Around>;

/** Defines a command of `settled`. One that is `isLocal` needs this machine's own configuration and files. */
export function defineCommand<const O extends Options = Record<never, Option>>(
  definition: Definition<O, Around>,
): SettledCommand {
  return commandOf(definition);
}

/** A server on another machine: its address and the token for it, from options or the environment. */
export const TARGET_OPTIONS = {
  at: { value: 'URL', about: 'ask the server at this address, like https://settled.example.com; SETTLED_AT' },
  'token-file': { value: 'FILE', about: 'with --at: a file that holds the token for it; SETTLED_AT_TOKEN_FILE' },
  'allow-http': {
    about:
      'with --at: permit http to another machine, which shows the token to the network; SETTLED_AT_ALLOW_HTTP=true',
  },
} as const;

export type ElsewhereOptions = { readonly at?: string; readonly 'token-file'?: string; readonly 'allow-http'?: true };

const [AT, TOKEN_FILE, ALLOW_HTTP] = TARGET_NAMES;

/** Whether a server elsewhere is named. */
export function hasTarget({ at }: ElsewhereOptions, environment: Environment): boolean {
  return (at ?? environment[AT] ?? '') !== '';
}

/**
 * The server that is named, and the token for it. It is never the token of the configuration: that belongs to the server of
 * this machine. Throws `UsageError`; faults: `configuration_invalid` for the environment, `not_authorized` for the token.
 */
export function readTarget(options: ElsewhereOptions, environment: Environment): Elsewhere {
  const isGiven = options.at !== undefined;
  const wrong = (why: string) =>
    isGiven
      ? new UsageError(`--at ${why}`)
      : terminalFault('configuration_invalid', `The configuration cannot be used:\n  - ${AT} ${why}`);
  const mayUseHttp = options['allow-http'] === true || environment[ALLOW_HTTP] === 'true';
  const url = readUrl(options.at ?? environment[AT] ?? '', mayUseHttp, wrong);
  const file = options['token-file'] ?? (environment[TOKEN_FILE] || undefined);
  if (file === undefined) {
    throw notAuthorized(
      `There is no token for ${url}: give --token-file FILE, or set ${TOKEN_FILE}. On the server's machine, ` +
        '`settled tokens add NAME --role viewer` makes one.',
    );
  }
  return { url, token: readToken(file, url) };
}

/** The text is never shown: it may hold a password, or be a token in the wrong place. */
function readUrl(text: string, mayUseHttp: boolean, wrong: (why: string) => Error): string {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw wrong('is not an address. Write one like https://settled.example.com.');
  }
  if (url.search !== '' || url.hash !== '' || url.username + url.password !== '') {
    throw wrong('must be an origin and perhaps a path, without a query, a fragment or a password.');
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !mayUseHttp) {
    throw wrong(
      `is http to another machine, ${url.host}: the network would see the token. Write https://, or come through a tunnel ` +
        '(ssh -L 8788:127.0.0.1:8788 MACHINE, then --at http://127.0.0.1:8788). If the network is safe, add --allow-http.',
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** What is no path may be the token itself, and is not shown. */
function readToken(file: string, url: string): string {
  const shown = isAbsolute(file) || file.startsWith('.') ? file : 'the token file';
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw notAuthorized(`There is no token for ${url}: ${shown} ${whyUnreadable(error)}.`);
  }
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token;
  throw notAuthorized(`There is no token in ${shown}: write the token alone into it, on one line.`);
}

function notAuthorized(message: string): Fault {
  return terminalFault('not_authorized', message);
}
