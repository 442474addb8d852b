import type { RequestHandler } from 'express';
import { restoredSentence } from '../domain/advice.ts';
import { Fault } from '../fault.ts';
import type { Readiness } from '../http/app.ts';
import { deliveryMac } from '../paylink/events.ts';
import { ANSWERS } from '../receive/answers.ts';
import { inWords, systemClock } from '../work/clock.ts';
import { sayMatters } from './attention.ts';
import { checkDatabase } from './database.ts';
import { type Finding, finding } from './finding.ts';
import type { ApiOptions } from './options.ts';
import { checkShop } from './shop_check.ts';

/** A `Date` header has whole seconds, and the answer travelled. */
const SKEW_MS_SMALL = 5_000;
const PROBE_DEADLINE_MS = 5_000;

/** What a person should know of this installation. Each check says what to do. */
export function doctor(options: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { readiness, storeName } = options;
    const [database, address, service] = await Promise.all([
      findings('database', checkDatabase(options)),
      checkPublicUrl(options),
      checkService(options),
    ]);
    const isThere = database.every(({ status }) => status !== 'failing');
    // Behind the request to the service, which takes a slot of the budget.
    const kept = isThere ? await findings('orders and events', checkKept(options)) : [];
    const ours = [checkReadiness(readiness), checkClockSteps(options)];
    const checks = [...ours, ...database, address, ...service, ...kept];
    response.json({ store: storeName, checks });
  };
}

/** What was found; where the store fails that is the finding, and all that needs no store is looked at as well. */
async function findings(name: string, looking: Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await looking;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return [{ name, status: 'failing', detail: fault.message }];
  }
}

async function checkKept(options: ApiOptions): Promise<Finding[]> {
  const { store, clock, apiSlots } = options;
  const stats = await store.stats(clock.nowMs());
  return [
    finding(
      'api budget',
      stats.api.slotsInUse < apiSlots,
      `${stats.api.slotsInUse} of ${apiSlots} requests a minute are in use`,
    ),
    finding('settlement', stats.lagMs < 10_000, `the oldest unsettled event is due for ${stats.lagMs / 1000} s`),
    await checkMatters(options),
    await checkShop(options, stats),
    await checkSecrets(options),
    checkRestore(stats.feed.restoredFromMs),
  ];
}

/** As `settled attention` says it. */
async function checkMatters({ store, clock }: ApiOptions): Promise<Finding> {
  const matters = await store.listMatters({ kind: null, state: null, after: null, limit: 0 });
  const isNone = matters.groups.length === 0;
  const said = sayMatters(matters, { nowMs: clock.nowMs(), isFiltered: false });
  return finding('needs a person', isNone, isNone ? said : `${said} See: settled attention`);
}

function checkReadiness(readiness: Readiness): Finding {
  const state = readiness();
  return state.ready
    ? { name: 'ready', status: 'ok', detail: 'the store is open and can be written' }
    : { name: 'ready', status: 'failing', detail: state.reason };
}

function checkClockSteps({ clockSteps }: ApiOptions): Finding {
  const name = 'clock steps';
  const latest = clockSteps.latest();
  if (latest === null) return finding(name, true, 'the clock has not stepped since the start');
  const way = latest.byMs > 0 ? 'ahead' : 'back';
  const step = `the clock stepped ${inWords(Math.abs(latest.byMs))} ${way}, ${inWords(latest.agoMs)} ago`;
  const isOver = clockSteps.isTrusted();
  const meanwhile =
    'for an hour no bytes are dropped and no notice is given up. Look at the time service (NTP) of the machine whose clock ' +
    'counts: see Clock in docs/operations.md';
  return finding(name, isOver, isOver ? step : `${step}: ${meanwhile}`);
}

function checkRestore(restoredFromMs: number | null): Finding {
  const name = 'restore';
  if (restoredFromMs === null) return { name, status: 'ok', detail: 'no links are looked for after a restore' };
  const detail = `${restoredSentence(restoredFromMs)} What a person has to do: settled attention`;
  return { name, status: 'warning', detail };
}

async function checkSecrets({ store, keyring }: ApiOptions): Promise<Finding> {
  const links = await store.countUnopenable(keyring.keyIds);
  const detail =
    links === 0
      ? "every link's signing secret rests under a key that is there"
      : `the signing secrets of ${links} links cannot be opened with the keys that there are: their deliveries are answered ` +
        '503, and their orders are found by asking. See Keys in docs/operations.md';
  return finding('secrets', links === 0, detail);
}

/**
 * Asks for the merchant's profile: that shows the key, the merchant and the service's clock in one request. It is sent as
 * openings of links are: where all else pauses because the key or the merchant was refused, it finds out whether that is
 * over.
 */
async function checkService({ asking, clock }: ApiOptions): Promise<Finding[]> {
  const name = 'service';
  if (asking === null) {
    const detail =
      'no API is configured: settled receives and registers, and cannot open links or ask. Set SETTLED_API_URL and SETTLED_API_KEY';
    return [{ name, status: 'warning', detail }];
  }
  try {
    const { value, dateMs } = await asking.service.profile('create');
    const isActive = value.status === null || value.status === 'ACTIVE';
    const detail = `the API takes the key of ${value.businessName ?? value.id}, which is ${value.status ?? 'there'}`;
    return [finding(name, isActive, detail), ...(dateMs === null ? [] : [checkClock(dateMs - clock.nowMs())])];
  } catch (fault) {
    if (fault instanceof Fault && fault.code.startsWith('store_')) {
      const detail = 'the API was not asked: a request takes a slot of the budget, which the database keeps';
      return [{ name, status: 'warning', detail }];
    }
    return [{ name, status: 'failing', detail: (fault as Error).message }];
  }
}

function checkClock(skewMs: number): Finding {
  const side = skewMs > 0 ? 'ahead of' : 'behind';
  const detail = `the service's clock is ${inWords(Math.abs(skewMs))} ${side} ours`;
  const isSmall = Math.abs(skewMs) <= SKEW_MS_SMALL;
  return finding('clock', isSmall, isSmall ? detail : `${detail}: deliveries look stale. Set this machine's clock`);
}

/** Sends a signed delivery to ourselves through the public address: what is wrong on the way shows here first. */
async function checkPublicUrl(options: ApiOptions): Promise<Finding> {
  const { publicUrl, publicUrlReaches, headerNames, keyring, clock, storeAddress } = options;
  const name = 'public address';
  const others =
    storeAddress.engine === 'sqlite'
      ? 'another settled answers'
      : 'another settled answers, or a replica with another SETTLED_SECRETS_KEY (see replicas)';
  const body = `{ "id": "doctor", "note": "bytes as they are: \u00e9 \u2028 1.0" } \n`;
  const timestamp = String(clock.nowMs());
  const mac = deliveryMac(keyring.probe.secret, timestamp, Buffer.from(body));
  const deadline = new AbortController();
  const cancel = systemClock.after(PROBE_DEADLINE_MS, () => deadline.abort());
  try {
    const answer = await fetch(`${publicUrl}/hooks/${keyring.probe.token}`, {
      method: 'POST',
      body,
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        [headerNames.signature]: mac.toString('hex'),
        [headerNames.timestamp]: timestamp,
      },
      signal: deadline.signal,
    });
    const isOurs = answer.status === 200 && (await answer.text()) === ANSWERS.recorded.body;
    if (!isOurs) return { name, status: 'failing', detail: notArrived(publicUrl, answer.status, others) };
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    const detail = `a delivery to ${publicUrl} does not arrive (${cause?.code ?? message}): check SETTLED_PUBLIC_URL, DNS and the proxy`;
    return { name, status: 'failing', detail };
  } finally {
    cancel();
  }
  if (publicUrlReaches) return { name, status: 'ok', detail: `a signed delivery to ${publicUrl} arrives` };
  const detail = `links carry ${publicUrl}, where the service cannot deliver: set SETTLED_PUBLIC_URL to your https address`;
  return { name, status: 'warning', detail };
}

function notArrived(publicUrl: string, status: number, others: string): string {
  const why =
    status === 401
      ? `its body or its headers were changed on the way (let the proxy pass them as they are), or ${others}`
      : 'something else answers there: let the proxy pass POST /hooks/… on to SETTLED_HOOKS_LISTEN';
  return `a signed delivery to ${publicUrl} is answered ${status}: ${why}`;
}
