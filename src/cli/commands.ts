import { readConfig } from '../config/config.ts';
import { type Environment, targetEnvironment } from '../config/environment.ts';
import { releaseVersion } from '../release.ts';
import { COMPLETION_SCRIPTS, SHELLS } from '../terminal/completion.ts';
import { helpCommand } from '../terminal/help.ts';
import { verbatim } from '../terminal/output.ts';
import { commandsOf, type Program } from '../terminal/program.ts';
import { runProgram, type Surroundings } from '../terminal/run.ts';
import { type Clock, systemClock } from '../work/clock.ts';
import { alert, attention, attentionEnd } from './attention.ts';
import { bulkAccept, bulkCancel, bulkCheck, bulkEnd, bulkList, bulkReplay, bulkResend, bulkShow } from './bulk.ts';
import {
  type Around,
  defineCommand,
  type ElsewhereOptions,
  hasTarget,
  readTarget,
  type SettledCommand,
  TARGET_OPTIONS,
} from './command.ts';
import { connect, connectElsewhere } from './connection.ts';
import { eventsList, eventsReplay, eventsShow, rejections, verifyDelivery } from './deliveries.ts';
import { doctor } from './doctor.ts';
import { drill } from './drill.ts';
import { EXIT_MEANINGS, failure, Refusal } from './exit.ts';
import { firstContact } from './first_contact.ts';
import { init } from './init.ts';
import { linksAdd, linksReserve, reconcile } from './links.ts';
import { moveStoreCommand } from './move.ts';
import { noticesList, noticesResend, noticesShow } from './notices.ts';
import { backup, rotateKey, showConfig, stats, tail } from './operations.ts';
import { ordersAdopt, ordersCancel, ordersCheck, ordersList, ordersOpen, ordersResolve, ordersShow } from './orders.ts';
import { audit, openConsole, sessionsEnd, sessionsList, tokensAdd, tokensList, tokensRevoke } from './people.ts';
import { migrateDatabase, serve } from './serve.ts';
import { why } from './why.ts';

/**
 * All commands of `settled`. To add one, define it by `defineCommand` in the file of its noun and name it in `GROUPS`:
 * dispatch, options, help and completion follow from its definition.
 */

/** Runs the command of these words to its end; never throws. `environment` and `clock` replace the process's own. */
export function run(
  args: readonly string[],
  { environment, clock, ...surroundings }: Surroundings & { environment?: Environment; clock?: Clock },
): Promise<number> {
  return runProgram(settledIn(environment, clock), args, surroundings);
}

const version = defineCommand({
  usage: 'version',
  about: 'say which settled this is, and which Node runs it',
  isLocal: true,
  async run() {
    const version = releaseVersion();
    return { data: { version, node: process.version }, lines: [`settled ${version} (Node ${process.versions.node})`] };
  },
});

const completion = defineCommand({
  usage: 'completion SHELL',
  choices: SHELLS,
  about: 'print what lets your shell complete commands and options: bash, zsh or fish',
  details: [
    'Add a line to the configuration of your shell:',
    '  bash, in ~/.bashrc: source <(settled completion bash)',
    '  zsh, in ~/.zshrc, after compinit: source <(settled completion zsh)',
    '  fish, in ~/.config/fish/config.fish: settled completion fish | source',
  ],
  examples: ['settled completion bash'],
  isLocal: true,
  async run({ first }) {
    const lines = COMPLETION_SCRIPTS[first as (typeof SHELLS)[number]];
    return { data: { shell: first, script: `${lines.join('\n')}\n` }, lines: lines.map(verbatim) };
  },
});

/** Every command, in the order and under the headings in which help shows them. */
const GROUPS: Program<Around>['groups'] = {
  'Run it': [
    ...[init, firstContact, serve, migrateDatabase, moveStoreCommand, showConfig, doctor, stats, tail, backup],
    ...[drill, rotateKey],
  ],
  'Orders and their links': [
    ...[ordersOpen, ordersList, ordersShow, why, ordersCheck, ordersCancel, ordersResolve, ordersAdopt],
    ...[linksReserve, linksAdd, reconcile],
  ],
  'What the service said': [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery],
  'Notices to the shop': [noticesList, noticesShow, noticesResend],
  Attention: [attention, attentionEnd, alert],
  'For many at once': [bulkReplay, bulkResend, bulkCheck, bulkAccept, bulkEnd, bulkList, bulkShow, bulkCancel],
  'Who may use it': [openConsole, tokensAdd, tokensList, tokensRevoke, sessionsList, sessionsEnd, audit],
  'The command itself': [helpCommand(() => SETTLED), version, completion],
};

/** What the server says of a field of the request, said of the option or the argument that gave it. */
function inWordsOf(command: SettledCommand, error: Refusal): Refusal {
  const message = error.message.replace(/(^|; )(?:filter\.)?([a-zA-Z.]+): /g, (field, before, name: string) => {
    const option = name.replace('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (Object.hasOwn(command.options, option)) return `${before}--${option} `;
    return command.positionals === name.toUpperCase() ? `${before}${command.positionals} ` : field;
  });
  return new Refusal(error.code, message);
}

/** The program, by which commands find the server and the configuration of an environment. */
export function settledIn(environment: Environment | undefined, clock: Clock = systemClock): Program<Around> {
  const around: Program<Around>['around'] = (options, { isLocal }) => {
    const config = () => readConfig(environment);
    const named = targetEnvironment(environment);
    const target = options as ElsewhereOptions;
    const isElsewhere = () => hasTarget(target, named);
    const server = () => (isElsewhere() && !isLocal ? connectElsewhere(readTarget(target, named)) : connect(config()));
    return { environment, config, server, isElsewhere, clock };
  };
  return {
    name: 'settled',
    about: 'settled marks the orders of a shop paid: once, durably, and for the right money.',
    groups: GROUPS,
    options: TARGET_OPTIONS,
    // An installation may leave them out.
    programs: {
      demo: 'play a tiny shop, settled and a payment-link service together',
      sandbox: 'run a payment-link service of your own to try settled with',
    },
    notes: [
      '`settled help COMMAND` says more about one command; `settled completion SHELL` lets your shell complete them.',
      "Settings are in the environment, SETTLED_*: `settled config` shows them. A command needs the server's, or --at.",
    ],
    exits: EXIT_MEANINGS,
    failure: (error, command) => {
      const isField = error instanceof Refusal && error.code === 'invalid_request';
      return failure(isField && command !== undefined ? inWordsOf(command, error) : error);
    },
    around,
  };
}

export const SETTLED = settledIn(undefined);

export const COMMANDS: readonly SettledCommand[] = commandsOf(SETTLED);
