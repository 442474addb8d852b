import type { OrderDocument } from '../domain/notice.ts';
import { isOpen } from '../domain/order.ts';
import { shellWord } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { actionButton, actionForm } from './components.ts';
import { moneyText } from './values.ts';
import { mayDo, orderPath, type View } from './view.ts';

/** What a person can do about an order, each with what it will do. */
export function orderActions(view: View, order: OrderDocument, { canAsk }: { canAsk: boolean }): Html | null {
  if (!mayDo(view, 'operator')) return null;
  const actions = [
    ...(order.state === 'held' ? [resolveForm(view, order, 'accept'), resolveForm(view, order, 'reject')] : []),
    ...(isOpen(order.state) ? [cancelForm(view, order)] : []),
  ];
  const ask = canAsk ? checkButton(view, order) : null;
  if (actions.length === 0 && ask === null) return null;
  return html`<section id="actions"><h2>What you can do</h2>${actions.length === 0 ? null : html`<div class="cards">${actions}</div>`}${ask === null ? null : html`<p>${ask}</p>`}</section>`;
}

function checkButton(view: View, { reference }: OrderDocument): Html {
  return actionButton(view, { action: `/v1${orderPath(reference)}/check`, button: 'Ask the service now' });
}

const VERBS = { accept: 'Accept the money', reject: 'Reject it' } as const;

function resolveForm(view: View, order: OrderDocument, decision: keyof typeof VERBS): Html {
  return actionForm(view, {
    id: decision,
    action: `/v1${orderPath(order.reference)}/resolve`,
    summary: VERBS[decision],
    preview: PREVIEWS[decision](view, order),
    button: VERBS[decision],
    ...(decision === 'reject' ? { isDanger: true as const } : {}),
    reason: 'required',
    values: { decision },
  });
}

const PREVIEWS = {
  accept: (view: View, order: OrderDocument): HtmlValue =>
    `The order becomes paid by what came (${captured(view, order)}; it asks ${moneyText(view.locale, order.amount, order.currency)}). ` +
    'The ledger stays as it is. settled tells the shop that the order is paid.',
  reject: (view: View, order: OrderDocument): HtmlValue =>
    `The order becomes cancelled, and ${captured(view, order)} is owed back to the customer: you refund it in the service's panel. ` +
    'settled tells the shop that the order is cancelled.',
};

function captured(view: View, { paymentsTotal: { sums } }: OrderDocument): string {
  const there = sums.filter(({ balance }) => Number(balance) !== 0);
  if (there.length === 0) return 'nothing that was counted';
  return there.map(({ balance, currency }) => moneyText(view.locale, balance, currency)).join(' and ');
}

function cancelForm(view: View, { reference }: OrderDocument): Html {
  return actionForm(view, {
    id: 'cancel',
    action: `/v1${orderPath(reference)}/cancel`,
    summary: 'Cancel the order',
    preview:
      'settled asks the service first, and cancels only if no payment has begun. The link stays payable until it expires: what is ' +
      'still paid on it is held for a person. settled tells the shop that the order is cancelled.',
    button: 'Cancel the order',
    isDanger: true,
    reason: 'none',
  });
}

/** A line of advice, followed by the button that does what its command does. */
export function nextStep(view: View, { reference }: OrderDocument, line: string): HtmlValue {
  if (!mayDo(view, 'operator')) return line;
  const word = shellWord(reference);
  if (line.includes(`settled orders check ${word}`)) {
    return html`${line} ${actionButton(view, { action: `/v1${orderPath(reference)}/check`, button: 'Ask now' })}`;
  }
  if (line.includes(`settled orders resolve ${word} --accept`)) return html`${line} <a href="#accept">Accept…</a>`;
  if (line.includes(`settled orders resolve ${word} --reject`)) return html`${line} <a href="#reject">Reject…</a>`;
  const [, events] = /settled events replay ((?:\d+ ?)+)$/.exec(line) ?? [];
  const [, notice] = /settled notices resend (msg_\w+)$/.exec(line) ?? [];
  const [, matter] = /settled attention end (\d+) --reason TEXT$/.exec(line) ?? [];
  if (notice !== undefined)
    return html`${line} ${actionButton(view, { action: `/v1/notices/${notice}/resend`, button: 'Send it again' })}`;
  if (matter !== undefined) return html`${line} <a href="#end-${matter}">End it…</a>`;
  if (events === undefined) return line;
  return html`${line} ${events
    .trim()
    .split(' ')
    .map((id) => actionButton(view, { action: `/v1/events/${id}/replay`, button: `Settle event ${id} again` }))}`;
}
