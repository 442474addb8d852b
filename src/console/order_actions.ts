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

/** A line of advice: its command stands out, and is followed by what does the same here. */
export function nextStep(view: View, order: OrderDocument, line: string): Html {
  const at = line.search(/settled (orders|events|notices|attention|links|rejections|doctor)\b/);
  if (at < 0) return html`${line}`;
  const [advice, command] = [line.slice(0, at), line.slice(at)];
  const does = mayDo(view, 'operator') ? actionFor(view, order, command) : null;
  return html`${advice}<code>${command}</code>${does === null ? null : html` ${does}`}`;
}

/** What does here what a command does; null if no form of the page does. */
function actionFor(view: View, { reference }: OrderDocument, command: string): Html | null {
  const word = shellWord(reference);
  const button = (action: string, text: string) => actionButton(view, { action, button: text });
  if (command === `settled orders check ${word}`) return button(`/v1${orderPath(reference)}/check`, 'Ask now');
  if (command.startsWith(`settled orders resolve ${word} --accept`)) return html`<a href="#accept">Accept…</a>`;
  if (command.startsWith(`settled orders resolve ${word} --reject`)) return html`<a href="#reject">Reject…</a>`;
  const [, events] = /settled events replay ((?:\d+ ?)+)$/.exec(command) ?? [];
  const [, notice] = /^settled notices resend (msg_[\w-]+)$/.exec(command) ?? [];
  const [, matter] = /^settled attention end (\d+) --reason TEXT$/.exec(command) ?? [];
  if (notice !== undefined) return button(`/v1/notices/${notice}/resend`, 'Send it again');
  if (matter !== undefined) return html`<a href="#end-${matter}">End it…</a>`;
  if (events === undefined) return null;
  const ids = events.trim().split(' ');
  return html`${ids.map((id) => html`${button(`/v1/events/${id}/replay`, `Settle event ${id} again`)} `)}`;
}
