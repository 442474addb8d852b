import express, { type Router } from 'express';
import { createApp, healthRoutes, privateHealthRoutes } from '../http/app.ts';
import { sendProblem } from '../http/problem.ts';
import type { HttpServer } from '../http/server.ts';
import type { Log } from '../observe/log.ts';
import { whenGivenBack } from '../store/sqlite/letting_go.ts';
import type { Cancel } from '../work/clock.ts';
import type { Context } from './context.ts';
import { type Stages, stopStages } from './stages.ts';

/** What a running settled must stop before it releases its database. */
export type Held = {
  servers: readonly [hooks: HttpServer, operator: HttpServer];
  endLive: () => void;
  rejections: { flush(): Promise<unknown> };
  stages: Stages;
  watches: readonly Cancel[];
};

/** How long work under way may take. Then its database calls are refused, and the work is repeated later. */
const END_WITHIN_MS = 4_000;

/** For strangers. */
const AWAY = 'settled cannot take requests now. Try again later.';
const MOVING = 'settled moves its database to another server. Nothing is taken meanwhile: try again.';
const MOVED =
  'The store was moved to PostgreSQL, and this process serves it no more. Stop it, and start settled with the address of that ' +
  'database: see From SQLite in docs/postgres.md. Until then, try again later.';

/**
 * Answers new requests with 503, finishes the work under way, and closes the database for a mover. Resolves when the
 * mover is done or gone: with the store's new address, or with null if this process may serve the file again.
 */
export async function letGo(context: Context, held: Held, signal: AbortSignal): Promise<string | null> {
  const { activity, bodies, clock, clockSteps, config, health, log, newId, notices, refusals, store } = context;
  if (config.store.engine !== 'sqlite') throw new Error('only the process of a file lets go of it');
  health.closed = true;
  const refuseAll = (why: string) => {
    const [hooks, operator] = held.servers;
    const isReady = () => ({ ready: false, reason: why }) as const;
    answerBy(hooks, { health: healthRoutes(isReady), why: AWAY, log, newId });
    answerBy(operator, { health: privateHealthRoutes(isReady), why, log, newId });
  };
  refuseAll(MOVING);
  notices.end();
  activity.end();
  held.endLive();
  bodies.refuseIncomplete();
  for (const cancel of held.watches) cancel();
  const cancel = clock.after(END_WITHIN_MS, context.abandon);
  await Promise.all([clockSteps.stop(), stopStages(held.stages)]);
  await held.rejections.flush();
  refusals.flush();
  await store.close();
  cancel();
  const onTaken = () => log.info('the mover has the database');
  const movedTo = await whenGivenBack({ path: config.store.path, clock, signal, onTaken });
  if (movedTo !== null) refuseAll(MOVED);
  return movedTo;
}

type Refusing = { health: Router; why: string; log: Log; newId: () => string };

/** Makes a server answer liveness checks, and everything else with 503 and `Retry-After`. */
function answerBy(server: HttpServer, { health, why, log, newId }: Refusing): void {
  const refuse = express.Router();
  refuse.use((_request, response) => sendProblem(response, { status: 503, code: 'unavailable', detail: why }));
  const app = createApp({ routers: [health, refuse], log, newId });
  server.answerBy(app as Parameters<HttpServer['answerBy']>[0]);
}
