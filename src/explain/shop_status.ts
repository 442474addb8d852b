import { refusesNotices, type ShopFailures, type ShopRefusal, shortAnswer } from '../domain/notice.ts';
import type { NoticeSummary } from '../store/verbs/notice_lists.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import { waitInWords } from '../work/clock.ts';
import { inTimes, iso, sentence, words } from './glossary.ts';

/** What the shop knows about an order. Every notice carries the whole order, so the newest one that the shop took is enough. */
export function whatShopKnows({ notices }: Timeline): string[] {
  const known = Math.max(0, ...notices.filter(wasTaken).map(({ version }) => version));
  const newest = notices.findLast((notice) => !wasTaken(notice) && notice.version >= known);
  if (newest === undefined) return whenTold(notices.at(-1));
  const what = words.notice(newest.type);
  if (newest.status === 'dead') {
    return [`The shop was not told ${what}, and settled no longer tries to tell it: ${why(newest)}`];
  }
  const first = notices.find(hasTurn);
  const failures = first === undefined ? 0 : failuresOf(first);
  const which = first === newest ? 'Telling it' : 'An earlier notice comes first: sending it';
  const failed =
    first === undefined || failures === 0 ? '' : ` ${which} has failed ${inTimes(failures)} so far: ${why(first)}`;
  return [`The shop has not been told yet ${what}.${failed}`];
}

function whenTold(last: NoticeSummary | undefined): string[] {
  if (last === undefined || last.endedAtMs === null) return [];
  return [`At ${iso(last.endedAtMs)}, settled told the shop ${words.notice(last.type)}.`];
}

/** When settled sends what the shop does not know, and what a person can do. `shopFailures` count the notices of all orders. */
export function nextOfNotices(
  { notices }: Timeline,
  { nowMs, shopFailures }: { nowMs: number; shopFailures: ShopFailures | null },
): string[] {
  const isOwed = notices.some(({ status }) => status === 'pending' || status === 'leased');
  return [...(isOwed && shopFailures !== null ? refusing(shopFailures, nowMs) : []), ...nextOfEach(notices, nowMs)];
}

/** In the words of `settled doctor`. */
function refusing(failures: ShopFailures, nowMs: number): string[] {
  if (!refusesNotices(failures, nowMs)) return [];
  return [`The shop does not accept notices: ${inARow(failures)}. To see what to do: settled doctor`];
}

function nextOfEach(notices: readonly NoticeSummary[], nowMs: number): string[] {
  return notices.flatMap((notice) => {
    const { id, type, status, dueAtMs, isSuperseded } = notice;
    const what = words.notice(type);
    const resend = `settled notices resend ${id}`;
    if (status === 'done' || isSuperseded) return [];
    if (status === 'dead') return [`Make sure that the shop accepts notices. Then tell it ${what}: ${resend}`];
    if (status === 'leased') return [`settled is telling the shop ${what}.`];
    if (dueAtMs === null) return [`settled tells the shop ${what} after this order's earlier notices.`];
    if (dueAtMs <= nowMs) return [`settled tells the shop ${what} as soon as the shop accepts notices.`];
    const at = `${iso(dueAtMs)}, in ${waitInWords(dueAtMs - nowMs)}`;
    return [`settled tells the shop ${what} at ${at}. If the shop works again sooner, send it now: ${resend}`];
  });
}

/** Whether the shop took the notice, even if settled is sending it again. */
function wasTaken({ status, fault, answer }: NoticeSummary): boolean {
  return status === 'done' || (fault === null && answer !== null);
}

/** Whether the notice is the one of its order that is sent next: an order has one at a time. */
function hasTurn({ status, dueAtMs }: NoticeSummary): boolean {
  return status === 'leased' || (status === 'pending' && dueAtMs !== null);
}

function failuresOf({ status, attempt, fault }: NoticeSummary): number {
  if (fault === null) return 0;
  return status === 'leased' ? attempt - 1 : attempt;
}

function why({ fault }: NoticeSummary): string {
  return sentence(fault?.message ?? 'the reason is unknown');
}

/** How many attempts in a row failed, and since when. */
export function inARow({ attempts, sinceMs }: Pick<ShopFailures, 'attempts' | 'sinceMs'>): string {
  return attempts === 1
    ? `1 attempt failed, at ${iso(sinceMs)}`
    : `${attempts} attempts in a row failed since ${iso(sinceMs)}`;
}

/** The result of an attempt, in one line without a full stop: the shop's answer, or why there was none. */
export function lastAttempt({ fault, answer }: ShopRefusal): string {
  if (answer === null) return `the last attempt: ${fault.message.replace(/\.$/, '')}`;
  const said = shortAnswer(answer.body);
  return `its last answer: ${answer.status}${said === '' ? '' : ` ${said.replace(/\.$/, '')}`}`;
}

/** What a person does about a shop that refuses notices. */
export function refusalAdvice({ fault, answer }: ShopRefusal): string {
  // settled does not retry a notice that was answered 410.
  const status = fault.code === 'shop_gone' ? 'dead' : 'pending';
  const isSecret = answer?.status === 401 || answer?.status === 403;
  return [
    ...(isSecret ? ['Check that the shop has the secret of SETTLED_SHOP_SECRET.'] : []),
    ...(answer === null || isSecret ? [] : ["Look at the shop's own log."]),
    `To see what the shop answered: settled notices list --status ${status}. This matter ends with the first notice that the ` +
      `shop accepts. When the shop works again, send the notices at once: settled bulk resend --status ${status}`,
  ].join(' ');
}
