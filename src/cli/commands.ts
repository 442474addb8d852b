import { attention } from './attention.ts';
import { backup } from './backup.ts';
import { type Command, defineCommand } from './command.ts';
import { doctor } from './doctor.ts';
import { eventsList, eventsShow } from './events.ts';
import { helpOn } from './help.ts';
import { linksAdd, linksReserve } from './links.ts';
import { migrateDatabase } from './migrate.ts';
import { ordersAdopt, ordersCancel, ordersCheck, ordersOpen } from './opening.ts';
import { ordersList, ordersResolve, ordersShow } from './orders.ts';
import { reconcile } from './reconcile.ts';
import { rejections } from './rejections.ts';
import { eventsReplay } from './replay.ts';
import { serve } from './serve.ts';
import { stats } from './stats.ts';
import { verifyDelivery } from './verify.ts';
import { why } from './why.ts';

const help = defineCommand({
  name: 'help',
  positionals: '[COMMAND...]',
  about: 'say what commands there are, or how one is used',
  options: {},
  run: async ({ positionals }) => helpOn(COMMANDS, positionals),
});

/** Every command, in the order in which help shows them. */
export const COMMANDS: readonly Command[] = [
  serve,
  migrateDatabase,
  linksReserve,
  linksAdd,
  ordersOpen,
  ordersList,
  ordersShow,
  ordersCheck,
  ordersCancel,
  ordersResolve,
  ordersAdopt,
  why,
  eventsList,
  eventsShow,
  eventsReplay,
  reconcile,
  rejections,
  attention,
  stats,
  verifyDelivery,
  doctor,
  backup,
  help,
];
