import { readFileSync } from 'node:fs';
import type { OrderDocument } from '../domain/notice.ts';
import { UsageError } from './arguments.ts';
import { defineCommand, type Report } from './command.ts';
import { record } from './layout.ts';

type LinkAnswer = { link: { id: string | null; webhookUrl: string; webhookSecret?: string }; order: OrderDocument };

const MONEY = {
  amount: { value: 'AMOUNT', about: 'what the order costs, like 100.50; needed' },
  currency: { value: 'CODE', about: 'ISO 4217, like BRL; the configured currency where it is left out' },
} as const;

export const linksAdd = defineCommand({
  name: 'links add',
  positionals: 'REFERENCE',
  about: 'register a payment link that exists, bind the id of a reserved one, or correct a signing secret',
  details: [
    'A secret on the command line can be seen by other users of the machine: prefer --secret-file.',
    'A reserved link keeps its own secret, so binding its id needs none.',
  ],
  examples: ['settled links add order-8001 --amount 100.00 --id pl_8001 --secret-file secret.txt'],
  options: {
    ...MONEY,
    id: { value: 'ID', about: "the link's id at the service; needed" },
    'secret-file': { value: 'FILE', about: "a file that holds the link's webhookSecret" },
    secret: { value: 'SECRET', about: "the link's webhookSecret" },
  },
  async run({ first: reference, options, server }) {
    const { amount, currency, id } = options;
    if (amount === undefined) throw new UsageError('`settled links add` needs --amount AMOUNT.');
    if (id === undefined) {
      throw new UsageError(
        '`settled links add` needs --id ID. To get a webhookUrl for a link that is still to be made: settled links reserve',
      );
    }
    const webhookSecret = readSecret(options);
    const answer = await server().post<LinkAnswer>('/v1/links', {
      reference,
      amount,
      ...(currency === undefined ? {} : { currency }),
      id,
      ...(webhookSecret === undefined ? {} : { webhookSecret }),
    });
    return report(answer, [`Link ${answer.link.id} belongs to order ${answer.order.reference}.`]);
  },
});

export const linksReserve = defineCommand({
  name: 'links reserve',
  positionals: 'REFERENCE',
  about: 'get the webhookUrl and the webhookSecret for a link that you make at the service',
  details: ['The secret is shown this once, and never again.'],
  examples: ['settled links reserve order-8001 --amount 100.00'],
  options: MONEY,
  async run({ first: reference, options: { amount, currency }, server }) {
    if (amount === undefined) throw new UsageError('`settled links reserve` needs --amount AMOUNT.');
    const body = { reference, amount, ...(currency === undefined ? {} : { currency }) };
    const answer = await server().post<LinkAnswer>('/v1/links', body);
    const isNew = answer.link.webhookSecret !== undefined;
    return report(
      answer,
      isNew
        ? [
            'Give both to the service when you create the link; one that exists keeps its own. The secret is shown this once.',
          ]
        : [
            `Order ${reference} has its link already. Its secret was shown when it was reserved, and is not shown again.`,
          ],
    );
  },
});

function report(answer: LinkAnswer, message: readonly string[]): Report {
  const { link, order } = answer;
  const lines = record([
    ['order', order.reference],
    ['amount', `${order.amount} ${order.currency}`],
    ['state', order.state],
    ['link', link.id],
    ['webhookUrl', link.webhookUrl],
    ...(link.webhookSecret === undefined ? [] : [['webhookSecret', link.webhookSecret] as const]),
  ]);
  return { data: answer, lines: [...message, '', ...lines] };
}

/** A signing secret from a file, without the line end that files have, or from the command line. */
export function readSecret(options: { secret?: string; 'secret-file'?: string }): string | undefined {
  const { secret, 'secret-file': file } = options;
  if (secret !== undefined && file !== undefined) {
    throw new UsageError('--secret and --secret-file are both given: give one of them.');
  }
  if (file === undefined) return secret;
  return readGivenFile('secret-file', file)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

/** Reads a file that was named on the command line. */
export function readGivenFile(option: string, path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new UsageError(`--${option} ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
