import { createHash } from 'node:crypto';
import { INSTALLMENTS_MAX, type Link, type Payment, totalWithInterest } from '../model.ts';
import { type Html, html } from './layout.ts';
import type { View } from './view.ts';
import { methodName, money } from './view.ts';

/** Squares on a side of the decorative pattern, and of each of its corners. */
const SIDE = 25;
const EYE = 7;

/** PIX or card. In environment `sandbox`, which disables payments (spec section 1), the forms are shown disabled. */
export function chooseMethod({ link, environment }: View): Html {
  const isDisabled = environment === 'sandbox';
  return html`<h2>How would you like to pay?</h2>
${
  isDisabled &&
  html`<p class="notice">Payments are disabled in the environment <code>sandbox</code>. Simulate them in the panel below.</p>`
}
<fieldset class="choice"${isDisabled && html` disabled`}>
<legend class="unseen">Payment method</legend>
<div class="methods">
<input type="radio" name="choice" id="choose-pix" value="PIX" checked>
<label for="choose-pix"><b>PIX</b><small>At once, no interest</small></label>
<input type="radio" name="choice" id="choose-card" value="CREDIT_CARD">
<label for="choose-card"><b>Credit card</b><small>Up to ${INSTALLMENTS_MAX} instalments</small></label>
</div>
${pixForm(link)}
${cardForm(link)}
</fieldset>`;
}

function pixForm(link: Link): Html {
  return html`<form class="for-pix" method="post" action="/pay/${link.id}/payments">
<input type="hidden" name="method" value="PIX">
<p class="hint">You get a code to copy into your bank’s app. Here a button plays the bank’s part.</p>
<div class="field"><label for="pix-name">Name <span>optional</span></label>
<input class="input" id="pix-name" name="name" maxlength="120" autocomplete="off"></div>
<div class="field"><label for="pix-email">E-mail <span>optional</span></label>
<input class="input" id="pix-email" name="email" type="email" maxlength="200" autocomplete="off"></div>
<button class="button">Get the PIX code · ${money(link.amount, link.currency)}</button>
</form>`;
}

/** The fields of the card's data have no name, so no browser sends them. */
function cardForm(link: Link): Html {
  return html`<form class="for-card" method="post" action="/pay/${link.id}/payments">
<input type="hidden" name="method" value="CREDIT_CARD">
<p class="hint">Any invented card will do. Its data stays in this browser: nothing of it is sent.
<button type="button" class="link" data-fill-card hidden>Fill in a test card</button></p>
<div class="field"><label for="card-number">Card number</label>
<input class="input" id="card-number" inputmode="numeric" autocomplete="off" required pattern="[0-9 ]{13,23}" maxlength="23"
  placeholder="0000 0000 0000 0000" title="13 to 19 digits, invented"></div>
<div class="field"><label for="card-name">Name on the card</label>
<input class="input" id="card-name" name="name" autocomplete="off" required maxlength="120" placeholder="MARIA TESTE"></div>
<div class="pair">
<div class="field"><label for="card-expiry">Expiry</label>
<input class="input" id="card-expiry" inputmode="numeric" autocomplete="off" required pattern="(0[1-9]|1[0-2])/[0-9]{2}" maxlength="5"
  placeholder="MM/YY" title="Month and year, as 12/34"></div>
<div class="field"><label for="card-cvc">CVC</label>
<input class="input" id="card-cvc" inputmode="numeric" autocomplete="off" required pattern="[0-9]{3,4}" maxlength="4" placeholder="000"
  title="3 or 4 digits"></div>
</div>
<div class="field"><label for="card-email">E-mail <span>optional</span></label>
<input class="input" id="card-email" name="email" type="email" maxlength="200" autocomplete="off"></div>
<div class="field"><label for="installments">Instalments</label>
<select class="input" id="installments" name="installments">
${Array.from({ length: INSTALLMENTS_MAX }, (_, at) => instalmentOption(link, at + 1))}
</select></div>
<dl class="sum"><div><dt>Interest</dt><dd data-interest>${money(0, 'BRL')}</dd></div>
<div class="total"><dt>Total</dt><dd data-total>${money(totalWithInterest(link.amount, 1), 'BRL')}</dd></div></dl>
<button class="button">Pay <span data-total>${money(totalWithInterest(link.amount, 1), 'BRL')}</span></button>
</form>`;
}

function instalmentOption({ amount }: Link, installments: number): Html {
  const total = totalWithInterest(amount, installments);
  const each = money(total / installments, 'BRL');
  const extra = installments === 1 ? 'no interest' : `${money(total, 'BRL')} in total`;
  return html`<option value="${installments}" data-total="${money(total, 'BRL')}" data-interest="${money(total - amount, 'BRL')}">${installments} × ${each} · ${extra}</option>
`;
}

/** Waits for the bank: a button plays its part. */
export function pendingPix(link: Link, payment: Payment): Html {
  return html`<h2>Pay with PIX</h2>
<p class="waiting" role="status"><span class="badge wait">PENDING</span> Waiting for your bank to confirm
<b>${money(payment.totalBRL, 'BRL')}</b>.</p>
<figure class="pix">${decoration(payment.id)}<figcaption>Decorative, not scannable</figcaption></figure>
<div class="field"><label for="pix-code">PIX code</label>
<div class="copy"><input class="input" id="pix-code" readonly value="${pixCode(payment)}">
<button type="button" class="button quiet beside" data-copy="pix-code" hidden>Copy</button></div></div>
<form method="post" action="/pay/${link.id}/complete">
<input type="hidden" name="payment" value="${payment.id}">
<button class="button">I have paid</button>
<p class="hint centred">Plays your bank’s part: the payment completes.</p>
</form>
<p class="centred"><a href="/pay/${link.id}">Choose another way to pay</a></p>`;
}

function pixCode({ id, totalBRL }: Payment): string {
  return `SANDBOX*NOT-A-PIX-CODE*${id}*BRL${totalBRL.toFixed(2)}`;
}

/** The page's script submits the form after a moment; without script there is a button. */
export function pendingCard({ link, payment }: View): Html {
  if (payment === null) return html``;
  return html`<div class="message"><div class="spinner" aria-hidden="true"></div>
<h2>Checking with the bank</h2>
<p role="status"><span class="badge wait">PENDING</span> ${methodName(payment)}, ${money(payment.totalBRL, 'BRL')}.
This takes a moment.</p></div>
<form method="post" action="/pay/${link.id}/complete" data-goes-on>
<input type="hidden" name="payment" value="${payment.id}">
<noscript><button class="button">Continue</button></noscript>
</form>`;
}

/** A square that looks like a QR code and contains nothing: no bank's app can read it. */
function decoration(text: string): Html {
  const bits = Array.from({ length: 3 }, (_, part) =>
    [...createHash('sha256').update(`${text}/${part}`).digest()].map((byte) => byte.toString(2).padStart(8, '0')),
  )
    .flat()
    .join('');
  const squares: string[] = [];
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const isDark = eyeAt(x, y) ?? bits[(y * SIDE + x) % bits.length] === '1';
      if (isDark) squares.push(`M${x} ${y}h1v1h-1z`);
    }
  }
  return html`<svg class="pattern" viewBox="-2 -2 ${SIDE + 4} ${SIDE + 4}" role="img" aria-label="A decorative pattern. It is not a QR code and cannot be scanned."><rect x="-2" y="-2" width="${SIDE + 4}" height="${SIDE + 4}" fill="#fff"/><path d="${squares.join('')}" fill="#1b2430"/></svg>`;
}

/** Whether a square is dark in one of the three corners that a QR code is known by; undefined elsewhere. */
function eyeAt(x: number, y: number): boolean | undefined {
  const [fromLeft, fromTop] = [Math.min(x, SIDE - 1 - x), Math.min(y, SIDE - 1 - y)];
  const isCorner = fromLeft <= EYE && fromTop <= EYE && !(x > SIDE / 2 && y > SIDE / 2);
  if (!isCorner) return undefined;
  if (fromLeft === EYE || fromTop === EYE) return false;
  const ring = Math.max(Math.abs(fromLeft - 3), Math.abs(fromTop - 3));
  return ring !== 2;
}
