import type { ListenAddress } from '../config/parsers.ts';
import type { HttpServer } from '../http/server.ts';
import type { RejectionLog } from '../receive/rejections.ts';
import type { Cancel } from '../work/clock.ts';
import { type AppOptions, type Context, openContext } from './context.ts';
import { startHeartbeat } from './health.ts';
import { keepRejections, openServers } from './servers.ts';
import { type Stages, startStages, stopStages } from './stages.ts';

export type App = {
  readonly hooksAddress: ListenAddress;
  readonly operatorAddress: ListenAddress;
  /** The name of this process among the replicas of its store; null if it is alone. */
  readonly replica: string | null;
  /** Rejects when the store fails so that the process must end. Never resolves. */
  readonly failed: Promise<never>;
  /** Answers every accepted request, then ends, within 5 s. */
  stop(): Promise<void>;
};

/** Puts settled together: store, then stages, then servers. */
export async function startApp(options: AppOptions): Promise<App> {
  const context = await openContext(options);
  const { clockSteps, health, replica, store } = context;
  const stages = startStages(context);
  const rejections = keepRejections(context);
  const catchUp = () => stages.asking?.reconciler.catchUp({ dryRun: false });
  const heartbeat = startHeartbeat({ ...context, catchUp, onWasAhead: clockSteps.wasAhead });
  const watches = [heartbeat, health.watchLoop(), rejections.watch()];
  try {
    const servers = await openServers(context, stages, rejections);
    return {
      hooksAddress: servers[0].address,
      operatorAddress: servers[1].address,
      replica,
      failed: health.failed,
      stop: () => stopApp(context, { servers, rejections, stages, watches }),
    };
  } catch (error) {
    for (const cancel of watches) cancel();
    await Promise.all([clockSteps.stop(), stopStages(stages)]);
    await store.close();
    throw error;
  }
}

/** Milliseconds after the signal to stop. */
const STOP = {
  closeMs: 1_000,
  refuseBodiesMs: 3_000,
  refuseCommitsMs: 4_000,
  leaveMs: 4_400,
  destroyMs: 4_500,
} as const;

type Running = { servers: readonly HttpServer[]; rejections: RejectionLog; stages: Stages; watches: readonly Cancel[] };

/** Serves for one more second, then closes. Answers 503 if it cannot answer truthfully in time. */
async function stopApp(context: Context, { servers, rejections, stages, watches }: Running): Promise<void> {
  const { activity, bodies, clock, clockSteps, health, isShared, notices, refusals, store } = context;
  health.draining = true;
  notices.end();
  activity.end();
  for (const server of servers) server.startDraining();
  clock.after(STOP.refuseBodiesMs, bodies.refuseIncomplete);
  clock.after(STOP.refuseCommitsMs, context.abandon);
  clock.after(STOP.destroyMs, () => {
    for (const server of servers) server.destroy();
  });
  const left = new Promise<void>((resolve) => clock.after(STOP.leaveMs, resolve));
  await new Promise<void>((resolve) => clock.after(STOP.closeMs, resolve));
  health.closed = true;
  for (const cancel of watches) cancel();
  await Promise.all([...servers.map((server) => server.close()), clockSteps.stop(), stopStages(stages)]);
  await rejections.flush();
  refusals.flush();
  // A database on another machine may not answer, and this process need not end anything there.
  await (isShared ? Promise.race([store.close(), left]) : store.close());
}
