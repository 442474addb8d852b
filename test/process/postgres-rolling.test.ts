import { Agent } from 'node:http';
import { describe, expect, it } from 'vitest';
import { deliver, type Reserved } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { newDatabase } from '../store/postgres/opening.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { startLoad } from './load.ts';
import { expectPaidOnce, lookInto, sharedEnvironment, startReplicas, storedEventIds } from './sharing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const REPLICAS = 2;
const CONNECTIONS = 8;
/** Links whose events come before, between and after the restarts. */
const LINKS = 24;

describe('a rolling restart under load', () => {
  it('loses no delivery, and fails none but with 503 or a refused connection', async () => {
    const url = await newDatabase();
    const database = lookInto(url);
    const environment = sharedEnvironment(url);
    const replicas = await startReplicas(environment, REPLICAS);
    const links = await Promise.all(Array.from({ length: LINKS }, (_, n) => replicas[0].reserve(`order-${n + 1}`)));
    const balancer = new Balancer(replicas);
    const load = startLoad((link, body) => balancer.deliver(link, body), links);
    const goesOn = () => load.goesOn(load.acknowledged.length + 40);
    for (const [index, serving] of [...replicas].entries()) {
      await goesOn();
      expect((await serving.end('SIGTERM')).code).toBe(0);
      await goesOn();
      const [again] = await startReplicas(environment, 1);
      balancer.replace(index, again);
    }
    await goesOn();
    await load.end();

    const { failures, gaveWay } = balancer;
    expect([...failures.keys()].filter((failure) => failure !== '503' && failure !== 'ECONNREFUSED')).toEqual([]);
    expect(gaveWay, 'replicas that said that they go').toBe(REPLICAS);
    const stored = await storedEventIds(database);
    expect(load.acknowledged.filter((eventId) => !stored.has(eventId))).toEqual([]);
    await expectPaidOnce(database, links);
    await eventually(async () => {
      const { rows } = await database.query("SELECT FROM inbox WHERE status <> 'done'");
      expect(rows).toHaveLength(0);
    });
  });
});

/** Sends each delivery to the next replica; one that refuses, or says that it closes, gets none until it was replaced. */
class Balancer {
  /** Attempts that were not acknowledged, by status or error. */
  readonly failures = new Map<string, number>();
  gaveWay = 0;
  readonly #places: { serving: Serving; isLeaving: boolean; agent: Agent }[];
  #turn = 0;

  constructor(replicas: readonly Serving[]) {
    this.#places = replicas.map(placeOf);
  }

  replace(index: number, serving: Serving): void {
    this.#places[index]?.agent.destroy();
    this.#places[index] = placeOf(serving);
  }

  /** Returns 200. */
  async deliver(link: Reserved, body: string): Promise<number> {
    for (;;) {
      const place = this.#next();
      const outcome = await deliver(place.serving, link, body, place.agent).then(
        ({ status, headers }) => ({ said: String(status), closes: headers.connection === 'close' }),
        (error: NodeJS.ErrnoException) => ({ said: error.code ?? 'unknown', closes: true }),
      );
      if (outcome.closes && !place.isLeaving) {
        place.isLeaving = true;
        this.gaveWay++;
      }
      if (outcome.said === '200') return 200;
      this.failures.set(outcome.said, (this.failures.get(outcome.said) ?? 0) + 1);
    }
  }

  #next(): { serving: Serving; isLeaving: boolean; agent: Agent } {
    const here = this.#places.filter(({ isLeaving }) => !isLeaving);
    const place = here[this.#turn++ % here.length];
    if (place === undefined) throw new Error('no replica is left');
    return place;
  }
}

function placeOf(serving: Serving) {
  return { serving, isLeaving: false, agent: new Agent({ keepAlive: true, maxSockets: CONNECTIONS }) };
}
