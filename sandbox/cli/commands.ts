import { clock } from './clock.ts';
import { type Command, defineCommand } from './command.ts';
import { deliveries, events, resend } from './deliveries.ts';
import { faults } from './faults.ts';
import { helpOn } from './help.ts';
import { complete, disable, dispute, enable, expire, links, pay, refund, win } from './links.ts';
import { play } from './play.ts';
import { serve } from './serve.ts';
import { silences } from './silences.ts';

const help = defineCommand({
  name: 'help',
  positional: '[COMMAND]',
  about: 'say what commands there are, or how one is used',
  options: {},
  run: async ({ first }) => helpOn(COMMANDS, first),
});

/** Every command of `settled sandbox`, in the order in which help shows them. */
export const COMMANDS: readonly Command[] = [
  serve,
  links,
  pay,
  complete,
  refund,
  dispute,
  win,
  expire,
  disable,
  enable,
  events,
  deliveries,
  resend,
  clock,
  faults,
  silences,
  play,
  help,
];
