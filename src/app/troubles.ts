import { alertTroubles } from '../api/alerts.ts';
import { describeServer } from '../api/doctor_store.ts';
import { troubleSentence } from '../explain/attention_summary.ts';
import { sentence } from '../explain/glossary.ts';
import { clocksDiffer, linksElsewhere } from '../explain/service_status.ts';
import type { Cancel } from '../work/clock.ts';
import type { Context } from './context.ts';

const LOOK_EVERY_MS = 2_000;
/** An address is no trouble any more once the last of its links has expired, which changes nothing in the store. */
const READ_AGAIN_MS = 60_000;

/**
 * Tells this process's health and log what is wrong with the service, the shop, the clocks, the servers of the database,
 * the public address and alerts. The store keeps matters, so each replica says the same, also one that has just started.
 */
export function watchTroubles(context: Context): Cancel {
  const { store, otherAddresses, clock, clockSteps, health, pageLoads, log } = context;
  let known: ReadonlyMap<string, string> = new Map();
  let latest: Awaited<ReturnType<typeof readStore>> | null = null;

  async function readStore() {
    const atMs = clock.monotonicMs();
    const [open, addresses, alerts] = await Promise.all([
      store.openTroubles(),
      otherAddresses.get(),
      alertTroubles({ store }),
    ]);
    return { atMs, open, addresses, alerts };
  }

  async function look(): Promise<void> {
    const ageMs = clock.monotonicMs() - (latest?.atMs ?? 0);
    if (latest === null || ageMs >= READ_AGAIN_MS || store.quietMs() <= ageMs) latest = await readStore();
    const { open, addresses, alerts } = latest;
    const servers = await store.serverStates();
    if (health.draining) return;
    const matters = open.map((trouble): Told => [`${trouble.kind} ${trouble.subject}`, troubleSentence(trouble)]);
    const others: Told[] = servers
      .filter(({ role }) => role !== 'primary' && role !== 'standby')
      .map((server) => [`server_away ${server.name}`, sentence(describeServer(server))]);
    for (const other of addresses) {
      const words = `The service delivers events of ${linksElsewhere(other)}: it must still lead here.`;
      others.push([`other_address ${other.address}`, words]);
    }
    others.push(...alerts);
    const differ = clocksDiffer(clockSteps.serviceAheadMs());
    if (differ !== null) others.push(['clocks_differ', differ]);
    const now = new Map([...matters, ...others]);
    for (const [key, trouble] of now) {
      if (!known.has(key)) log.warn({ kind: key.split(' ', 1)[0], trouble }, 'this needs a person');
    }
    for (const key of known.keys()) {
      if (!now.has(key)) log.info({ kind: key.split(' ', 1)[0] }, 'this no longer needs a person');
    }
    known = now;
    const steps = clockSteps.latest() === null || clockSteps.isTrusted() ? [] : [CLOCK_STEPPED];
    health.knows(sentencesOf(matters), [...sentencesOf(others), ...steps]);
    // No page says an older thing than /readyz does from now on.
    pageLoads.forget();
  }

  // A store that cannot be read is the heartbeat's to report.
  const lookAgain = () => void look().catch(() => {});
  lookAgain();
  return clock.every(LOOK_EVERY_MS, lookAgain);
}

/** What is wrong: its kind and subject, and a sentence. */
type Told = [key: string, words: string];

const sentencesOf = (troubles: readonly Told[]) => troubles.map(([, words]) => words);

const CLOCK_STEPPED = 'The clock stepped within the last hour: see settled doctor.';
