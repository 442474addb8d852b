import { inARow, lastAttempt, refusalAdvice, refusesNotices, type ShopFailures } from '../domain/shop_failures.ts';
import type { ShopState, Stats } from '../store/queries.ts';
import type { Finding } from './finding.ts';
import type { ApiOptions } from './options.ts';
import { iso } from './times.ts';

/** A notice that was not taken is tried again within two minutes at first: for so long it may be a passing trouble. */
const NOTICES_LAG_MS_SMALL = 5 * 60_000;

const name = 'shop';

/** Whether the shop takes what it is told. */
export async function checkShop(
  { store, clock, canTell }: Pick<ApiOptions, 'store' | 'clock' | 'canTell'>,
  stats: Pick<Stats, 'notices' | 'noticesLagMs'>,
): Promise<Finding> {
  if (!canTell) {
    const detail = 'no callback is set (SETTLED_SHOP_URL): the shop has to read the feed';
    return { name, status: 'ok', detail };
  }
  const state = await store.shopState();
  if (state.failures !== null) return failing(state.failures, clock.nowMs());
  const { pending = 0, leased = 0, dead = 0 } = stats.notices;
  const { untakenSinceMs, failure } = state;
  const isBehind = dead > 0 || stats.noticesLagMs >= NOTICES_LAG_MS_SMALL || failure !== null;
  if (untakenSinceMs !== null && isBehind) return behind(stats, { untakenSinceMs, failure });
  return { name, status: 'ok', detail: `${taking(stats, state)}; ${pending + leased} are on their way` };
}

/** One failure may be a passing trouble: the next attempt follows within seconds. */
function failing(failures: ShopFailures, nowMs: number): Finding {
  const found = `the shop takes no notices: ${inARow(failures)}; ${lastAttempt(failures)}`;
  return refusesNotices(failures, nowMs)
    ? { name, status: 'failing', detail: `${found}. ${refusalAdvice(failures)}` }
    : { name, status: 'warning', detail: `${found}. ${refusalAdvice(failures)}` };
}

/** The shop took the last notice that was sent, and others it did not take. */
function behind(
  { notices }: Pick<Stats, 'notices'>,
  { untakenSinceMs, failure }: { untakenSinceMs: number } & Pick<ShopState, 'failure'>,
): Finding {
  const { pending = 0, leased = 0, dead = 0 } = notices;
  const count = pending + leased + dead;
  const which = dead === 0 ? '' : `, ${dead} of them dead`;
  const detail =
    `the shop has not taken ${count} ${count === 1 ? 'notice' : 'notices'}${which}, the oldest since ` +
    `${iso(untakenSinceMs)}${failure === null ? '' : `; ${lastAttempt(failure)}`}. See them: settled notices list --status ` +
    (pending === 0 ? 'dead' : 'pending');
  return { name, status: 'warning', detail };
}

function taking({ notices }: Pick<Stats, 'notices'>, { takenAtMs }: Pick<ShopState, 'takenAtMs'>): string {
  if (takenAtMs !== null) return `the shop takes its notices, the last at ${iso(takenAtMs)}`;
  // The time is known of one of the newest alone.
  return notices.done ? 'the shop takes its notices' : 'no notice has been sent so far';
}
