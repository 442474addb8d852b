import type { Report } from '../../src/terminal/command.ts';
import { UsageError } from '../../src/terminal/failure.ts';
import { type Columns, record, table } from '../../src/terminal/table.ts';
import { PAYMENT_MONEY } from '../model.ts';
import { SWITCHES } from '../options.ts';
import type { Control } from './client.ts';
import { defineCommand, type SandboxCommand } from './client.ts';
import { type DeliveryRow, deliveryLines } from './deliveries.ts';

type LinkDetails = {
  id: string;
  externalReference: string | null;
  amount: number;
  currency: string;
  status: string;
  paymentStatus: string;
  url: string;
  shortUrl: string;
  webhookUrl: string | null;
  payments: { id: string; status: string }[];
};

export const links = defineCommand({
  usage: 'links [LINK]',
  about: 'list the links, or show one with its payments and deliveries',
  run: async ({ first, control: connect }) => {
    const control = connect();
    if (first !== '') return state(control, await control.get(`/links/${encodeURIComponent(first)}`));
    const found: { links: LinkDetails[]; total: number } = await control.get('/links');
    return { data: found, lines: table(found.links, LINKS, { nothing: 'There are no links.' }) };
  },
});

const LINKS: Columns<LinkDetails> = {
  link: 'id',
  'short code': shortCode,
  reference: 'externalReference',
  amount: moneyOf,
  status: 'status',
  'payment status': 'paymentStatus',
};

function shortCode({ shortUrl }: LinkDetails): string {
  return shortUrl.split('/').at(-1) ?? '';
}

export const pay = defineCommand({
  usage: 'pay LINK',
  about: 'pay a link, and show what the receiver answered; a payment that is pending is completed',
  options: {
    method: { value: 'METHOD', choices: ['PIX', 'CREDIT_CARD'], about: 'how it is paid, the first by default' },
    installments: { value: 'N', about: 'instalments of a card, 1 to 12; default 1' },
    money: { value: 'MONEY', choices: PAYMENT_MONEY, about: 'what it names, the first by default' },
    pending: { about: 'start the payment and leave it pending' },
  },
  run: async ({ first, options: { method, installments, money, pending }, control: connect }) => {
    if (installments !== undefined && !/^\d{1,2}$/.test(installments)) {
      throw new UsageError(`--installments is "${installments}". Write a whole number from 1 to 12.`);
    }
    const control = connect();
    const isChosen = [method, installments, money].some((given) => given !== undefined) || pending === true;
    const link: LinkDetails = await control.get(`/links/${encodeURIComponent(first)}`);
    const hasPending = link.status === 'ACTIVE' && link.payments.some(({ status }) => status === 'PENDING');
    if (hasPending && !isChosen) return change(control, first, 'complete', {});
    return change(control, first, 'pay', {
      ...(method === undefined ? {} : { method }),
      ...(money === undefined ? {} : { money }),
      ...(installments === undefined ? {} : { installments: Number(installments) }),
      complete: pending !== true,
    });
  },
});

export const refund = defineCommand({
  usage: 'refund LINK',
  about: 'refund the payment of a link',
  options: { amount: { value: 'AMOUNT', about: 'only this part of it, listed as the switch partial-refund has it' } },
  run: ({ first, options: { amount }, control }) => {
    if (amount !== undefined && !/^\d{1,12}(\.\d{1,2})?$/.test(amount)) {
      throw new UsageError(`--amount is "${amount}". Write a number with at most two decimals, such as 30.50.`);
    }
    return change(control(), first, 'refund', amount === undefined ? {} : { amount: Number(amount) });
  },
});
export const complete = changeCommand('complete', 'complete the pending payment of a link');
export const dispute = changeCommand('dispute', 'dispute the payment of a link');
export const win = changeCommand(
  'win',
  'let the merchant win the dispute of a link: its payment is completed again; sends no event',
);
export const expire = changeCommand('expire', 'let a link expire now');
export const disable = changeCommand('disable', 'switch a link off: INACTIVE');
export const enable = changeCommand('enable', 'switch a link on: ACTIVE, so that it can be paid again');

function changeCommand(name: string, about: string): SandboxCommand {
  return defineCommand({
    usage: `${name} LINK`,
    about,
    run: ({ first, control }) => change(control(), first, name, {}),
  });
}

/** Changes a link, waits until its events are delivered, and shows it. */
async function change(control: Control, link: string, name: string, body: object): Promise<Report> {
  const details: LinkDetails = await control.post(`/links/${encodeURIComponent(link)}/${name}`, body);
  await control.post('/idle');
  const { data, lines } = await state(control, details);
  const note = await noEventNote(control, name);
  return { data, lines: note === null ? lines : [...lines, '', note] };
}

/** Why the change sent no event; null if it did. */
async function noEventNote(control: Control, change: string): Promise<string | null> {
  const { environment, silences } = await control.get('/');
  if (environment === 'sandbox') {
    return 'No event was sent: in environment `sandbox` only the panel on the page of the link sends events.';
  }
  const isReversal = change === 'refund' || change === 'dispute';
  if (!isReversal || silences['refund-event'] !== 'none') return null;
  const others = SWITCHES['refund-event'].values.filter((value) => value !== 'none').join(' or ');
  return `No event was sent: refund-event is none. To send them: settled sandbox silences refund-event=VALUE, with ${others}`;
}

/** The service's amounts have two decimals. */
function moneyOf({ amount, currency }: LinkDetails): string {
  return `${amount.toFixed(2)} ${currency}`;
}

async function state(control: Control, link: LinkDetails): Promise<Report> {
  const path = `/deliveries?link=${encodeURIComponent(link.id)}`;
  const { deliveries }: { deliveries: DeliveryRow[] } = await control.get(path);
  const lines = record({
    link: link.id,
    reference: link.externalReference,
    amount: moneyOf(link),
    status: link.status,
    'payment status': link.paymentStatus,
    payments: link.payments.map(({ id, status }) => `${id} ${status}`).join(', '),
    page: link.url,
    'short code': shortCode(link),
  });
  const sent =
    link.webhookUrl === null ? ['The link has no webhookUrl, so its events are not sent.'] : deliveryLines(deliveries);
  return { data: { link, deliveries }, lines: [...lines, '', ...sent] };
}
