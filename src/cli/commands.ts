import { attention, attentionEnd } from './attention.ts';
import { backup } from './backup.ts';
import { type Command, defineCommand, type Group } from './command.ts';
import { doctor } from './doctor.ts';
import { eventsList, eventsReplay, eventsShow } from './events.ts';
import { helpOn } from './help.ts';
import { linksAdd, linksReserve } from './links.ts';
import { migrateDatabase } from './migrate.ts';
import { noticesList, noticesResend, noticesShow } from './notices.ts';
import { ordersAdopt, ordersCancel, ordersCheck, ordersOpen } from './opening.ts';
import { ordersList, ordersResolve, ordersShow } from './orders.ts';
import { reconcile } from './reconcile.ts';
import { rejections } from './rejections.ts';
import { rotateKey } from './rotate_key.ts';
import { serve } from './serve.ts';
import { stats } from './stats.ts';
import { tail } from './tail.ts';
import { verifyDelivery } from './verify.ts';
import { why } from './why.ts';

const help = defineCommand({
  name: 'help',
  positionals: '[COMMAND...]',
  about: 'say what commands there are, or how one is used',
  examples: ['settled help orders', 'settled help events replay'],
  options: {},
  run: async ({ positionals }) => helpOn(GROUPS, positionals),
});

/** Every command, in the order and under the headings in which help shows them. */
export const GROUPS: readonly Group[] = [
  { heading: 'Run it', commands: [serve, migrateDatabase, doctor, stats, tail, backup, rotateKey, help] },
  {
    heading: 'Orders and their links',
    commands: [
      ordersOpen,
      ordersList,
      ordersShow,
      why,
      ordersCheck,
      ordersCancel,
      ordersResolve,
      ordersAdopt,
      linksReserve,
      linksAdd,
      reconcile,
    ],
  },
  { heading: 'What the service said', commands: [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery] },
  { heading: 'What the shop is told', commands: [noticesList, noticesShow, noticesResend] },
  { heading: 'What needs a person', commands: [attention, attentionEnd] },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);
