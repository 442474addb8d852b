import { createServer } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { paymentEvent } from '../test/support/deliveries.ts';
import { listen } from '../test/support/network.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { type Mail, openMailServer } from './alerts/mail.ts';
import { proveSurfaces } from './alerts/surfaces.ts';
import { type Told, verdict } from './alerts/verdict.ts';
import { type Chance, chanceOf } from './harness/chance.ts';
import { command, facts, type Given, inFolder, oneOf, say, seed, whole } from './harness/proof.ts';
import { deliver } from './harness/send.ts';
import { type Serving, startSettled, whenServing } from './harness/settled.ts';
import { eachAtOnce } from './harness/wait.ts';

/**
 * `npm run prove:alerts`: orders are held, or get an event that names another link, and a person ends each within the same
 * minute. The hook and the mail server are down meanwhile and for minutes more, and processes are killed, some as a message
 * arrives. Each matter must be told once when it opened and once when it was over, in order, and a message comes again only
 * after a kill, under its id.
 */

const OPTIONS = {
  part: oneOf('PART', 'told, or surfaces: after how many seconds each says of a trouble', ['told', 'surfaces']),
  engine: oneOf('ENGINE', 'postgres, with two replicas, or sqlite', ['postgres', 'sqlite']),
  matters: whole('matters that open and end', 1_000),
  'down-seconds': whole('how long the channels take nothing', 600),
  kills: whole('kills of a process', 20),
  seed: seed(),
};

const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const AT_ONCE = 16;
/** Nothing more comes if nothing came for so long: messages are a minute apart, and leases last less. */
const SILENT_MS = 150_000;

/** Processes on one store, of which one after the other is killed. */
class Replicas {
  readonly #environment: Record<string, string>;
  readonly #running: (Serving | null)[];
  readonly killsAtMs: number[] = [];

  constructor(count: number, environment: Record<string, string>) {
    this.#environment = environment;
    this.#running = Array<null>(count).fill(null);
  }

  async start(): Promise<void> {
    for (const index of this.#running.keys()) this.#running[index] = await this.#serve();
  }

  async #serve(): Promise<Serving> {
    return whenServing(startSettled(this.#environment));
  }

  /** Kills a process with SIGKILL and starts another. */
  async kill(chance: Chance): Promise<void> {
    const index = chance.between(0, this.#running.length - 1);
    const one = this.#running[index];
    if (one === null || one === undefined) return;
    this.#running[index] = null;
    one.child.kill('SIGKILL');
    this.killsAtMs.push(performance.now());
    await one.finished;
    this.#running[index] = await this.#serve();
  }

  /** Repeats what a process that is killed did not do. */
  async untilDone<T>(work: (one: Serving) => Promise<T | null>): Promise<T> {
    for (;;) {
      const one = this.#running.find((running) => running !== null);
      const done = one === undefined ? null : await work(one).catch(() => null);
      if (done !== null) return done;
      await after(100);
    }
  }

  async stop(): Promise<void> {
    for (const one of this.#running) one?.child.kill('SIGKILL');
    await Promise.all(this.#running.map((one) => one?.finished));
  }
}

/** One matter: an order that is held, or an event of its link that names another. Returns once a person has ended it. */
async function openAndEnd(replicas: Replicas, n: number): Promise<void> {
  // A process that is killed may have reserved a link whose secret nobody got.
  let tries = 0;
  const link = await replicas.untilDone((one) => one.reserve(`order-${n}${tries++ === 0 ? '' : `r${tries}`}`));
  const { reference } = link;
  const isHeld = n % 2 === 0;
  const send = (linkId: string, id: string, amount: string) =>
    replicas.untilDone(async (one) => {
      const { status } = await deliver(one, link, paymentEvent({ id, linkId, amount }));
      return status === 200 ? true : null;
    });
  await send(`pl_${n}`, `evt_${n}`, isHeld ? '60.00' : '100.00');
  if (!isHeld) await send('pl_of_another', `evt_other_${n}`, '100.00');
  let isFound = false;
  await replicas.untilDone(async (one) => {
    const path = isHeld ? `/v1/orders/${reference}` : `/v1/attention?kind=link_mismatch&limit=${3 * AT_ONCE}`;
    const { order, attention = [] } = (await one.api(path)).body;
    const id = attention.find((matter: { reference: string }) => matter.reference === reference)?.id;
    const isOpen = isHeld ? order.state === 'held' : id !== undefined;
    // A process that was killed may have ended it.
    if (!isOpen) return isFound ? true : null;
    isFound = true;
    const { status } = isHeld
      ? await one.api(`${path}/resolve`, { decision: 'accept', reason: 'seen' })
      : await one.api(`/v1/attention/${id}/end`, { reason: 'seen' });
    return status === 200 || status === 409 || status === 404 ? true : null;
  });
}

async function prove(given: Given<typeof OPTIONS>, folder: string) {
  const chance = chanceOf(given.seed);
  const told: Told[] = [];
  let isDown = false;
  let onArrival = () => {};
  const server = createServer(async (request, response) => {
    if (isDown) return void request.socket.destroy();
    const body = Buffer.concat(await request.toArray()).toString();
    told.push({
      channel: 'url',
      id: String(request.headers['webhook-id']),
      atMs: performance.now(),
      said: JSON.parse(body),
    });
    onArrival();
    // A process that is killed now does not know that it was taken.
    setTimeout(() => response.writeHead(204).end(), 30);
  });
  const hook = await listen(server);
  const mail = await openMailServer(folder, (taken: Mail) => {
    told.push({ channel: 'mail', id: taken.id, atMs: performance.now(), said: taken.text });
    onArrival();
  });
  const setDown = (down: boolean) => {
    isDown = down;
    mail.setDown(down);
  };
  const postgres = given.engine === 'postgres' ? await startPostgres() : null;
  const store: Record<string, string> =
    postgres === null
      ? { SETTLED_STORE: `sqlite:${folder}/settled.db` }
      : {
          SETTLED_STORE: await postgres.create('settled'),
          SETTLED_SECRETS_KEY: Buffer.alloc(32, 5).toString('base64'),
        };
  const replicas = new Replicas(postgres === null ? 1 : 2, {
    ...store,
    SETTLED_ALERT_URL: `${hook.url}/alerts`,
    SETTLED_ALERT_SECRET: SECRET,
    SETTLED_ALERT_ALLOW_PRIVATE: 'true',
    ...mail.environment,
  });
  try {
    const channels = {
      setDown,
      onArrival: (then: () => void) => {
        onArrival = then;
      },
    };
    return await story(given, { replicas, chance, told, channels });
  } finally {
    await replicas.stop();
    await mail.close();
    await hook.close();
    await postgres?.dispose();
  }
}

type World = {
  replicas: Replicas;
  chance: Chance;
  told: readonly Told[];
  channels: { setDown: (down: boolean) => void; onArrival: (then: () => void) => void };
};

async function story(
  { matters, kills, 'down-seconds': downSeconds }: Given<typeof OPTIONS>,
  { replicas, chance, told, channels }: World,
): Promise<string[]> {
  let killsOnArrival = 0;
  await replicas.start();
  const startedMs = performance.now();
  channels.setDown(true);
  const ended = eachAtOnce(
    AT_ONCE,
    Array.from({ length: matters }, (_, n) => n + 1),
    (n) => openAndEnd(replicas, n),
  );
  const early = Math.floor(kills / 2);
  const killing = (async () => {
    for (let n = 0; n < early; n++) {
      await after((downSeconds * 1000) / (early + 1) / (n < early / 2 ? 8 : 2));
      await replicas.kill(chance);
    }
  })();
  await ended;
  const workedMs = performance.now() - startedMs;
  say(`${matters} matters opened and ended in ${(workedMs / 1000).toFixed(0)} s`);
  await killing;
  await after(Math.max(0, downSeconds * 1000 - (performance.now() - startedMs)));
  channels.onArrival(() => {
    if (replicas.killsAtMs.length < kills && chance.between(0, 2) > 0) {
      killsOnArrival++;
      void replicas.kill(chance);
    }
  });
  channels.setDown(false);
  say(`the channels take messages again after ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  let lastMs = performance.now();
  for (let seen = told.length; performance.now() - lastMs < SILENT_MS; await after(500)) {
    if (told.length > seen) lastMs = performance.now();
    seen = told.length;
  }
  while (replicas.killsAtMs.length < kills) await replicas.kill(chance);
  const found = verdict(told, matters, replicas.killsAtMs);
  for (const line of facts({
    ...found.figures,
    kills: `${replicas.killsAtMs.length}, ${killsOnArrival} of them as a message arrived`,
  })) {
    say(line);
  }
  return found.broken;
}

await command('prove:alerts', OPTIONS, (given) =>
  inFolder('alerts', (folder) => (given.part === 'told' ? prove(given, folder) : proveSurfaces(folder))),
);
