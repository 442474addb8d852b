import { DatabaseError } from 'pg';
import { Fault } from '../../fault.ts';
import type { PostgresAddress } from '../address.ts';
import type { PostgresCapability, Probed, ProbeOptions } from '../probed.ts';
import { storeFault } from './faults.ts';
import { type Ground, LEFT_BEHIND, openGround, type Probe } from './probe_ground.ts';
import { ROW_PROBES } from './probe_rows.ts';
import { SERVER_PROBES } from './probe_server.ts';
import { SESSION_PROBES } from './probe_sessions.ts';

/** The time limits of one statement and of the whole probe. */
const LIMITS = { oneMs: 8_000, allMs: 45_000 } as const;
const FOUND_LENGTH_MAX = 120;
const REMOVE_TRIES = 3;

type Options = ProbeOptions & { address: PostgresAddress; direct: PostgresAddress };

/** Probes of tables need one, which the first of them makes. */
const PROBES: Readonly<Record<PostgresCapability, Probe>> = { ...SERVER_PROBES, ...SESSION_PROBES, ...ROW_PROBES };

/** Tries the capabilities one after the other, and undoes what each leaves before the next. */
export async function probePostgres(options: Options): Promise<Probed[]> {
  const { address, clock, signal } = options;
  try {
    const ground = await openGround(options);
    try {
      await removeLeftovers(ground);
      const untilMs = clock.monotonicMs() + LIMITS.allMs;
      const probed: Probed[] = [];
      for (const [capability, probe] of Object.entries(PROBES) as [PostgresCapability, Probe][]) {
        if (signal.aborted) break;
        const isLate = clock.monotonicMs() > untilMs;
        const seen = isLate ? missing('out of time') : await tryOne(probe, ground, options);
        probed.push({ capability, ...seen });
        await ground.reset();
      }
      return probed;
    } finally {
      await remove(ground);
      await ground.close();
    }
  } catch (error) {
    throw storeFault(error, address.name);
  }
}

function missing(found: string): Awaited<ReturnType<Probe>> {
  return { verdict: 'missing', found };
}

/** A refused or unanswered statement is a finding. */
async function tryOne(probe: Probe, ground: Ground, { clock, signal }: Options): ReturnType<Probe> {
  const over = Promise.withResolvers<Awaited<ReturnType<Probe>>>();
  const cancel = clock.after(LIMITS.oneMs, () => over.resolve(missing(`no answer in ${LIMITS.oneMs / 1000} s`)));
  const stop = () => over.resolve(missing('stopped'));
  signal.addEventListener('abort', stop);
  try {
    const trying = probe(ground);
    trying.catch(() => {});
    return await Promise.race([trying, over.promise]);
  } catch (error) {
    if (!(error instanceof DatabaseError) && !(storeFault(error, '') instanceof Fault)) throw error;
    const { message } = error as Error;
    return missing(message.split('\n', 1)[0]?.slice(0, FOUND_LENGTH_MAX) ?? '');
  } finally {
    cancel();
    signal.removeEventListener('abort', stop);
  }
}

type LeftBehind = { name: string; removal: string };

/** Removes what this run made, even if its connections are lost. */
async function remove(ground: Ground): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await ground.reset();
      const { rows } = await ground.one.query<LeftBehind>(LEFT_BEHIND);
      const own = rows.filter(({ name }) => name.startsWith(ground.name));
      for (const { removal } of own) await ground.one.query(removal);
      return;
    } catch (error) {
      if (tries === REMOVE_TRIES) throw error;
    }
  }
}

/** Removes what killed runs made an hour ago or earlier; newer leftovers may belong to a running one. */
async function removeLeftovers({ one, clock }: Ground): Promise<void> {
  const { rows } = await one.query<LeftBehind>(LEFT_BEHIND);
  for (const { name, removal } of rows) {
    const [, madeAtMs] = /^settled_probe_([0-9]+)_/.exec(name) ?? [];
    if (Number(madeAtMs) < clock.nowMs() - 3_600_000) await one.query(removal).catch(() => {});
  }
}
