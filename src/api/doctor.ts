import { z } from 'zod';
import { summarizeAttention } from '../explain/attention_sentences.ts';
import { restoredSentence } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import { deliveryMac } from '../paylink/events.ts';
import { ANSWERS } from '../receive/answers.ts';
import { inWords, systemClock } from '../work/clock.ts';
import { check, checkDatabase, checkShop, type Finding, finding } from './doctor_store.ts';
import { type ApiOptions, answer, operation } from './route.ts';

const FOUND: Finding[] = [
  { name: 'ready', status: 'ok', detail: 'the store is open and can be written' },
  {
    name: 'needs a person',
    status: 'warning',
    detail:
      '1 matter needs a person; the oldest has waited 2 h 10 min. Money: BRL 60.00 captured on 1 order. See: settled ' +
      'attention',
  },
];

export const doctor = operation({
  id: 'doctor',
  group: 'Operation',
  summary: 'Check the installation',
  description:
    'It sends a signed delivery to itself through the public address, and asks the service who it is. If the database ' +
    'cannot be read, that is a check that fails, and the checks that need it are left out.',
  answers: {
    200: answer(
      'What was found.',
      { store: z.string().describe('The database that this server works on.'), checks: z.array(check) },
      { store: '/data/settled.db', checks: FOUND },
    ),
  },
  answersWithoutStore: true,
  answer: async (options) => {
    const [database, address, service] = await Promise.all([
      withoutFault('database', checkDatabase(options)),
      checkPublicUrl(options),
      checkService(options),
    ]);
    const isThere = database.every(({ status }) => status !== 'failing');
    // After the request to the service, which takes a slot of the budget.
    const kept = isThere ? await withoutFault('orders and events', checkKept(options)) : [];
    const ours = [checkReadiness(options), checkClockSteps(options)];
    return { store: options.storeName, checks: [...ours, ...database, address, ...service, ...kept] };
  },
});

/** A fault of the store is a finding too, so that every check without the store still runs. */
async function withoutFault(name: string, looking: Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await looking;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return [{ name, status: 'failing', detail: fault.message }];
  }
}

function checkReadiness({ readiness }: ApiOptions): Finding {
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

async function checkKept(options: ApiOptions): Promise<Finding[]> {
  const { store, clock, apiSlots } = options;
  const stats = await store.stats(clock.nowMs());
  const { restoredFromMs } = stats.feed;
  const inUse = stats.api.slotsInUse;
  return [
    finding('api budget', inUse < apiSlots, `${inUse} of ${apiSlots} requests a minute are in use`),
    finding('settlement', stats.lagMs < 10_000, `the oldest unsettled event is due for ${stats.lagMs / 1000} s`),
    await checkAttention(options),
    await checkShop(options, stats),
    await checkSecrets(options),
    restoredFromMs === null
      ? finding('restore', true, 'no links are looked for after a restore')
      : finding('restore', false, `${restoredSentence(restoredFromMs)} What a person has to do: settled attention`),
  ];
}

/** In the words of `settled attention`. */
async function checkAttention({ store, clock }: ApiOptions): Promise<Finding> {
  const matters = await store.listMatters({ kind: null, state: null, after: null, limit: 0 });
  const isNone = matters.groups.length === 0;
  const said = summarizeAttention(matters, { nowMs: clock.nowMs(), isFiltered: false });
  return finding('needs a person', isNone, isNone ? said : `${said} See: settled attention`);
}

async function checkSecrets({ store, keyring }: ApiOptions): Promise<Finding> {
  const links = await store.countUnopenable(keyring.keyIds);
  const detail =
    links === 0
      ? "a known key opens every link's signing secret"
      : `the signing secrets of ${links === 1 ? '1 link' : `${links} links`} cannot be opened with the known keys: settled ` +
        'answers their deliveries with 503, and learns of their payments by asking. See Keys in docs/operations.md';
  return finding('secrets', links === 0, detail);
}

/** A `Date` header has whole seconds, and the answer travelled. */
const SKEW_MS_SMALL = 5_000;

/**
 * Asks for the merchant's profile: one request that shows the key, the merchant and the service's clock. It is sent as
 * openings of links are. While all other requests pause after a refused key or merchant, it finds out whether that is over.
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
      const detail = 'settled did not ask the API: a request takes a slot of the budget, which the database keeps';
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

const PROBE_DEADLINE_MS = 5_000;

/** Sends a signed delivery to ourselves through the public address, to find what is wrong on the way. */
async function checkPublicUrl(options: ApiOptions): Promise<Finding> {
  const { publicUrl, publicUrlReaches } = options;
  const name = 'public address';
  const deadline = new AbortController();
  const cancel = systemClock.after(PROBE_DEADLINE_MS, () => deadline.abort());
  try {
    const answer = await sendProbe(options, deadline.signal);
    const isOurs = answer.status === 200 && (await answer.text()) === ANSWERS.recorded.body;
    if (!isOurs) return { name, status: 'failing', detail: notArrived(options, answer.status) };
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    const detail = `a delivery to ${publicUrl} does not arrive (${cause?.code ?? message}): check SETTLED_PUBLIC_URL, DNS and the proxy`;
    return { name, status: 'failing', detail };
  } finally {
    cancel();
  }
  return publicUrlReaches
    ? { name, status: 'ok', detail: `a signed delivery to ${publicUrl} arrives` }
    : {
        name,
        status: 'warning',
        detail: `links carry ${publicUrl}, and the service cannot deliver there: set SETTLED_PUBLIC_URL to your https address`,
      };
}

function sendProbe({ publicUrl, headerNames, keyring, clock }: ApiOptions, signal: AbortSignal): Promise<Response> {
  const body = `{ "id": "doctor", "note": "bytes as they are: \u00e9 \u2028 1.0" } \n`;
  const timestamp = String(clock.nowMs());
  const mac = deliveryMac(keyring.probe.secret, timestamp, Buffer.from(body));
  return fetch(`${publicUrl}/hooks/${keyring.probe.token}`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: {
      'content-type': 'application/json',
      [headerNames.signature]: mac.toString('hex'),
      [headerNames.timestamp]: timestamp,
    },
    signal,
  });
}

function notArrived({ publicUrl, storeAddress }: ApiOptions, status: number): string {
  const others =
    storeAddress.engine === 'sqlite'
      ? 'another settled answers'
      : 'another settled answers, or a replica with another SETTLED_SECRETS_KEY (see replicas)';
  const why =
    status === 401
      ? `its body or its headers were changed on the way (let the proxy pass them as they are), or ${others}`
      : 'something else answers there: let the proxy pass POST /hooks/… on to SETTLED_HOOKS_LISTEN';
  return `a signed delivery to ${publicUrl} is answered ${status}: ${why}`;
}
