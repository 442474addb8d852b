import type { Outage } from '../domain/budget.ts';
import { type AttentionKind, concernOf } from '../domain/matter.ts';
import type { MatterGroup } from '../domain/matter_money.ts';
import type { ListedMatter, Matters, Trouble } from '../store/verbs/attention_list.ts';
import { inWords } from '../work/clock.ts';
import { explainAttention, matterWords } from './attention_sentences.ts';
import { decisionAdvice, explainHold } from './decision.ts';
import { capital, inNumber, iso, shellWord, sumsInWords, total } from './glossary.ts';
import { outageSentence } from './service_status.ts';

/**
 * What a person reads where matters stand together: all of them (how many, how old, and the money of their orders), each of
 * the list, and in one sentence what keeps settled from its work.
 */

/** A few sentences for a person who asks whether anything is wrong. `unlisted`: what is wrong and no matter. */
export function summarizeAttention(
  { groups, money }: Pick<Matters, 'groups' | 'money'>,
  { nowMs, isFiltered, unlisted }: { nowMs: number; isFiltered: boolean; unlisted: readonly string[] },
): string {
  if (groups.length === 0) {
    return isFiltered ? 'Nothing matches these filters.' : ['Nothing needs attention.', ...unlisted].join(' ');
  }
  const count = total(groups);
  const waitedMs = Math.max(0, nowMs - Math.min(...groups.map(({ oldestAtMs }) => oldestAtMs)));
  const waited = inWords(Math.floor(waitedMs / 1000) * 1000);
  const needs = `${inNumber(count, 'matter needs', 'matters need')} attention; the oldest has waited ${waited}.`;
  const ofMoney = money.orders === 0 ? withoutMoney(groups) : withMoney(money);
  return [needs, ofMoney, ...(isFiltered ? [] : unlisted)].join(' ');
}

/** An event that was not settled may report an uncounted payment, and so may a kind that a later version wrote. */
function withoutMoney(groups: readonly MatterGroup[]): string {
  const concerns = groups.map(({ kind }) => concernOf(kind));
  const mayTell = concerns.some((concern) => concern === undefined || concern === 'unsettled');
  if (mayTell) return 'Events that were not settled may be about money.';
  if (groups.some(({ kind }) => ASKING_STOPS.has(kind)))
    return 'settled cannot ask the service, so it learns of payments only from webhooks.';
  return concerns.includes('shop') ? 'The shop may not know of money.' : 'None of it is about money.';
}

function withMoney({ orders, withBalance, sums, isWhole, hasMisread, hasUnreadable }: Matters['money']): string {
  const balance = sumsInWords(sums, 'balance');
  const count = `${isWhole ? '' : 'at least '}${inNumber(orders, 'order')}`;
  const claimed = sumsInWords(sums, 'reported');
  const webhooks = claimed === '' ? '' : ` Webhooks reported ${claimed} that the service did not confirm.`;
  const left = `${webhooks}${hasMisread ? ' A held payment of more than its order asks for is left out.' : ''}`;
  const unread = hasUnreadable ? ' An amount that is not readable is left out.' : '';
  const some = withBalance === orders ? '' : `, ${withBalance} of them`;
  if (balance !== '') return `Money: ${count}${some} with a balance of ${balance}.${left}${unread}`;
  const none = hasUnreadable ? 'a balance that is not readable' : 'no balance';
  return `Money: ${count} of ${sumsInWords(sums, 'asked')}, with ${none}.${left}`;
}

/** What happened and what to do, for one matter of the list. `canAsk`: whether an API is configured. */
export function explainMatter(matter: ListedMatter, canAsk: boolean): string {
  const { kind, key, order, reported } = matter;
  if (kind !== 'hold') return explainAttention(matter, { key, canAsk });
  if (order === null) return '';
  const why = `To see why: settled why ${shellWord(order.reference)}`;
  return `${explainHold(order, reported)} ${[why, ...decisionAdvice(order)].join('. ')}`;
}

/** Matters without which settled can ask the service. */
const ASKING_STOPS: ReadonlySet<string> = new Set<AttentionKind>([
  'service_unanswered',
  'api_key_refused',
  'merchant_inactive',
]);

/** Why settled cannot ask the service now, in a sentence; null if it can. */
export function cannotAsk(troubles: readonly Trouble[]): string | null {
  const trouble = troubles.find(({ kind }) => ASKING_STOPS.has(kind));
  return trouble === undefined ? null : troubleSentence(trouble);
}

/** A trouble without what the service, the shop or a sender said, for anybody who may see whether settled is ready. */
export function troubleSentence({ kind, params, openedAtMs }: Trouble): string {
  if (kind === 'service_unanswered') return outageSentence(params as Outage);
  const meaning = matterWords(kind);
  // When attempts began to fail is earlier than when that became a matter.
  const { sinceMs = openedAtMs } = params as { sinceMs?: number };
  return `${capital(meaning)} (since ${iso(sinceMs)}).`;
}
