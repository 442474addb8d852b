import {
  aggregateStatus,
  EVENT_KINDS,
  LINK_STATUSES,
  type Link,
  PAYMENT_MONEY,
  PAYMENT_STATUSES,
  type PaymentMoney,
} from '../model.ts';
import { type Html, html } from './layout.ts';
import type { View } from './view.ts';

const EVENT_WORDS = {
  'payment_link.created': 'The link was created',
  'payment_link.status_changed': 'Its status changed',
  'payment_link.payment_status_changed': 'Its payment status changed',
} as const;

const MONEY_WORDS: Readonly<Record<PaymentMoney, string>> = {
  asked: 'what the link asks',
  less: 'less',
  more: 'more, by the link too',
  interest: 'more, as interest',
  'other-currency': 'another currency',
};

/**
 * Simulates payments and events, which environment `sandbox` does not have (spec section 1). The page's script drives
 * it.
 */
export function panel(view: View): Html {
  const { link } = view;
  return html`<section class="panel card" id="panel" aria-labelledby="panel-title" data-panel="${link.id}">
<header><h2 id="panel-title">Sandbox panel</h2>
<p>In this environment, the sandbox sends nothing until you tell it to. Change what the API answers, then send the event that reports it.</p></header>
<noscript><p class="problem">The panel needs JavaScript.</p></noscript>
<div class="controls">
<div><div id="panel-state">${states(view)}</div>
${money()}</div>
${events(link)}
</div>
<div class="log-head"><h3 id="log-title">Log</h3><p class="hint">Kept in this browser only.</p>
<button type="button" class="button quiet small" data-clear-log>Clear the log</button></div>
<p class="unseen" role="status" data-announce></p>
<ol class="log" tabindex="0" data-log aria-labelledby="log-title"></ol>
<p class="hint" data-log-empty>Nothing yet.</p>
${linkData(link)}
</section>`;
}

function states({ link, payments }: View): Html {
  const latest = payments.at(-1)?.status ?? null;
  return html`<fieldset><legend>Link status</legend><div class="segments">
${LINK_STATUSES.map((status) => stateButton('status', status, status === link.status))}
</div></fieldset>
<fieldset><legend>Payment status <span class="aggregate">the link’s: <b>${aggregateStatus(payments)}</b></span></legend><div class="segments four">
${PAYMENT_STATUSES.map((status) => stateButton('payment', status, status === latest))}
</div></fieldset>`;
}

/** Outside `panel-state`, so that the choice stays when the page's script redraws that. */
function money(): Html {
  return html`<fieldset><legend>Money of the next payment</legend><div class="from money" role="radiogroup" aria-label="Money of the next payment">
${PAYMENT_MONEY.map(
  (name) =>
    html`<label><input type="radio" name="money" value="${name}"${name === 'asked' ? html` checked` : ''}> ${MONEY_WORDS[name]}</label>`,
)}
</div></fieldset>`;
}

function stateButton(what: 'status' | 'payment', status: string, isCurrent: boolean): Html {
  return html`<button type="button" data-set="${what}" value="${status}" aria-pressed="${String(isCurrent)}">${status}</button>`;
}

function events({ webhookUrl }: Link): Html {
  if (webhookUrl === null) {
    return html`<fieldset><legend>Webhook events</legend><p class="notice">This link has no <code>webhookUrl</code>, so there is nowhere to send its events. Set one when you create the link.</p></fieldset>`;
  }
  return html`<fieldset><legend>Webhook events</legend>
<div class="from" role="radiogroup" aria-label="Sent from">
<span>Send from</span>
<label><input type="radio" name="from" value="server" checked> the server</label>
<label><input type="radio" name="from" value="browser"> this browser</label></div>
<div class="events">
${EVENT_KINDS.map(
  (kind) =>
    html`<button type="button" data-send="${kind}"><b>${kind}</b><span class="kind">${EVENT_WORDS[kind]}</span></button>`,
)}
</div>
<p class="hint">to <code>${webhookUrl}</code></p>
</fieldset>`;
}

function linkData(link: Link): Html {
  const rows: [string, string | null][] = [
    ['id', link.id],
    ['externalReference', link.externalReference],
    ['callbackUrl', link.callbackUrl],
    ['webhookUrl', link.webhookUrl],
    ['metadata', link.metadata === null ? null : JSON.stringify(link.metadata, null, 2)],
  ];
  return html`<details><summary>The link’s data</summary><dl class="facts">
${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value === null ? html`<i>none</i>` : html`<pre>${value}</pre>`}</dd></div>`)}
</dl></details>`;
}
