import type { Payment } from '../model.ts';
import { type Html, html, icon, page, safeHref } from './layout.ts';
import { panel } from './panel.ts';
import { chooseMethod, pendingCard, pendingPix } from './payment.ts';
import { methodName, money, pageState, time, type View } from './view.ts';

/** A link's page: the order on one side, the ways to pay or the outcome on the other. */
export function checkoutPage(view: View): string {
  const { link, environment, merchantName } = view;
  const state = pageState(view);
  const body = html`<main class="checkout" data-link="${link.id}" data-state="${state}">
<div class="sheet" id="sheet">
${order(view)}
<section class="pay" aria-live="polite">
${view.problem !== null && html`<p class="problem" role="alert">${view.problem}</p>`}
${side(view)}
</section>
</div>
${environment === 'sandbox' && panel(view)}
</main>
<footer>A local twin of a payment-link service, in its environment <code>${environment}</code> · link <code>${link.id}</code></footer>`;
  const goesTo = state === 'receipt' && environment === 'production' ? safeHref(link.callbackUrl) : null;
  return page({ title: `${TITLES[state]} · ${merchantName}`, body, goesTo });
}

const TITLES = {
  quote: 'Pay',
  pending: 'Payment pending',
  receipt: 'Payment complete',
  paid: 'Already paid',
  expired: 'Link expired',
  closed: 'Link closed',
} as const;

function order(view: View): Html {
  const { link, merchantName } = view;
  const state = pageState(view);
  const isPayable = state === 'quote' || state === 'pending';
  const isDone = state === 'receipt' || state === 'paid';
  return html`<section class="order" aria-label="Your order">
<p class="merchant"><span class="monogram" aria-hidden="true">${merchantName.slice(0, 1)}</span>${merchantName}</p>
<h1><bdi>${link.title}</bdi></h1>
<p class="amount">${money(link.amount, link.currency)}</p>
${link.description !== null && html`<p class="description"><bdi>${link.description}</bdi></p>`}
<dl>
${link.externalReference !== null && html`<div><dt>Reference</dt><dd><bdi>${link.externalReference}</bdi></dd></div>`}
${!isDone && html`<div><dt>${link.status === 'EXPIRED' ? 'Expired' : 'Pay until'}</dt><dd>${expiry(link.expiresAtMs)}</dd></div>`}
</dl>
${isPayable && html`<p class="once">This link can be paid once.</p>`}
</section>`;
}

function expiry(expiresAtMs: number | null): Html {
  if (expiresAtMs === null) return html`no time limit`;
  return html`<time datetime="${new Date(expiresAtMs).toISOString()}">${time(expiresAtMs)}</time>`;
}

function side(view: View): Html {
  switch (pageState(view)) {
    case 'quote':
      return chooseMethod(view);
    case 'pending':
      return view.payment?.method === 'PIX' ? pendingPix(view.link, view.payment) : pendingCard(view);
    case 'receipt':
      return receipt(view, view.payment as Payment);
    case 'paid':
      return paid(view);
    case 'expired':
      return ended('late', 'This link has expired', 'It can no longer be paid. Ask the seller for a new link.');
    case 'closed':
      return ended('closed', 'This link is closed', 'It was used or switched off. Ask the seller for a new link.');
  }
}

function receipt({ link, environment }: View, payment: Payment): Html {
  const callback = environment === 'production' ? safeHref(link.callbackUrl) : null;
  return html`<div class="message">${icon('done')}<h2>Payment complete</h2>
<p>Thank you. ${money(payment.totalBRL, 'BRL')} was paid by ${methodName(payment)}.</p></div>
${facts(payment)}
${
  callback !== null &&
  html`<p class="onward" role="status">Taking you back to <b>${new URL(callback).host}</b> …</p>
<a class="button" href="${callback}" rel="noreferrer">Return to the seller now</a>`
}`;
}

function paid({ link, payments, environment }: View): Html {
  const payment = payments.findLast(({ status }) => status !== 'PENDING') as Payment;
  const callback = environment === 'production' ? safeHref(link.callbackUrl) : null;
  const text = {
    PENDING: 'Nothing more is due.',
    COMPLETED: 'Nothing more is due.',
    REFUNDED: 'The payment has been refunded.',
    DISPUTED: 'The payment is now disputed.',
  }[payment.status];
  return html`<div class="message">${icon('done')}<h2>This link is already paid</h2><p>${text}</p></div>
${facts(payment)}
${callback !== null && html`<a class="button quiet" href="${callback}" rel="noreferrer">Return to the seller</a>`}`;
}

const TONES = { PENDING: 'wait', COMPLETED: 'good', REFUNDED: 'wait', DISPUTED: 'bad' } as const;

function facts(payment: Payment): Html {
  const { completedAtMs } = payment;
  return html`<dl class="facts">
<div><dt>Total</dt><dd>${money(payment.totalBRL, 'BRL')}</dd></div>
<div><dt>Paid by</dt><dd>${methodName(payment)}</dd></div>
${completedAtMs !== null && html`<div><dt>Paid on</dt><dd>${time(completedAtMs)}</dd></div>`}
<div><dt>Status</dt><dd><span class="badge ${TONES[payment.status]}">${payment.status}</span></dd></div>
<div><dt>Payment</dt><dd><code>${payment.id}</code></dd></div>
</dl>`;
}

function ended(sign: 'late' | 'closed', title: string, text: string): Html {
  return html`<div class="message">${icon(sign)}<h2>${title}</h2><p>${text}</p></div>`;
}
