import { withServer } from './contest.ts';
import { startSettled } from './servers.ts';
import { registerLinks } from './stores.ts';
import type { Workspace } from './workspace.ts';

export type IdleOptions = { workspace: Workspace; starts: number; idleMs: number; onProgress: (text: string) => void };

export type IdleFigures = {
  readySeconds: number[];
  /** When it became ready, and after it was left alone. */
  rssMiBAtStart: number[];
  rssMiBIdle: number[];
};

/** Links in the store of the measured process: an existing shop, not an empty one. */
const LINKS = 1_000;

/** How soon `settled serve` is ready, and how much memory it holds while nothing happens. */
export async function runIdle({ workspace, starts, idleMs, onProgress }: IdleOptions): Promise<IdleFigures> {
  const path = workspace.path('idle.db');
  registerLinks(path, { from: 0, count: LINKS });
  const found: IdleFigures = { readySeconds: [], rssMiBAtStart: [], rssMiBIdle: [] };
  for (let start = 1; start <= starts; start++) {
    onProgress(`start ${start} of ${starts}: idle`);
    await withServer(startSettled(workspace.log, path), async (server) => {
      found.readySeconds.push(server.readySeconds);
      found.rssMiBAtStart.push(server.rssMiB());
      await new Promise((resolve) => setTimeout(resolve, idleMs));
      found.rssMiBIdle.push(server.rssMiB());
    });
  }
  workspace.remove('idle.db');
  return found;
}
