import { setTimeout as after } from 'node:timers/promises';
import { fixed, median, table } from '../prove/harness/proof.ts';
import { growthOf, type RunOptions } from './measure.ts';
import { atMost, type Found } from './report.ts';
import { startSettled, withServer } from './servers.ts';
import { registerLinks } from './stores.ts';

type IdleOptions = Pick<RunOptions, 'workspace' | 'onProgress'> & { starts: number; idleMs: number };

/** Links in the store of the measured process: an existing shop, not an empty one. */
const LINKS = 1_000;

/** In which a server compiles what it runs at first, and gives back what it needed to start. */
const SETTLING_MS = 60_000;

/** How soon `settled serve` is ready, and how much memory and processor time it takes while nothing happens. */
export async function runIdle({ workspace, starts, idleMs, onProgress }: IdleOptions): Promise<Found> {
  const path = workspace.path('idle.db');
  registerLinks(path, { from: 0, count: LINKS });
  const found: { readySeconds: number; rssMiBAtStart: number; rssMiBIdle: number; cpuMsPerSecond: number }[] = [];
  for (let start = 1; start <= starts; start++) {
    onProgress(`start ${start} of ${starts}: idle`);
    await withServer(startSettled(workspace.log, path), async (server) => {
      const rssMiBAtStart = server.rssMiB();
      await after(SETTLING_MS);
      const grown = growthOf(server.cpuSeconds);
      await after(idleMs);
      const cpuMsPerSecond = (grown().allThreads * 1e6) / idleMs;
      found.push({ readySeconds: server.readySeconds, rssMiBAtStart, rssMiBIdle: server.rssMiB(), cpuMsPerSecond });
    });
  }
  workspace.remove('idle.db');
  const typical = (of: keyof (typeof found)[number]) => median(found.map((one) => one[of]));
  const [ready, idle, cpu] = [typical('readySeconds'), typical('rssMiBIdle'), typical('cpuMsPerSecond')];
  const row = ['settled serve', fixed(ready, 2), fixed(typical('rssMiBAtStart'), 0), fixed(idle, 0), fixed(cpu, 2)];
  const head = ['', 'ready after s', 'RSS MiB when ready', 'RSS MiB idle', 'CPU ms a second idle'];
  return {
    part: 'idle',
    tables: [table('The server process, left alone', head, [row])],
    verdicts: [
      atMost('idle: RSS MiB', idle, 125),
      atMost('idle: CPU ms a second', cpu, 3),
      atMost('ready after s', ready, 0.6),
    ],
    rounds: found,
    measured: [],
  };
}
