import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { type Chance, chanceOf } from '../../prove/harness/chance.ts';
import { type Serving, serveEnvironment, whenServing } from '../../prove/harness/settled.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { spawnSettled } from '../support/process.ts';
import { times } from '../support/timing.ts';

const KILLS = Number(process.env.AUDIT_KILLS ?? times(2, 200));
const SEED = Number(process.env.KILL_SEED ?? Date.now() % 2_147_483_647);
const AT_ONCE = 8;
/** A life ends after at most this many answers. */
const ANSWERS_MAX = 60;

/** People change things over and over until the process dies; answers that never came may have been carried out or not. */
class People {
  acknowledged: string[] = [];
  interrupted = 0;
  #names = 0;
  readonly #chance: Chance;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  async liveOnce(environment: Record<string, string>): Promise<void> {
    const serving = await whenServing(spawnSettled(['serve'], environment));
    const target = this.acknowledged.length + this.#chance.between(1, ANSWERS_MAX);
    const enough = Promise.withResolvers<void>();
    let isKilled = false;
    const working = Array.from({ length: AT_ONCE }, async () => {
      while (!isKilled) {
        await this.#change(serving).catch(() => this.interrupted++);
        if (this.acknowledged.length >= target) enough.resolve();
      }
    });
    await enough.promise;
    await after(this.#chance.below(10));
    const end = serving.end('SIGKILL');
    isKilled = true;
    await Promise.all(working);
    await end;
  }

  /** One of the changes that a person makes, each to something that nothing else changes. */
  async #change({ api }: Serving): Promise<void> {
    const name = `n${++this.#names}`;
    const inTen = this.#chance.below(10);
    if (inTen < 4) await this.#expect(api('/v1/tokens', { name, role: 'viewer' }), `add_token ${name}`);
    else if (inTen < 6) {
      await this.#expect(api('/v1/tokens', { name, role: 'viewer' }), `add_token ${name}`);
      await this.#expect(api(`/v1/tokens/${name}/revoke`, {}), `revoke_token ${name}`);
    } else await this.#expect(api('/v1/links', { reference: name, amount: '100.00' }), `register_link ${name}`);
  }

  async #expect(answer: ReturnType<Serving['api']>, what: string): Promise<void> {
    const { status } = await answer;
    if (status === 200 || status === 201) this.acknowledged.push(what);
    else throw new Error(`${what} was answered ${status}`);
  }
}

it(`a change and its row of the audit are both there or neither is, over ${KILLS} kills`, async () => {
  console.log(`kill -9 during changes: seed ${SEED} (KILL_SEED=${SEED} repeats it)`);
  const storePath = join(testFolder(), 'settled.db');
  const environment = serveEnvironment(storePath);
  const people = new People(chanceOf(SEED));
  for (let kill = 0; kill < KILLS; kill++) await people.liveOnce(environment);
  const db = new Database(storePath, { readonly: true });
  const list = (sql: string) =>
    db
      .prepare<[], { what: string }>(sql)
      .all()
      .map(({ what }) => what);
  const audited = list("SELECT action || ' ' || subject AS what FROM audit ORDER BY what");
  const changed = list(`
    SELECT 'add_token ' || name AS what FROM access_token
    UNION ALL SELECT 'revoke_token ' || name FROM access_token WHERE revoked_at_ms IS NOT NULL
    UNION ALL SELECT 'register_link ' || reference FROM orders ORDER BY what`);
  db.close();
  expect(audited).toEqual(changed);
  expect(people.acknowledged.filter((what) => !audited.includes(what))).toEqual([]);
  expect(people.interrupted).toBeGreaterThan(KILLS / 2);
  const { body } = await (await startTestApp({ engine: 'sqlite', storePath })).api('/v1/audit/verification');
  expect(body).toMatchObject({ isWhole: true, rows: audited.length });
  console.log(`kill -9 during changes: ${audited.length} changes, ${people.interrupted} requests interrupted`);
});
