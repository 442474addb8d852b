import { helpCommand } from '../../src/terminal/help.ts';
import { commandsOf, type Program } from '../../src/terminal/program.ts';
import { runProgram, type Surroundings } from '../../src/terminal/run.ts';
import type { Around } from './client.ts';
import { connect, URL_OPTION } from './client.ts';
import { deliveries, events, resend } from './deliveries.ts';
import { EXIT_MEANINGS, failure } from './exit.ts';
import { faults } from './faults.ts';
import { complete, disable, dispute, enable, expire, links, pay, refund, win } from './links.ts';
import { play } from './play.ts';
import { serve } from './serve.ts';
import { clock, silences } from './switches.ts';

const SANDBOX: Program<Around> = {
  name: 'settled sandbox',
  about: 'settled sandbox is a local payment-link service to try things with. No money in it is real.',
  groups: {
    'The service': [serve, clock, faults, silences, play],
    'Links and their payments': [links, pay, complete, refund, dispute, win, expire, disable, enable],
    'What it sends': [events, deliveries, resend],
    'The command itself': [helpCommand(() => SANDBOX)],
  },
  usual: 'serve',
  options: URL_OPTION,
  programs: {},
  notes: [
    'LINK is the id of a link, its short code or its externalReference. Without a command it is `serve`.',
    'sandbox/README.md has the rest, and what the control API does beyond the commands.',
  ],
  exits: EXIT_MEANINGS,
  failure,
  around: ({ url }) => ({ control: () => connect(url as string | undefined) }),
};

/** Every command of `settled sandbox`. */
export const COMMANDS = commandsOf(SANDBOX);

/** Runs the command of these words. Never throws. Returns the exit code. */
export function run(args: readonly string[], surroundings: Surroundings): Promise<number> {
  return runProgram(SANDBOX, args, surroundings);
}
