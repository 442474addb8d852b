import type { RunOptions } from './measure.ts';
import { startSettled, withServer } from './servers.ts';
import { registerLinks } from './stores.ts';

type IdleOptions = Pick<RunOptions, 'workspace' | 'onProgress'> & { starts: number; idleMs: number };

export type IdleFigures = {
  readySeconds: number[];
  /** When it became ready, and after `idleMs`. */
  rssMiBAtStart: number[];
  rssMiBIdle: number[];
};

/** Links in the store of the measured process: an existing shop, not an empty one. */
const LINKS = 1_000;

/** How soon `settled serve` is ready, and how much memory it takes while nothing happens. */
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
