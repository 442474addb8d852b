import type { OrderDocument } from '../domain/notice.ts';
import { UsageError } from './arguments.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { readGivenFile } from './links.ts';
import { orderLines, orderPath } from './orders.ts';

export const ordersOpen = defineCommand({
  name: 'orders open',
  positionals: 'REFERENCE',
  about: 'open a payment link for an order, and show its address',
  details: [
    'The same command again shows the link that it made, and makes no other.',
    'It ends with 75 where the link is not there after 10 s: settled goes on by itself.',
  ],
  options: {
    title: { value: 'TEXT', about: 'what the customer reads; needed' },
    amount: { value: 'AMOUNT', about: 'what the order costs, like 100.50; more than 25; needed' },
    currency: {
      value: 'CODE',
      about: 'ISO 4217, like BRL; the configured currency where it is left out',
    },
    description: { value: 'TEXT', about: 'more for the customer to read' },
    'expires-at': {
      value: 'TIME',
      about:
        'when the link expires, like 2030-01-31T12:00:00Z; SETTLED_LINK_LIFETIME from now where it is left out',
    },
    'metadata-file': { value: 'FILE', about: 'a file with a JSON object for the service to keep' },
    'callback-url': { value: 'URL', about: 'where the customer is sent after paying' },
  },
  async run({ first: reference, options, server }) {
    const { title, amount, currency, description } = options;
    if (title === undefined) throw new UsageError('`settled orders open` needs --title TEXT.');
    if (amount === undefined) throw new UsageError('`settled orders open` needs --amount AMOUNT.');
    const answer = await server().post<{ order: OrderDocument }>('/v1/orders', {
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
    const later = `The link is not there yet. settled goes on by itself: give the same command again, or see settled why ${reference}`;
    return { data: answer, lines: [later, '', ...lines], exit: EXIT.tryAgain };
  },
});

function readMetadata(file: string | undefined): unknown {
  if (file === undefined) return undefined;
  try {
    return JSON.parse(readGivenFile('metadata-file', file).toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--metadata-file ${file} holds no JSON: ${(error as Error).message}.`);
  }
}

export const ordersAdopt = defineCommand({
  name: 'orders adopt',
  positionals: 'REFERENCE',
  about: 'give an order the link that has its reference at the service, but that settled did not make',
  details: [
    'The link must ask for the money of the order, and nobody may have begun to pay it.',
    "Its signing secret is not settled's: its webhooks are refused, and settled asks the service about it.",
  ],
  options: { id: { value: 'ID', about: "the link's id at the service; needed" } },
  async run({ first: reference, options: { id }, server }) {
    if (id === undefined) throw new UsageError('`settled orders adopt` needs --id ID.');
    const path = `${orderPath(reference)}/adopt`;
    const answer = await server().post<{ order: OrderDocument; note: string }>(path, { id });
    return { data: answer, lines: [answer.note, '', ...orderLines(answer.order)] };
  },
});

type CheckAnswer = {
  order: OrderDocument;
  service: { linkStatus: string; paymentStatus: string | null };
};

export const ordersCheck = defineCommand({
  name: 'orders check',
  positionals: 'REFERENCE',
  about: 'ask the service about the link of an order now, and settle what it says',
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
  details: ['Its link stays open at the service until it expires: what is paid on it is held for a person.'],
  options: {},
  async run({ first: reference, server }) {
    const answer = await server().post<{ order: OrderDocument }>(`${orderPath(reference)}/cancel`);
    return { data: answer, lines: orderLines(answer.order) };
  },
});
