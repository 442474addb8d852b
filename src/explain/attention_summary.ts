import { concernOf, type MatterGroup } from '../domain/matter.ts';
import { inMoney } from '../domain/money.ts';
import type { Matters } from '../store/verbs/attention_list.ts';
import { inWords } from '../work/clock.ts';
import { inNumber, total } from './glossary.ts';
import { ASKING_STOPS } from './service_status.ts';

/** What a person reads about all matters together: how many, how old, and the money of their orders. */

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
  const balances = sums.flatMap(({ balance, currency }) =>
    balance ? [inMoney({ amountMinor: balance, currency })] : [],
  );
  const count = `${isWhole ? '' : 'at least '}${inNumber(orders, 'order')}`;
  const claims = sums.filter(({ reported }) => reported !== 0n);
  const claimed = claims.map(({ reported, currency }) => inMoney({ amountMinor: reported, currency })).join(' and ');
  const webhooks = claimed === '' ? '' : ` Webhooks reported ${claimed} that the service did not confirm.`;
  const left = `${webhooks}${hasMisread ? ' A held payment of more than its order asks for is left out.' : ''}`;
  const unread = hasUnreadable ? ' An amount that is not readable is left out.' : '';
  const some = withBalance === orders ? '' : `, ${withBalance} of them`;
  if (balances.length > 0) return `Money: ${count}${some} with a balance of ${balances.join(' and ')}.${left}${unread}`;
  const asked = sums.flatMap(({ asked, currency }) => (asked ? inMoney({ amountMinor: asked, currency }) : []));
  const none = hasUnreadable ? 'a balance that is not readable' : 'no balance';
  return `Money: ${count} of ${asked.join(' and ')}, with ${none}.${left}`;
}
