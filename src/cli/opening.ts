import { shellWord } from '../domain/advice.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { parseJsonText } from '../json.ts';
import { UsageError } from './arguments.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { readGivenFile } from './links.ts';
import { orderLines, orderPath } from './orders.ts';

/** `opening`: what a link that is not there yet waits for. */
type OpenAnswer = { order: OrderDocument; opening?: { detail: string; nextAttemptAt: string | null } };

export const ordersOpen = defineCommand({
  name: 'orders open',
  positionals: 'REFERENCE',
  about: 'open a payment link for an order, and show its address',
  details: [
    'The same command again shows the link that it made, and makes no other.',
    'It ends with 75 where the link is not there after 10 s: settled goes on by itself. With 1 where the order was',
    'cancelled, the reference is in use, or the service refuses; with 78 where no API or public address is configured.',
    'For a link that you make at the service yourself: settled links reserve.',
  ],
  examples: ['settled orders open order-8001 --title "A chair" --amount 100.00'],
  options: {
    title: { value: 'TEXT', about: 'what the customer reads; needed' },
    amount: { value: 'AMOUNT', about: 'what the order costs, like 100.50; more than 25; needed' },
    currency: { value: 'CODE', about: 'ISO 4217, like BRL; the configured currency where it is left out' },
    description: { value: 'TEXT', about: 'more for the customer to read' },
    'expires-at': {
      value: 'TIME',
      about: 'when the link expires, like 2030-01-31T12:00:00Z; SETTLED_LINK_LIFETIME from now where it is left out',
    },
    'metadata-file': { value: 'FILE', about: 'a file with a JSON object for the service to keep' },
    'callback-url': { value: 'URL', about: 'where the customer is sent after paying' },
  },
  async run({ first: reference, options, server }) {
    const { title, amount, currency, description } = options;
    if (title === undefined) throw new UsageError('`settled orders open` needs --title TEXT.');
    if (amount === undefined) throw new UsageError('`settled orders open` needs --amount AMOUNT.');
    const answer = await server().post<OpenAnswer>('/v1/orders', {
      reference,
      title,
      amount,
      currency,
      description,
      expiresAt: options['expires-at'],
      metadata: readMetadata(options['metadata-file']),
      callbackUrl: options['callback-url'],
    });
    const lines = orderLines(answer.order);
    if (answer.order.link !== null) return { data: answer, lines };
    const later = [
      `The link is not there yet. ${answer.opening?.detail ?? ''}`,
      `settled goes on by itself: give the same command again, or see settled why ${shellWord(reference)}`,
    ];
    return { data: answer, lines: [...later, '', ...lines], exit: EXIT.tryAgain };
  },
});

function readMetadata(file: string | undefined): unknown {
  if (file === undefined) return undefined;
  try {
    return parseJsonText(readGivenFile('metadata-file', file).toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--metadata-file ${file} holds no JSON: ${(error as Error).message}.`);
  }
}

export const ordersAdopt = defineCommand({
  name: 'orders adopt',
  positionals: 'REFERENCE',
  about: 'give an order a link that exists at the service: one that settled did not make, or cannot find',
  details: [
    'The link must ask for the money of the order. Where settled did not ask for it itself, nobody may have begun to pay',
    "it; its signing secret is not settled's then: its webhooks are refused, and settled asks the service about it.",
    'It ends with 0 once the order has the link, with 1 where it cannot have it, 66 where there is no such order, 75 where',
    'the service cannot be asked now, and 78 where no API is configured.',
  ],
  options: { id: { value: 'ID', about: "the link's id at the service; needed" } },
  async run({ first: reference, options: { id }, server }) {
    if (id === undefined) throw new UsageError('`settled orders adopt` needs --id ID.');
    const path = `${orderPath(reference)}/adopt`;
    const answer = await server().post<{ order: OrderDocument; note: string }>(path, { id });
    return { data: answer, lines: [answer.note, '', ...orderLines(answer.order)] };
  },
});

type CheckAnswer = { order: OrderDocument; service: { linkStatus: string; paymentStatus: string | null } };

export const ordersCheck = defineCommand({
  name: 'orders check',
  positionals: 'REFERENCE',
  about: 'ask the service about the link of an order now, and settle what it says',
  details: [
    'It ends with 0 once the answer is settled, whatever it says; with 66 where there is no such order; with 75 where the',
    'service cannot be asked now, the link is still being opened, or the service has none; with 78 where no API is',
    'configured.',
  ],
  options: {},
  async run({ first: reference, server }) {
    const answer = await server().post<CheckAnswer>(`${orderPath(reference)}/check`);
    const { linkStatus, paymentStatus } = answer.service;
    const said = `The service says: the link is ${linkStatus}, its paymentStatus ${paymentStatus ?? 'not named'}.`;
    return { data: answer, lines: [said, '', ...orderLines(answer.order)] };
  },
});

export const ordersCancel = defineCommand({
  name: 'orders cancel',
  positionals: 'REFERENCE',
  about: 'cancel an order that nobody pays; the service is asked first',
  details: [
    'Its link stays open at the service until it expires: what is paid on it is held for a person.',
    'It ends with 0 once the order is cancelled, now or before; with 1 where it is paid, being paid, held, refunded or',
    'disputed; with 66 where there is no such order; with 75 where the service cannot be asked now, or may have a link',
    'that is still being opened; with 78 where no API is configured.',
  ],
  options: {},
  async run({ first: reference, server }) {
    const answer = await server().post<{ order: OrderDocument }>(`${orderPath(reference)}/cancel`);
    const { order } = answer;
    const payable =
      order.link === null || order.link.status === 'EXPIRED'
        ? []
        : [
            'The link stays payable at the service until it expires: money that comes all the same is held for a person.',
            '',
          ];
    return { data: answer, lines: [...payable, ...orderLines(order)] };
  },
});
