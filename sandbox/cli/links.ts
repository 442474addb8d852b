import { type Command, defineCommand, type Options, type Report } from './command.ts';
import { type Control, connect, URL_OPTION } from './control.ts';
import { type DeliveryRow, deliveryTable } from './deliveries.ts';
import { UsageError } from './exit.ts';
import { record, table } from './table.ts';

type LinkDetails = {
  id: string;
  externalReference: string | null;
  amount: number;
  currency: string;
  status: string;
  paymentStatus: string;
  url: string;
  payments: { id: string; status: string }[];
};

export const links = defineCommand({
  name: 'links',
  positional: '[LINK]',
  about: 'list the links, or show one with its payments and deliveries',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const control = connect(options.url);
    if (first !== '') return state(control, await control.get(`/links/${encodeURIComponent(first)}`));
    const found: { links: LinkDetails[]; total: number } = await control.get('/links');
    const rows = found.links.map(({ id, externalReference, amount, currency, status, paymentStatus }) => [
      id,
      externalReference,
      `${amount} ${currency}`,
      status,
      paymentStatus,
    ]);
    const headings = ['link', 'reference', 'amount', 'status', 'payment status'];
    return { data: found, lines: table(headings, rows, 'There are no links.') };
  },
});

export const pay = defineCommand({
  name: 'pay',
  positional: 'LINK',
  about: 'pay a link, and show what the receiver answered',
  options: {
    method: { value: 'METHOD', about: 'PIX or CREDIT_CARD; default PIX' },
    installments: { value: 'N', about: 'instalments of a card, 1 to 12; default 1' },
    pending: { about: 'start the payment and leave it pending' },
    ...URL_OPTION,
  },
  run: ({ first, options: { method, installments, pending, url } }) => {
    if (installments !== undefined && !/^\d{1,2}$/.test(installments)) {
      throw new UsageError(`--installments is "${installments}". Write a whole number from 1 to 12.`);
    }
    return change(connect(url), first, 'pay', {
      ...(method === undefined ? {} : { method }),
      ...(installments === undefined ? {} : { installments: Number(installments) }),
      complete: pending !== true,
    });
  },
});

export const refund = changeCommand('refund', 'refund the payment of a link');
export const dispute = changeCommand('dispute', 'dispute the payment of a link');
export const expire = changeCommand('expire', 'let the time of a link be over');

function changeCommand(name: string, about: string): Command {
  const options: Options = URL_OPTION;
  return defineCommand({
    name,
    positional: 'LINK',
    about,
    options,
    run: ({ first, options }) => change(connect(options.url as string | undefined), first, name, {}),
  });
}

/** Changes a link, waits until nobody is to be told any more, and shows it. */
async function change(control: Control, link: string, name: string, body: object): Promise<Report> {
  const details: LinkDetails = await control.post(`/links/${encodeURIComponent(link)}/${name}`, body);
  await control.post('/idle');
  return state(control, details);
}

async function state(control: Control, link: LinkDetails): Promise<Report> {
  const path = `/deliveries?link=${encodeURIComponent(link.id)}`;
  const { deliveries }: { deliveries: DeliveryRow[] } = await control.get(path);
  const lines = record([
    ['link', link.id],
    ['reference', link.externalReference],
    ['amount', `${link.amount} ${link.currency}`],
    ['status', link.status],
    ['payment status', link.paymentStatus],
    ['payments', link.payments.map(({ id, status }) => `${id} ${status}`).join(', ')],
    ['page', link.url],
  ]);
  return { data: { link, deliveries }, lines: [...lines, '', ...deliveryTable(deliveries)] };
}
