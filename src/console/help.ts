import { MATTER_KINDS } from '../domain/matter.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { matterWords } from '../explain/attention_sentences.ts';
import { words } from '../explain/glossary.ts';
import { type Html, html } from '../http/app.ts';
import { STATE_WORDS } from '../vocabulary.ts';
import { definitions } from './components.ts';
import type { Shown } from './layout.ts';
import { type ConsoleOptions, hrefOf, type View } from './view.ts';

/** Explains the words of the console to somebody who meets them for the first time. */

const TERMS = [
  ['Delivery, event', 'A request of the service that says what happened to a payment link, and what it says.'],
  [
    'Reading',
    "The service's answer when settled asks about a link. settled asks if no event comes, or if one is in doubt.",
  ],
  ['Notice', 'What settled tells the shop about an order. The shop takes it, or settled sends it again.'],
  ['Hold', 'Money that a person must accept or reject. The page of the order says what each would do.'],
  ['Difference', 'What the service says and what settled counted are not the same.'],
  ['Captured', 'What the service has collected for the order, as settled counted it, before refunds and disputes.'],
  ['Balance', 'What is left of the captured money after refunds and disputes.'],
  ['Service names', 'The sum of a refund or dispute, as the service names it, if that is not what was captured.'],
  ['Customer paid', 'What the customer paid if that is not what counts: with interest, or in another currency.'],
  ['Total with interest', 'The total in BRL that the service names for a payment. settled decides nothing by it.'],
] as const;

export function showHelp(_options: ConsoleOptions, view: View): Shown {
  const body = html`<h1>Help</h1>
<p class="lead">Begin at <a href="${hrefOf(view, '/')}">Overview</a>: it says whether any money needs a person. Each line there leads to its orders, and the page of an order says why it is in its state and what you can do.</p>
<div class="columns"><section class="card"><h2>States of an order</h2>${named(ORDER_STATES, (state) => STATE_WORDS[state])}</section>
<section class="card"><h2>Words</h2>${definitions(TERMS)}</section></div>
<div class="columns"><section class="card"><h2>Why an order is held</h2>${named(HOLD_REASONS, words.holdReason)}</section>
<section class="card"><h2>Flags of an order</h2>${named(FLAGS, words.flag)}</section></div>
<section class="card"><h2>What needs attention</h2>${named(MATTER_KINDS, matterWords)}</section>
<p class="soft">For programs: <a href="${hrefOf(view, '/openapi.json')}">the private API</a> as OpenAPI 3.1.</p>`;
  return { title: 'Help', here: '/help', body, isStill: true };
}

function named<Name extends string>(names: readonly Name[], mean: (name: Name) => string): Html {
  return definitions(names.map((name) => [name.replaceAll('_', ' '), mean(name)]));
}
