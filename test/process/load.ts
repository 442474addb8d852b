import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { expect } from 'vitest';
import { deliver, eventOf, type Reserved } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { get } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

/** Deliveries that go on while something fails. */

/** Between an answer and the next delivery of a connection: a failure takes seconds, and a steady load is enough. */
const PAUSE_MS = 30;

export async function expectReady(replicas: readonly Serving[]): Promise<void> {
  for (const serving of replicas) {
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(200));
  }
}

export type RunningLoad = {
  /** The ids of the events that were. */
  acknowledged: string[];
  /** How many deliveries were answered how. */
  statuses: Map<number, number>;
  /** Resolves when so many are acknowledged. */
  goesOn(enough: number): Promise<void>;
  end(): Promise<void>;
};

/** Delivers one event of the links after the other, to all replicas at once, until it is ended. Each is answered. */
export function startLoad(replicas: readonly Serving[], links: readonly Reserved[]): RunningLoad {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  const agent = new Agent({ keepAlive: true });
  let isOver = false;
  let sent = 0;
  const working = Array.from({ length: 12 }, async (_, index) => {
    const serving = replicas[index % replicas.length] as Serving;
    while (!isOver) {
      const n = sent++;
      const link = links[n % links.length] as Reserved;
      const eventId = `evt_${link.reference}_${n}`;
      for (let status = 0; status !== 200 && !isOver; ) {
        ({ status } = await deliver(serving, link, eventOf(link, eventId), agent));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 200) acknowledged.push(eventId);
        await after(PAUSE_MS);
      }
    }
  });
  return {
    acknowledged,
    statuses,
    goesOn: (enough) => eventually(() => expect(acknowledged.length).toBeGreaterThan(enough)),
    end: async () => {
      isOver = true;
      await Promise.all(working);
      agent.destroy();
    },
  };
}
