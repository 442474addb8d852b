import { ProblemError } from '../api/problem.ts';
import { resolveOrder } from '../api/resolution.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { isOpen } from '../domain/order.ts';
import { type Html, html } from '../http/app.ts';
import { actionButton, actionForm } from './components.ts';
import type { PageParts } from './layout.ts';
import { prose } from './values.ts';
import { type ConsoleOptions, mayDo, orderPath, type View } from './view.ts';

/** What each decision about a held order would do, or why it cannot be made. */
type Previews = Readonly<
  Record<Decision, { sentences: readonly string[]; warning: string | null; isPossible: boolean }>
>;

const DECISIONS = ['accept', 'reject'] as const;
type Decision = (typeof DECISIONS)[number];

/** Asks for a dry run of both decisions; null if there is nothing to decide, or nothing that the person may decide. */
export async function loadPreviews(
  options: ConsoleOptions,
  view: View,
  order: OrderDocument,
): Promise<Previews | null> {
  if (order.state !== 'held' || !mayDo(view, 'operator')) return null;
  const { reference } = order;
  const [accept, reject] = await Promise.all(
    DECISIONS.map((decision) => loadPreview(options, { reference, decision })),
  );
  return accept === undefined || reject === undefined ? null : { accept, reject };
}

async function loadPreview(
  options: ConsoleOptions,
  { reference, decision }: { reference: string; decision: Decision },
): Promise<Previews[Decision]> {
  const body = { decision, dryRun: true } as const;
  try {
    const { preview } = await resolveOrder.load(options, { reference, body });
    return { sentences: preview?.sentences ?? [], warning: preview?.warning ?? null, isPossible: true };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { sentences: [error.problem.detail], warning: null, isPossible: false };
  }
}

/** What a person can do about an order, each with what it will do. */
export function orderActions(
  view: View,
  order: OrderDocument,
  { canAsk, previews }: { canAsk: boolean; previews: Previews | null },
): Html | null {
  if (!mayDo(view, 'operator')) return null;
  const actions = [
    ...(previews === null
      ? []
      : DECISIONS.map((decision) => resolveForm(view, order, { decision, ...previews[decision] }))),
    ...(isOpen(order.state) ? [cancelForm(view, order)] : []),
  ];
  const check = { action: `/v1${orderPath(order.reference)}/check`, button: 'Ask the service now' };
  const ask = canAsk ? actionButton(view, check) : null;
  if (actions.length === 0 && ask === null) return null;
  return html`<section id="actions"><h2>What you can do</h2>${
    actions.length === 0 ? null : html`<div class="columns">${actions}</div>`
  }${ask === null ? null : html`<p>${ask}</p>`}</section>`;
}

/** The notice after an action that asked about a link which the service does not know; null after any other. */
export function linkUnknown(
  { refused = null }: View,
  { link }: OrderDocument,
): NonNullable<PageParts['notice']> | null {
  if (refused === null || refused.status !== 409 || refused.code !== 'link_unknown') return null;
  const id = link?.id ?? null;
  const known =
    id === null
      ? html`settled asked. ${refused.detail}`
      : html`settled asked: the service does not know the link <bdi>${id}</bdi>.`;
  const kept = refused.action.endsWith('/cancel') ? ' The order was not cancelled.' : null;
  return { text: html`${known}${kept}`, isProblem: true };
}

const VERBS: Readonly<Record<Decision, string>> = { accept: 'Accept the money', reject: 'Reject the money' };

function resolveForm(
  view: View,
  { reference }: OrderDocument,
  { decision, sentences, warning, isPossible }: Previews[Decision] & { decision: Decision },
): Html {
  const preview = html`<ul class="plain">${sentences.map((sentence) => html`<li>${prose(view, sentence, reference)}</li>`)}</ul>`;
  if (!isPossible) {
    return html`<div class="action impossible" id="${decision}"><p><strong>${VERBS[decision]}:</strong> not possible.</p>${preview}</div>`;
  }
  return actionForm(view, {
    id: decision,
    action: `/v1${orderPath(reference)}/resolve`,
    summary: VERBS[decision],
    preview,
    warning,
    button: VERBS[decision],
    ...(decision === 'reject' ? { isDanger: true as const } : {}),
    reason: 'required',
    values: { decision },
  });
}

function cancelForm(view: View, { reference }: OrderDocument): Html {
  return actionForm(view, {
    id: 'cancel',
    action: `/v1${orderPath(reference)}/cancel`,
    summary: 'Cancel the order',
    preview:
      'settled asks the service first, and cancels only if no payment has begun. The link can still be paid until it expires; ' +
      'settled then holds the order for a person. settled tells the shop that the order is cancelled.',
    button: 'Cancel the order',
    isDanger: true,
  });
}

/** The lines of advice, without those that the forms of the page carry out. */
export function nextSteps(view: View, { reference }: OrderDocument, lines: readonly string[]): Html[] {
  const isAbove = (line: string) => / settled orders resolve \S.* --(accept|reject) --reason TEXT$/.test(line);
  return lines
    .filter((line) => !(mayDo(view, 'operator') && isAbove(line)))
    .map((line) => prose(view, line, reference));
}
