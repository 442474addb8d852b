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
  /** Resolves when so many are acknowledged; rejects if a connection has failed. */
  goesOn(enough: number): Promise<void>;
  end(): Promise<void>;
};

/** Sends a delivery for one of the load's connections. Returns the status of the answer. */
type Send = (link: Reserved, body: string, connection: number, agent: Agent) => Promise<number>;

/** To all replicas at once. */
export function toEach(replicas: readonly Serving[]): Send {
  return async (link, body, connection, agent) => {
    return (await deliver(replicas[connection % replicas.length] as Serving, link, body, agent)).status;
  };
}

/** Delivers one event of the links after the other until it is ended. Each is answered. */
export function startLoad(send: Send, links: readonly Reserved[]): RunningLoad {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  const agent = new Agent({ keepAlive: true });
  let isOver = false;
  let sent = 0;
  const working = Array.from({ length: 12 }, async (_, connection) => {
    while (!isOver) {
      const n = sent++;
      const link = links[n % links.length] as Reserved;
      const eventId = `evt_${link.reference}_${n}`;
      for (let status = 0; status !== 200 && !isOver; ) {
        status = await send(link, eventOf(link, eventId), connection, agent);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 200) acknowledged.push(eventId);
        await after(PAUSE_MS);
      }
    }
  });
  return {
    acknowledged,
    statuses,
    goesOn: async (enough) => {
      const isEnough = eventually(() => expect(acknowledged.length).toBeGreaterThan(enough));
      await Promise.race([Promise.all(working), isEnough]);
    },
    end: async () => {
      isOver = true;
      await Promise.all(working);
      agent.destroy();
    },
  };
}
