import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { burst, sustained, type Figures } from './measure.ts';
import { signedDeliveries } from './deliveries.ts';
import { startCeiling, startSettled, startTextbook } from './servers.ts';
import { copyStore, makeTextbookStore, registerLinks } from './stores.ts';

const folder = mkdtempSync(join(tmpdir(), 'settled-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const log = join(folder, 'servers.log');
const forMs = Number(process.argv[2] ?? 3000);
const rounds = Number(process.argv[3] ?? 2);
const count = Number(process.argv[4] ?? 60000);
const warmUp = 5000;
const range = { from: 0, count };
let t = Date.now();
const tick = (what: string) => { console.log(what, Date.now() - t); t = Date.now(); };
const deliveries = signedDeliveries(0, count);
tick('signed');
registerLinks(join(folder, 'settled.template'), range);
tick('registered');
makeTextbookStore(join(folder, 'textbook.template'), range);
tick('textbook');
const plan = { deliveries, firstLink: 0, warmUp, connections: 64, forMs, warmCredentials: true };
function show(name: string, f: Figures) {
  console.log(name.padEnd(26), f.perSecond.toFixed(0).padStart(7), f.p50Ms.toFixed(2), f.p99Ms.toFixed(2), f.cpuMicros.toFixed(1), f.backlog, f.lagSecondsMax, f.deliveries);
}
for (let r = 0; r < rounds; r++) {
  let s = await startCeiling(log, range);
  tick('start');
  show('ceiling', await burst(s, plan));
  await s.kill();
  for (const [name, run, warmCredentials] of [['settled burst', burst, true], ['settled burst cold', burst, false], ['settled sustained', sustained, true]] as const) {
    const path = join(folder, 'settled.db');
    for (const x of ['', '-wal', '-shm', '.lock']) rmSync(path + x, { force: true });
    copyStore(join(folder, 'settled.template'), path);
    tick('copy');
    s = await startSettled(log, path);
    tick('start');
    show(name, await run(s, { ...plan, warmCredentials }));
    tick('run');
    await s.kill();
  }
  for (const synchronous of ['FULL', 'NORMAL'] as const) for (const [mode, run] of [['record', burst], ['settle', sustained]] as const) {
    const path = join(folder, 'textbook.db');
    for (const x of ['', '-wal', '-shm', '.lock']) rmSync(path + x, { force: true });
    copyStore(join(folder, 'textbook.template'), path);
    s = await startTextbook(log, { path, synchronous, mode });
    show(`textbook ${synchronous} ${mode}`, await run(s, { ...plan, warmCredentials: false }));
    await s.kill();
  }
}
process.exit(0);
