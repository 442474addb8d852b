import { z } from 'zod';
import { noticesOf, RULES } from '../domain/decision.ts';
import { ATTENTION_KINDS } from '../domain/matter.ts';
import { formatAmount } from '../domain/money.ts';
import { NOTICE_TYPES, orderDocument, shownFlags } from '../domain/notice.ts';
import { FLAGS, ORDER_STATES } from '../domain/order.ts';
import { explainDecision, warnOfDecision } from '../explain/decision.ts';
import { logChange } from '../observe/log.ts';
import type { PreviewedDecision } from '../store/verbs/decisions.ts';
import * as field from './fields.ts';
import { order } from './order.ts';
import { fieldProblem, found, noSuch, type ProblemError, problem } from './problem.ts';
import { type ApiOptions, ok, operation } from './route.ts';

/** Deciding about held money, and what a decision would do. */

type Decided = { reference: string; decision: 'accept' | 'reject' };

const preview = field.component('DecisionPreview', 'What a decision would do, if the order stays as it is.', {
  from: z.enum(ORDER_STATES),
  to: z.enum(ORDER_STATES),
  rule: z.enum(RULES),
  flags: z.array(z.enum(FLAGS)).describe('Flags of the order afterwards.'),
  entries: z
    .array(z.strictObject({ kind: z.string(), amount: z.string(), currency: z.string() }))
    .describe('Entries that the ledger would get.'),
  notices: z.array(z.enum(NOTICE_TYPES)).describe('What the shop would be told.'),
  raised: z.array(z.enum(ATTENTION_KINDS)).describe('Matters that would be raised.'),
  ended: z.array(z.enum(ATTENTION_KINDS)).describe('Matters that would end.'),
  sentences: z.array(z.string()).describe('The same for a person.'),
  warning: z.string().nullable().describe('A reason to be careful: settled counted no money. Null if there is none.'),
});

export const resolveOrder = operation({
  summary: 'Accept or reject the money of a held order',
  description:
    'If you accept, the order is paid with the money that was captured. If you reject, the order is cancelled, and flagged ' +
    '`refund_due` until settled learns of the refund. Repeating the same decision changes nothing. With `dryRun`, settled ' +
    'decides nothing: `preview` says what the decision would do.',
  body: z.strictObject({
    decision: z.enum(['accept', 'reject']).describe('`accept`: the order is paid. `reject`: it is cancelled.'),
    reason: field.givenReason.optional().describe('Kept, and shown in the timeline. Required unless `dryRun` is true.'),
    dryRun: z.boolean().default(false).describe('Only say what the decision would do.'),
  }),
  answers: ok('The order after the decision. With `dryRun`: the order as it is, and what the decision would do.', {
    order,
    preview: preview.optional(),
  }),
  problems: { 409: ['not_held', 'nothing_left_to_accept'], 422: ['invalid_request'] },
  example: { decision: 'accept', reason: 'the customer wants it after all' },
  answer: async (options, { reference, body, by }) => {
    const { store, clock, log, metrics, onNotices } = options;
    const { decision, reason, dryRun } = body;
    if (dryRun) return await previewDecision(options, { reference, decision });
    if (reason === undefined) throw fieldProblem('reason', field.IS_NEEDED);
    const resolved = await store.resolveOrder({ reference, decision, reason, by, atMs: clock.nowMs() });
    if (resolved === null) throw noSuch('order', reference);
    if (resolved.outcome === 'ignored') throw notResolved(resolved);
    if (resolved.outcome === 'applied') {
      const { rule, order: after } = resolved;
      logChange(log, { order: reference, from: 'held', to: after.state, rule, by: 'person' });
    }
    if (resolved.paidNow !== null) metrics.paid(resolved.paidNow);
    onNotices();
    return { order: orderDocument(resolved.order) };
  },
});

/** Answers what a decision would do to an order. Throws what deciding would. */
async function previewDecision({ store }: ApiOptions, decided: Decided): Promise<object> {
  const previewed = found(await store.previewResolution(decided), 'order', decided.reference);
  const { order: before, made } = previewed;
  if (made.outcome === 'ignored') throw notResolved({ rule: made.rule, order: before });
  return { order: orderDocument(before), preview: previewDocument(previewed) };
}

/** What a decision would do, as answers show it. */
function previewDocument({ order: before, made, after }: PreviewedDecision): z.infer<typeof preview> {
  const { effects, rule } = made;
  return {
    from: before.state,
    to: after.state,
    rule,
    flags: [...shownFlags(after)],
    entries: effects.flatMap((effect) => {
      if (effect.do !== 'entry') return [];
      const { kind, currency } = effect.entry;
      return [{ kind, amount: formatAmount(effect.entry), currency }];
    }),
    notices: noticesOf(made),
    raised: effects.flatMap((effect) => (effect.do === 'attention' ? [effect.kind] : [])),
    ended: effects.flatMap((effect) => (effect.do === 'end_attention' ? [effect.kind] : [])),
    sentences: explainDecision(before, made, after),
    warning: warnOfDecision(before, made),
  };
}

type Ignored = { rule: string; order: { reference: string; state: string } };

function notResolved({ rule, order: { reference, state } }: Ignored): ProblemError {
  if (rule === 'nothing_left_to_accept') {
    const detail = `The money of order ${reference} was refunded or disputed, so nothing is left to accept. Reject it.`;
    return problem(409, 'nothing_left_to_accept', detail);
  }
  return problem(409, 'not_held', `Order ${reference} is ${state}. You can resolve only a held order.`);
}
