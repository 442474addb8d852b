import { DatabaseError } from 'pg';
import { Fault } from '../../fault.ts';
import type { PostgresAddress } from '../address.ts';
import type { PostgresCapability, Probed, ProbeOptions } from '../contract_probe.ts';
import { storeFault } from './faults.ts';
import { type Ground, LEFT_BEHIND, openGround, type Probe } from './probe_ground.ts';
import { ROW_PROBES } from './probe_rows.ts';
import { SERVER_PROBES } from './probe_server.ts';
import { SESSION_PROBES } from './probe_sessions.ts';

/** A statement that is not answered is given up by then, and all of it a while later. */
const LIMITS = { oneMs: 8_000, allMs: 45_000 } as const;
const FOUND_LENGTH_MAX = 120;
const REMOVE_TRIES = 3;

type Options = ProbeOptions & { address: PostgresAddress; direct: PostgresAddress };

/** Those of a table need one, which the first of them makes. */
const PROBES: Readonly<Record<PostgresCapability, Probe>> = { ...SERVER_PROBES, ...SESSION_PROBES, ...ROW_PROBES };

/** Tries one capability after the other. What one of them leaves is undone before the next. */
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

/** A refused statement, or one that nothing answers, is what was to be found out. */
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

/** What a run made, even if its connections are lost. */
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

/** What runs made that were killed, an hour ago or earlier: another one may be at work. */
async function removeLeftovers({ one, clock }: Ground): Promise<void> {
  const { rows } = await one.query<LeftBehind>(LEFT_BEHIND);
  for (const { name, removal } of rows) {
    const [, madeAtMs] = /^settled_probe_([0-9]+)_/.exec(name) ?? [];
    if (Number(madeAtMs) < clock.nowMs() - 3_600_000) await one.query(removal).catch(() => {});
  }
}
