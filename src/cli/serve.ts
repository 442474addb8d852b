import { randomUUID } from 'node:crypto';
import { startApp } from '../app.ts';
import { readConfig } from '../config.ts';
import { openLog } from '../observe/log.ts';
import { systemClock } from '../work/clock.ts';

/** `settled serve`: runs until SIGTERM or SIGINT, or until the store fails. */
export async function serve(): Promise<void> {
  const config = readConfig(process.env);
  const log = openLog(config.logLevel);
  const app = await startApp({ config, clock: systemClock, random: Math.random, newId: randomUUID, log });
  const { hooksAddress, operatorAddress } = app;
  log.info({ hooks: hooksAddress, operator: operatorAddress, store: config.storePath }, 'settled is serving');
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve());
    // A second signal, as process groups get it, changes nothing.
    // The launcher that started this process is gone.
    process.once('disconnect', () => resolve());
  });
  await Promise.race([stopped, app.failed]);
  log.info('stopping');
  await app.stop();
  log.info('stopped');
  process.exit(0);
}
