import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Chance } from '../harness/chance.ts';
import type { RunningProcess } from '../harness/program.ts';
import { ROOT, type Serving, startSettled, whenServing } from '../harness/settled.ts';

/** The exit code of a start to try again: a migration does not wait for a table that the other replicas keep busy. */
const TRY_AGAIN = 75;

type ReplicaOptions = {
  name: string;
  environment: Record<string, string>;
  /** Whether others use its database, for which a start may have to be tried again. */
  hasOthers: boolean;
  /** The folder of what it prints; null for nowhere. */
  logs: string | null;
  onSurprise: (what: string) => void;
};

/** One of the replicas, or one that is alone, through all its restarts. */
export class Replica {
  readonly #options: ReplicaOptions;
  #life: RunningProcess | null = null;
  /** Null while it does not serve. */
  served: Serving | null = null;
  isMeantToLive = false;
  /** How many of its starts were to be tried again, and were. */
  repeated = 0;
  /** The folder of its program. */
  checkout = ROOT;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Resolves when it serves, or when it was killed before that. */
  async start(): Promise<void> {
    this.isMeantToLive = true;
    while (await this.#tryStart()) this.repeated++;
  }

  /** Returns whether to try again. */
  async #tryStart(): Promise<boolean> {
    const { name, environment, logs, onSurprise } = this.#options;
    const life = startSettled(environment, this.checkout);
    this.#life = life;
    if (logs !== null) {
      const log = createWriteStream(join(logs, `${name}.log`), { flags: 'a' });
      life.child.stdout?.pipe(log);
      life.child.stderr?.pipe(log);
    }
    const serving = whenServing(life).catch(() => null);
    const isRefused = async () =>
      this.#options.hasOthers && (await serving) === null && life.child.exitCode === TRY_AGAIN;
    void life.finished.then(async ({ code, signal }) => {
      this.served = null;
      if (this.isMeantToLive && this.#life === life && !(await isRefused())) {
        onSurprise(`${name} ended unexpectedly: ${signal ?? `exit code ${code}`}`);
      }
    });
    const served = await serving;
    if (!this.isMeantToLive || this.#life !== life) return false;
    this.served = served;
    return isRefused();
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.isMeantToLive = false;
    this.served = null;
    return (await this.#life?.end(signal))?.code ?? null;
  }
}

/** The replicas: processes of settled that share one database, and a key of its secrets. */
export class Fleet {
  readonly surprises: string[] = [];
  kills = 0;
  readonly #replicas: Replica[];
  readonly #restarts: Promise<void>[] = [];

  constructor(count: number, given: Record<string, string>, logs: string) {
    const environment = { SETTLED_SECRETS_KEY: randomBytes(32).toString('base64'), ...given };
    const onSurprise = (what: string) => void this.surprises.push(what);
    this.#replicas = Array.from(
      { length: count },
      (_, index) => new Replica({ name: `replica-${index + 1}`, environment, hasOthers: true, logs, onSurprise }),
    );
  }

  /** @param checkout the program with which they begin */
  async start(checkout: string): Promise<void> {
    await Promise.all(
      this.#replicas.map((replica) => {
        replica.checkout = checkout;
        return replica.start();
      }),
    );
    this.#expectAlive();
  }

  /** How many starts were to be tried again. */
  get repeated(): number {
    return this.#replicas.reduce((sum, replica) => sum + replica.repeated, 0);
  }

  get count(): number {
    return this.#replicas.length;
  }

  /** Kills one, and restarts it with the program of this checkout. */
  async upgrade(index: number): Promise<void> {
    const replica = this.#replicas[index] as Replica;
    replica.checkout = ROOT;
    await this.#killAndRestart(replica);
  }

  #expectAlive(): void {
    if (this.surprises.length > 0) throw new Error(this.surprises.join('; '));
  }

  /** A random one; null if that one does not serve. Throws if one of them ended without being killed. */
  any(chance: Chance): Serving | null {
    this.#expectAlive();
    return chance.pick(this.#replicas).served;
  }

  /**
   * Kills a random one, whatever it is doing, and restarts it at once. Kills none while at most half of them serve:
   * otherwise none would ever serve on a slow machine.
   */
  async killOne(chance: Chance): Promise<void> {
    const serving = this.#replicas.filter(({ served }) => served !== null).length;
    if (serving <= this.#replicas.length / 2) return;
    this.kills++;
    await this.#killAndRestart(chance.pick(this.#replicas));
  }

  async #killAndRestart(replica: Replica): Promise<void> {
    await replica.end('SIGKILL');
    // Unless another kill of it was answered by a restart meanwhile.
    if (!replica.isMeantToLive) this.#restarts.push(replica.start());
  }

  /** Resolves when all of them serve, or have ended. */
  async whole(): Promise<void> {
    await Promise.all(this.#restarts);
  }

  /** Stops all of them with SIGTERM. */
  async stop(): Promise<void> {
    const codes = await Promise.all(this.#replicas.map((replica) => replica.end('SIGTERM')));
    for (const code of codes) if (code !== 0) this.surprises.push(`a replica stopped with exit code ${code}`);
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.end('SIGKILL')));
  }
}
