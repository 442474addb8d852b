import { restoredSentence } from '../domain/advice.ts';
import type { StoreAddress } from '../store/address.ts';
import type { Migrated } from '../store/open.ts';
import { systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';

export const migrateDatabase = defineCommand({
  name: 'migrate',
  positionals: '',
  about: 'bring the database to the newest schema without serving; `settled serve` does it by itself',
  details: [
    'With SQLite the server must be stopped: one process works on one database. Of PostgreSQL, replicas of the version before',
    'go on serving meanwhile and after; with --restored and --new-key every replica must be stopped.',
    '--restored is for copies that settled did not make itself: backups of `settled backup` say what they are.',
    '--new-key gives up the secrets that rest under the lost key: docs/operations.md, Keys.',
  ],
  options: {
    restored: { about: 'the database is a copy that took the place of the one before' },
    'new-key': { about: 'the secrets key is lost: take the one that is given, or make a new one' },
  },
  async run({ options, config }) {
    const { store, secretsKey, secretsKeyPrevious } = config();
    const { migrateStore } = await import('../store/open.ts');
    const migrated = await migrateStore({
      store,
      secretsKey,
      secretsKeyPrevious,
      isRestored: options.restored === true,
      keyIsLost: options['new-key'] === true,
      clock: systemClock,
    });
    return { data: document(store, migrated), lines: tell(store, migrated) };
  },
});

function document(store: StoreAddress, { applied, restoredFromMs, newKey }: Migrated): object {
  return {
    ...(store.engine === 'sqlite' ? { path: store.path } : { store: store.name }),
    applied,
    ...(restoredFromMs === null ? {} : { restoredFrom: new Date(restoredFromMs).toISOString() }),
    ...(newKey === null ? {} : { newKey }),
  };
}

function tell({ name }: StoreAddress, { applied, restoredFromMs, newKey }: Migrated): string[] {
  const schema =
    applied.length === 0
      ? `${name} has the newest schema already.`
      : `${name} was brought to the newest schema. Applied: ${applied.join(', ')}.`;
  return [
    schema,
    ...(restoredFromMs === null ? [] : [restoredSentence(restoredFromMs)]),
    ...(newKey === null ? [] : tellOfKey(newKey)),
  ];
}

function tellOfKey({ keyId, keyPlace, undecipherable }: NonNullable<Migrated['newKey']>): string[] {
  const key = `Secrets rest under the key ${keyId} from now on: ${keyPlace}.`;
  if (undecipherable === 0) return [`${key} Every secret can be opened.`];
  return [
    key,
    `${undecipherable} links have a secret that no known key opens. Deliveries for them are answered 503, and their orders ` +
      'are found by asking the service. See Keys in docs/operations.md.',
  ];
}
