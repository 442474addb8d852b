import { attention, attentionEnd } from './attention.ts';
import { type Command, defineCommand } from './command.ts';
import { rejections, verifyDelivery } from './deliveries.ts';
import { eventsList, eventsReplay, eventsShow } from './events.ts';
import { type Group, helpOn } from './help.ts';
import { linksAdd, linksReserve, reconcile } from './links.ts';
import { backup, migrateDatabase, rotateKey } from './maintenance.ts';
import { doctor, stats, tail } from './monitoring.ts';
import { noticesList, noticesResend, noticesShow } from './notices.ts';
import {
  ordersAdopt,
  ordersCancel,
  ordersCheck,
  ordersList,
  ordersOpen,
  ordersResolve,
  ordersShow,
  why,
} from './orders.ts';
import { serve } from './serve.ts';

const help = defineCommand({
  name: 'help',
  positionals: '[COMMAND...]',
  about: 'list the commands, or say how one is used',
  examples: ['settled help orders', 'settled help events replay'],
  run: async ({ positionals }) => helpOn(GROUPS, positionals),
});

/**
 * Every command, in the order and under the headings in which help shows them. To add one, define it by `defineCommand`
 * in the file of its noun and name it here: dispatch, options and help follow from its definition.
 */
export const GROUPS: readonly Group[] = [
  { heading: 'Run it', commands: [serve, migrateDatabase, doctor, stats, tail, backup, rotateKey, help] },
  {
    heading: 'Orders and their links',
    commands: [
      ...[ordersOpen, ordersList, ordersShow, why, ordersCheck, ordersCancel, ordersResolve, ordersAdopt],
      ...[linksReserve, linksAdd, reconcile],
    ],
  },
  { heading: 'What the service said', commands: [eventsList, eventsShow, eventsReplay, rejections, verifyDelivery] },
  { heading: 'What the shop is told', commands: [noticesList, noticesShow, noticesResend] },
  { heading: 'What needs a person', commands: [attention, attentionEnd] },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);
