import { readConfig } from '../config.ts';
import { systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';

export const migrateDatabase = defineCommand({
  name: 'migrate',
  positionals: '',
  about: 'bring the database to the newest schema without serving; `settled serve` does it by itself',
  details: ['The server must be stopped: one process works on one database.'],
  options: {},
  async run() {
    const { storePath, secretsKey } = readConfig();
    const { migrateStore } = await import('../store/open.ts');
    const applied = migrateStore({ path: storePath, secretsKey, nowMs: systemClock.nowMs() });
    const lines =
      applied.length === 0
        ? [`${storePath} has the newest schema already.`]
        : [`${storePath} was brought to the newest schema. Applied: ${applied.join(', ')}.`];
    return { data: { path: storePath, applied }, lines };
  },
});
