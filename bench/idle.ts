import { setTimeout as after } from 'node:timers/promises';
import { fixed, median, table } from '../prove/harness/proof.ts';
import type { RunOptions } from './measure.ts';
import { atMost, type Found } from './report.ts';
import { startSettled, withServer } from './servers.ts';
import { registerLinks } from './stores.ts';

type IdleOptions = Pick<RunOptions, 'workspace' | 'onProgress'> & { starts: number; idleMs: number };

/** Links in the store of the measured process: an existing shop, not an empty one. */
const LINKS = 1_000;

/** How soon `settled serve` is ready, and how much memory it takes while nothing happens. */
export async function runIdle({ workspace, starts, idleMs, onProgress }: IdleOptions): Promise<Found> {
  const path = workspace.path('idle.db');
  registerLinks(path, { from: 0, count: LINKS });
  const [readySeconds, rssMiBAtStart, rssMiBIdle]: [number[], number[], number[]] = [[], [], []];
  for (let start = 1; start <= starts; start++) {
    onProgress(`start ${start} of ${starts}: idle`);
    await withServer(startSettled(workspace.log, path), async (server) => {
      readySeconds.push(server.readySeconds);
      rssMiBAtStart.push(server.rssMiB());
      await after(idleMs);
      rssMiBIdle.push(server.rssMiB());
    });
  }
  workspace.remove('idle.db');
  const [ready, atStart, idle] = [readySeconds, rssMiBAtStart, rssMiBIdle].map(median) as [number, number, number];
  const row = ['settled serve', fixed(ready, 2), fixed(atStart, 0), fixed(idle, 0)];
  const head = ['', 'ready after s', 'RSS MiB when ready', 'RSS MiB idle'];
  return {
    part: 'idle',
    tables: [table('The server process, left alone', head, [row])],
    verdicts: [atMost('idle: RSS MiB', idle, 150), atMost('ready after s', ready, 1)],
    rounds: { readySeconds, rssMiBAtStart, rssMiBIdle },
    measured: [],
  };
}
