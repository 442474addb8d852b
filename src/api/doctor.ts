import { z } from 'zod';
import { cannotAsk } from '../explain/attention_summary.ts';
import { clocksDiffer, linksElsewhere } from '../explain/service_status.ts';
import { Fault } from '../fault.ts';
import { deliveryMac } from '../paylink/events.ts';
import { ANSWERS, hasBody } from '../receive/answers.ts';
import { inWords } from '../work/clock.ts';
import { openLatest } from '../work/latest.ts';
import { checkAlerts } from './alerts.ts';
import { checkDatabase, checkKept, type Finding, failing, finding } from './doctor_store.ts';
import { type ApiOptions, ok, operation } from './route.ts';

const check = z
  .strictObject({
    name: z.string().meta({ examples: ['disk'] }),
    status: z.enum(['ok', 'warning', 'failing']),
    detail: z.string().describe('What was found, and what to do about it.'),
  })
  .meta({ id: 'Check' }) satisfies z.ZodType<Finding>;

export const doctor = operation({
  summary: 'Check the installation',
  description: 'It sends a signed delivery to itself by the public address, and asks the service who the merchant is.',
  answers: ok('What was found.', {
    store: z.string().describe('The database that this server works on.'),
    checks: z.array(check),
  }),
  answersWithoutStore: true,
  query: z.strictObject({
    probe: z.enum(['true', 'false']).default('true').describe('`false`: leave out the checks that send requests.'),
  }),
  answer: async (options, { query: { probe } }) => {
    const [database, address, service] = await Promise.all([
      withoutFault('database', checkDatabase(options)),
      probe === 'true' ? checkPublicUrl(options) : [],
      probe === 'true' || options.asking === null
        ? checkService(options)
        : withoutFault('service', checkAsked(options)),
    ]);
    const isThere = !database.some(({ name, status }) => name === 'database' && status === 'failing');
    // After the request to the service, which takes a slot of the budget.
    const [others = [], kept = [], alerts = []] = isThere
      ? await Promise.all([
          withoutFault('other addresses', checkOtherAddresses(options, { probes: probe === 'true' })),
          withoutFault('orders and events', checkKept(options, { countsAnew: probe === 'true' })),
          withoutFault('alerts', checkAlerts(options)),
        ])
      : [];
    const ours = [checkReadiness(options), checkClockSteps(options)];
    return {
      store: options.storeName,
      checks: [...ours, ...database, ...[address].flat(), ...others, ...service, ...kept, ...alerts],
    };
  },
});

/** A fault of the store is a finding too, so that every check without the store still runs. */
async function withoutFault(name: string, looking: Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await looking;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return [failing(name, fault.message)];
  }
}

function checkReadiness({ readiness }: ApiOptions): Finding {
  const state = readiness();
  return state.ready ? finding('ready', true, 'the store is open and can be written') : failing('ready', state.reason);
}

function checkClockSteps({ clockSteps }: ApiOptions): Finding {
  const latest = clockSteps.latest();
  if (latest === null) return finding('clock steps', true, 'the clock has not stepped since the start');
  const way = latest.byMs > 0 ? 'ahead' : 'back';
  const step = `the clock stepped ${inWords(Math.abs(latest.byMs))} ${way}, ${inWords(latest.agoMs)} ago`;
  const meanwhile =
    'for an hour, settled drops no bytes and gives up no notice. Check the time service (NTP) of the machine whose clock ' +
    'counts: see Clock in docs/operations.md';
  return finding('clock steps', clockSteps.isTrusted(), step, `${step}: ${meanwhile}`);
}

/**
 * Asks for the merchant's profile: one request that shows the key, the merchant and the service's clock. It is sent as
 * openings of links are. While all other requests pause after a refused key or merchant, it finds out whether that is over.
 */
async function checkService({ asking, clock, store }: ApiOptions): Promise<Finding[]> {
  const none =
    'no API is configured: settled receives webhooks and registers links, but can neither open links nor ask. Set SETTLED_API_URL and SETTLED_API_KEY';
  if (asking === null) return [finding('service', false, none)];
  try {
    const { value, dateMs } = await asking.service.profile('create');
    const isActive = value.status === null || value.status === 'ACTIVE';
    const detail = `the API accepts the key of ${value.businessName ?? value.id}, which is ${value.status ?? 'there'}`;
    return [finding('service', isActive, detail), ...(dateMs === null ? [] : [checkClock(dateMs - clock.nowMs())])];
  } catch (fault) {
    if (fault instanceof Fault && fault.code.startsWith('store_')) {
      const detail = 'settled did not ask the API: a request takes a slot of the budget, which the database keeps';
      return [finding('service', false, detail)];
    }
    const known = cannotAsk(await store.openTroubles().catch(() => []));
    return [failing('service', `${known === null ? '' : `${known} Now: `}${(fault as Error).message}`)];
  }
}

/** What the latest requests have shown, without sending one. */
async function checkAsked({ store, clockSteps }: ApiOptions): Promise<Finding[]> {
  const why = cannotAsk(await store.openTroubles());
  const aheadMs = clockSteps.serviceAheadMs();
  return [...(why === null ? [] : [failing('service', why)]), ...(aheadMs === null ? [] : [checkClock(aheadMs)])];
}

function checkClock(skewMs: number): Finding {
  const differ = clocksDiffer(skewMs);
  return finding('clock', differ === null, "the service's clock agrees with ours to 30 s", differ ?? '');
}

const PROBE_DEADLINE_MS = 5_000;

/** Sends a signed delivery to ourselves through the public address, to find what is wrong on the way. */
async function checkPublicUrl(options: ApiOptions): Promise<Finding> {
  const { publicUrl, publicUrlReaches } = options;
  const name = 'public address';
  try {
    const { status, arrives } = await sendProbe(options);
    if (!arrives) return failing(name, notArrived(options, status));
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    const detail = `a delivery to ${publicUrl} does not arrive (${cause?.code ?? message})`;
    return failing(name, `${detail}: check SETTLED_PUBLIC_URL, SETTLED_HOOKS_LISTEN, DNS and the proxy`);
  }
  const bad = `links carry ${publicUrl}, and the service cannot deliver there: set SETTLED_PUBLIC_URL to your https address`;
  return finding(name, publicUrlReaches, `a signed delivery to ${publicUrl} arrives`, bad);
}

/** Looked at this often at most: it reads every link that may still be paid. */
const ADDRESSES_AGES = { againMs: 60_000, oldMs: 300_000 } as const;
const ADDRESSES_MAX = 5;

export function openOtherAddresses({ store, clock, publicUrl }: Pick<ApiOptions, 'store' | 'clock' | 'publicUrl'>) {
  const make = () => store.otherAddresses({ publicUrl, limit: ADDRESSES_MAX, nowMs: clock.nowMs() });
  return openLatest({ clock, make, ...ADDRESSES_AGES });
}

/**
 * Links keep the public address that they were made with. A delivery to an older one has the token of a probe and no
 * link's: the domain may belong to somebody else by now.
 */
async function checkOtherAddresses(options: ApiOptions, { probes }: { probes: boolean }): Promise<Finding[]> {
  const { otherAddresses } = options;
  const found = await (probes ? otherAddresses.anew() : otherAddresses.get());
  if (found.length === 0) return [];
  const said = await Promise.all(
    found.map(async (other) => {
      const probe = () => sendProbe({ ...options, publicUrl: other.address }).catch(() => ({ arrives: false }));
      const { arrives } = probes ? await probe() : { arrives: null };
      const state = arrives === null ? '' : arrives ? ', and a signed delivery arrives there' : ', where none arrives';
      return { arrives, words: `${linksElsewhere(other)}${state}` };
    }),
  );
  const status = said.some(({ arrives }) => arrives === false) ? 'failing' : 'warning';
  const detail =
    `the service delivers what it says of older links to another address than SETTLED_PUBLIC_URL: ` +
    `${said.map(({ words }) => words).join('; ')}. Let those addresses lead to settled until then`;
  return [{ name: 'other addresses', status, detail }];
}

/** `arrives`: whether settled itself answered that it has recorded the delivery. */
async function sendProbe({ publicUrl, headerNames, keyring, clock }: ApiOptions) {
  const body = `{ "id": "doctor", "note": "bytes as they are: \u00e9 \u2028 1.0" } \n`;
  const sentAt = String(clock.nowMs());
  const mac = deliveryMac(keyring.probe.secret, sentAt, Buffer.from(body)).toString('hex');
  const { signature, timestamp } = headerNames;
  const answer = await fetch(`${publicUrl}/hooks/${keyring.probe.token}`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { 'content-type': 'application/json', [signature]: mac, [timestamp]: sentAt },
    signal: AbortSignal.timeout(PROBE_DEADLINE_MS),
  });
  const { status } = answer;
  return { status, arrives: status === 200 && (await hasBody(answer, ANSWERS.recorded.body)) };
}

function notArrived({ publicUrl, storeAddress }: ApiOptions, status: number): string {
  const replica =
    storeAddress.engine === 'sqlite' ? '' : ', or a replica with another SETTLED_SECRETS_KEY (see replicas)';
  const why =
    status === 401
      ? `its body or its headers were changed on the way (let the proxy pass them as they are), or another settled answers${replica}`
      : 'something else answers there: let the proxy pass POST /hooks/… on to SETTLED_HOOKS_LISTEN';
  return `a signed delivery to ${publicUrl} is answered ${status}: ${why}`;
}
