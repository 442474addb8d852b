import { z } from 'zod';
import { summarizeAttention } from '../explain/attention_sentences.ts';
import { inNumber, iso, restoredSentence } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import { deliveryMac } from '../paylink/events.ts';
import { ANSWERS } from '../receive/answers.ts';
import type { LeaseCounts, ReplicaSummary } from '../store/contract.ts';
import { inWords } from '../work/clock.ts';
import { freeBytes } from './admin.ts';
import { checkShop } from './notices.ts';
import { type ApiOptions, ok, operation } from './route.ts';

const check = z
  .strictObject({
    name: z.string().meta({ examples: ['disk'] }),
    status: z.enum(['ok', 'warning', 'failing']),
    detail: z.string().describe('What was found, and what to do about it.'),
  })
  .meta({ id: 'Check' });
export type Finding = z.output<typeof check>;

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
  summary: 'Check the installation',
  description:
    'It sends a signed delivery to itself through the public address, and asks the service who it is. If the database ' +
    'cannot be read, that is a check that fails, and the checks that need it are left out.',
  answers: ok(
    'What was found.',
    { store: z.string().describe('The database that this server works on.'), checks: z.array(check) },
    { store: '/data/settled.db', checks: FOUND },
  ),
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
    return [failing(name, fault.message)];
  }
}

/** Ok with the first detail, else a warning with the second. */
function finding(name: string, isOk: boolean, good: string, bad = good): Finding {
  return isOk ? { name, status: 'ok', detail: good } : { name, status: 'warning', detail: bad };
}

function failing(name: string, detail: string): Finding {
  return { name, status: 'failing', detail };
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
    'for an hour no bytes are dropped and no notice is given up. Look at the time service (NTP) of the machine whose clock ' +
    'counts: see Clock in docs/operations.md';
  return finding('clock steps', clockSteps.isTrusted(), step, `${step}: ${meanwhile}`);
}

/** Less free space than this is worth a warning before it becomes an outage. */
const FREE_BYTES_LOW = 256 * 1024 * 1024;
/** The database's clock decides what is due and which deliveries are fresh; a machine's own clock shows in its log. */
const SKEW_MS_SMALL = 2_000;

/** The database, and the replicas that share it. */
async function checkDatabase(options: ApiOptions): Promise<Finding[]> {
  const { store, storeAddress, clock, keyring, replica } = options;
  const { server, replicas, lapsed } = await store.storeState(clock.nowMs());
  const database = finding('database', true, `${server}: ${storeAddress.name}`);
  if (storeAddress.engine === 'sqlite') return [database, await checkDisk(storeAddress.path)];
  const alive = replicas.filter(({ isAlive }) => isAlive);
  return [
    database,
    checkReplicas(replicas, keyring.keyId, replica),
    checkSettings(alive, replica),
    checkClocks(alive),
    checkLeases(lapsed),
  ];
}

async function checkDisk(path: string): Promise<Finding> {
  const bytes = await freeBytes(path);
  if (bytes === null) return finding('disk', false, 'the free space cannot be read');
  return finding('disk', bytes >= FREE_BYTES_LOW, `${Math.floor(bytes / 1024 / 1024)} MiB are free for the database`);
}

function checkReplicas(replicas: readonly ReplicaSummary[], keyId: string, own: string | null): Finding {
  const alive = replicas.filter(({ isAlive }) => isAlive);
  const silent = replicas.filter(({ isAlive }) => !isAlive);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId !== keyId);
  const said = [`alive: ${alive.map((replica) => describe(replica, replica.name === own)).join('; ')}`];
  if (silent.length > 0) {
    said.push(`silent: ${silent.map(({ name, aliveAtMs }) => `${name} since ${iso(aliveAtMs)}`).join('; ')}`);
  }
  if (others.length > 0) {
    said.push(
      `with another SETTLED_SECRETS_KEY than this one: ${others.map(({ name }) => name).join(', ')}. Unless the key is ` +
        'being changed, give all the same: see Keys in docs/operations.md',
    );
  }
  return finding('replicas', others.length === 0, said.join('. '));
}

/** The name is the one that it wrote into its log when it began to serve. */
function describe({ name, version, startedAtMs, leases }: ReplicaSummary, isOwn: boolean): string {
  return `${name} (${isOwn ? 'this one, ' : ''}${version}, since ${iso(startedAtMs)}, holds ${held(leases) || 'nothing'})`;
}

/** Leases in words; empty if there are none. */
function held({ events, openings, notices }: LeaseCounts): string {
  return Object.entries({ event: events, opening: openings, notice: notices })
    .filter(([, count]) => count > 0)
    .map(([what, count]) => inNumber(count, what, `${what}s`))
    .join(', ');
}

/** Compares the settings of replicas that have the same secrets key: it makes the digests. */
function checkSettings(alive: readonly ReplicaSummary[], own: string | null): Finding {
  const here = alive.find(({ name }) => name === own);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId === here?.secretsKeyId);
  const differing = Object.entries(here?.settings ?? {}).flatMap(([setting, digest]) => {
    const elsewhere = others.filter(({ settings }) => (settings[setting] ?? digest) !== digest);
    return elsewhere.length === 0 ? [] : [`${setting} (${elsewhere.map((one) => one.name).join(', ')})`];
  });
  const bad =
    `other replicas have other values than this one: ${differing.join('; ')}. Give all the same: docs/postgres.md, The ` +
    'replicas, says what comes of it';
  const good = 'replicas that have the same secrets key have the same settings';
  return finding('settings', differing.length === 0, good, bad);
}

function checkClocks(alive: readonly ReplicaSummary[]): Finding {
  const most = Math.max(0, ...alive.map(({ skewMs }) => Math.abs(skewMs)));
  const wrong = alive
    .filter(({ skewMs }) => Math.abs(skewMs) > SKEW_MS_SMALL)
    .map(({ name, skewMs }) => `${name} is ${inWords(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`);
  const bad =
    `clocks differ from the database's: ${wrong.join(', ')}. settled goes by the database's clock; set the clocks of both ` +
    'machines (NTP), or what the database is right about looks wrong in logs, and the other way round';
  const good = `no replica's clock is further than ${inWords(most)} from the database's`;
  return finding('database clock', wrong.length === 0, good, bad);
}

function checkLeases(lapsed: LeaseCounts): Finding {
  const said = held(lapsed);
  const bad =
    `begun, not ended in time, and not taken over so far: ${said}. Any replica does that within seconds; if this stays, ` +
    'look at the logs of the replicas and at the load of the database';
  return finding('leases', said === '', 'no lapsed lease waits to be taken over', bad);
}

/** A `Date` header has whole seconds, and the answer travelled. */
const SERVICE_SKEW_MS_SMALL = 5_000;

/**
 * Asks for the merchant's profile: one request that shows the key, the merchant and the service's clock. It is sent as
 * openings of links are. While all other requests pause after a refused key or merchant, it finds out whether that is over.
 */
async function checkService({ asking, clock }: ApiOptions): Promise<Finding[]> {
  const none =
    'no API is configured: settled receives and registers, and cannot open links or ask. Set SETTLED_API_URL and SETTLED_API_KEY';
  if (asking === null) return [finding('service', false, none)];
  try {
    const { value, dateMs } = await asking.service.profile('create');
    const isActive = value.status === null || value.status === 'ACTIVE';
    const detail = `the API takes the key of ${value.businessName ?? value.id}, which is ${value.status ?? 'there'}`;
    return [finding('service', isActive, detail), ...(dateMs === null ? [] : [checkClock(dateMs - clock.nowMs())])];
  } catch (fault) {
    if (fault instanceof Fault && fault.code.startsWith('store_')) {
      const detail = 'settled did not ask the API: a request takes a slot of the budget, which the database keeps';
      return [finding('service', false, detail)];
    }
    return [failing('service', (fault as Error).message)];
  }
}

function checkClock(skewMs: number): Finding {
  const isSmall = Math.abs(skewMs) <= SERVICE_SKEW_MS_SMALL;
  const skew = `the service's clock is ${inWords(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} ours`;
  return finding('clock', isSmall, skew, `${skew}: deliveries look stale. Set this machine's clock`);
}

const PROBE_DEADLINE_MS = 5_000;

/** Sends a signed delivery to ourselves through the public address, to find what is wrong on the way. */
async function checkPublicUrl(options: ApiOptions): Promise<Finding> {
  const { publicUrl, publicUrlReaches } = options;
  const name = 'public address';
  try {
    const answer = await sendProbe(options);
    const isOurs = answer.status === 200 && (await answer.text()) === ANSWERS.recorded.body;
    if (!isOurs) return failing(name, notArrived(options, answer.status));
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    const detail = `a delivery to ${publicUrl} does not arrive (${cause?.code ?? message})`;
    return failing(name, `${detail}: check SETTLED_PUBLIC_URL, DNS and the proxy`);
  }
  const bad = `links carry ${publicUrl}, and the service cannot deliver there: set SETTLED_PUBLIC_URL to your https address`;
  return finding(name, publicUrlReaches, `a signed delivery to ${publicUrl} arrives`, bad);
}

function sendProbe({ publicUrl, headerNames, keyring, clock }: ApiOptions): Promise<Response> {
  const body = `{ "id": "doctor", "note": "bytes as they are: \u00e9 \u2028 1.0" } \n`;
  const sentAt = String(clock.nowMs());
  const mac = deliveryMac(keyring.probe.secret, sentAt, Buffer.from(body)).toString('hex');
  const { signature, timestamp } = headerNames;
  return fetch(`${publicUrl}/hooks/${keyring.probe.token}`, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { 'content-type': 'application/json', [signature]: mac, [timestamp]: sentAt },
    signal: AbortSignal.timeout(PROBE_DEADLINE_MS),
  });
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

/** Checks of what the store has. */
async function checkKept(options: ApiOptions): Promise<Finding[]> {
  const { store, clock, apiSlots, keyring } = options;
  const stats = await store.stats(clock.nowMs());
  const { restoredFromMs } = stats.feed;
  const inUse = stats.api.slotsInUse;
  return [
    finding('api budget', inUse < apiSlots, `${inUse} of ${apiSlots} requests a minute are in use`),
    finding('settlement', stats.lagMs < 10_000, `the oldest unsettled event is due for ${stats.lagMs / 1000} s`),
    await checkAttention(options),
    { name: 'shop', ...(await checkShop(options, stats)) },
    checkSecrets(await store.countUnopenable(keyring.keyIds)),
    restoredFromMs === null
      ? finding('restore', true, 'no links are looked for after a restore')
      : finding('restore', false, `${restoredSentence(restoredFromMs)} What a person has to do: settled attention`),
  ];
}

/** In the words of `settled attention`. */
async function checkAttention({ store, clock }: ApiOptions): Promise<Finding> {
  const matters = await store.listMatters({ kind: null, state: null, after: null, limit: 0 });
  const said = summarizeAttention(matters, { nowMs: clock.nowMs(), isFiltered: false });
  return finding('needs a person', matters.groups.length === 0, said, `${said} See: settled attention`);
}

/** `links`: how many have a signing secret that no known key opens. */
function checkSecrets(links: number): Finding {
  const bad =
    `the signing secrets of ${inNumber(links, 'link', 'links')} cannot be opened with the known keys: settled answers their ` +
    'deliveries with 503, and learns of their payments by asking. See Keys in docs/operations.md';
  return finding('secrets', links === 0, "a known key opens every link's signing secret", bad);
}
