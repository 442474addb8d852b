import { amountIn } from '../domain/money.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { inNumber } from '../explain/glossary.ts';
import { type Report, readGivenFile } from '../terminal/command.ts';
import { record } from '../terminal/table.ts';
import { defineCommand } from './command.ts';

/** The commands about links: those that you make at the service yourself, and asking the service about every link. */

type LinkAnswer = { link: { id: string | null; webhookUrl: string; webhookSecret?: string }; order: OrderDocument };

const MONEY = {
  amount: { value: 'AMOUNT', needed: true, about: 'what the order costs, like 100.50' },
  currency: { value: 'CODE', about: 'ISO 4217, like BRL; the configured currency if left out' },
} as const;

/** A link's signing secret: never on a command line, which other users of the machine can see. */
export const SECRET_FILE = { value: 'FILE', about: "a file that holds the link's webhookSecret; - is standard input" };

export const linksAdd = defineCommand({
  usage: 'links add REFERENCE',
  about: 'register a payment link that exists, bind the id of a reserved one, or correct a signing secret',
  details: ['A reserved link keeps its own secret, so binding its id needs none.'],
  examples: ['settled links add order-8001 --amount 100.00 --id pl_8001 --secret-file secret.txt'],
  options: {
    ...MONEY,
    id: {
      value: 'ID',
      needed: 'To get a webhookUrl for a link that you have not made yet: settled links reserve',
      about: "the link's id at the service",
    },
    'secret-file': SECRET_FILE,
  },
  async run({ first: reference, options, server }) {
    const { amount, currency, id } = options;
    const body = { reference, amount, currency, id, webhookSecret: readSecret(options['secret-file']) };
    const answer = await server().post<LinkAnswer>('/v1/links', body);
    return report(answer, `Link ${answer.link.id} belongs to order ${answer.order.reference}.`);
  },
});

/** Without the line end that files have. */
export function readSecret(file: string | undefined): string | undefined {
  return file === undefined
    ? undefined
    : readGivenFile('secret-file', file)
        .toString('utf8')
        .replace(/\r?\n$/, '');
}

export const linksReserve = defineCommand({
  usage: 'links reserve REFERENCE',
  about: 'get the webhookUrl and the webhookSecret for a link that you make at the service',
  details: ['The secret is shown this once, and never again.'],
  examples: ['settled links reserve order-8001 --amount 100.00'],
  options: MONEY,
  async run({ first: reference, options: { amount, currency }, server }) {
    const answer = await server().post<LinkAnswer>('/v1/links', { reference, amount, currency });
    return report(
      answer,
      answer.link.webhookSecret === undefined
        ? `Order ${reference} has its link already. Its secret was shown when it was reserved, and is not shown again.`
        : 'Give both to the service when you create the link; one that exists keeps its own. ' +
            'The secret is shown this once.',
    );
  },
});

function report(answer: LinkAnswer, message: string): Report {
  const { link, order } = answer;
  const lines = record({
    order: order.reference,
    amount: amountIn(order),
    state: order.state,
    link: link.id,
    webhookUrl: link.webhookUrl,
    webhookSecret: link.webhookSecret,
  });
  return { data: answer, lines: [message, '', ...lines] };
}

type ReconcileAnswer = { dryRun: boolean; links: number; etaSeconds: number };

export const reconcile = defineCommand({
  usage: 'reconcile',
  about: 'ask the service about every link that can still be paid',
  details: [
    'settled asks at the pace of the API budget, and other requests go first; the command says how long it takes.',
    "It looks for reserved links whose id is not known in the service's list. About one order: settled orders check ORDER.",
    '`settled tail` shows the answers as they are settled, and `settled stats` how many checks wait.',
  ],
  examples: ['settled reconcile --dry-run'],
  options: { 'dry-run': { about: 'only say how many requests it costs, and how long it takes' } },
  async run({ options: { 'dry-run': dryRun = false }, server }) {
    const answer = await server().post<ReconcileAnswer>('/v1/admin/reconcile', { dryRun });
    return { data: answer, lines: [sentence(answer)] };
  },
});

function sentence({ dryRun, links, etaSeconds }: ReconcileAnswer): string {
  if (links === 0) {
    const none = 'settled knows the id of no link that can still be paid.';
    return dryRun ? `${none} Nothing was done.` : `${none} The service's list is read for links that are not known.`;
  }
  const what = `${inNumber(links, 'link')}, with a request each: at most ${inNumber(Math.ceil(etaSeconds / 60), 'minute')}`;
  return dryRun ? `${what}. Nothing was done.` : `Asking about ${what}.`;
}
