import { restoredSentence } from '../domain/advice.ts';
import type { StoreAddress } from '../store/address.ts';
import type { Migrated } from '../store/engine.ts';
import { systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import { count, printable, record } from './output.ts';

/** The commands that maintain the database and the key of its secrets. */

export const migrateDatabase = defineCommand({
  name: 'migrate',
  about: 'bring the database to the newest schema without serving; `settled serve` does this at its start',
  details: [
    'With SQLite, stop the server first: one process works on one database.',
    'With PostgreSQL, replicas of the version before continue to serve meanwhile and after.',
    'For --restored and --new-key, stop every replica.',
    '--restored is for copies that settled did not make itself: backups of `settled backup` say what they are.',
    '--new-key gives up the secrets that the lost key encrypts: docs/operations.md, Keys.',
  ],
  options: {
    restored: { about: 'the database is a copy that took the place of the one before' },
    'new-key': { about: 'the secrets key is lost: take the one that is given, or make a new one' },
  },
  async run({ options, config }) {
    const source = config();
    const { store } = source;
    const { migrateStore } = await import('../store/open.ts');
    const { readKeyIds } = await import('../secrets/key_files.ts');
    const migrated = await migrateStore({
      store,
      readKeys: (how) => readKeyIds(source, how),
      isRestored: options.restored === true,
      keyIsLost: options['new-key'] === true,
      clock: systemClock,
    });
    const { applied, restoredFromMs, newKey } = migrated;
    const data = {
      ...(store.engine === 'sqlite' ? { path: store.path } : { store: store.name }),
      applied,
      ...(restoredFromMs === null ? {} : { restoredFrom: new Date(restoredFromMs).toISOString() }),
      ...(newKey === null ? {} : { newKey }),
    };
    return { data, lines: migratedLines(store, migrated) };
  },
});

function migratedLines({ name }: StoreAddress, { applied, restoredFromMs, newKey }: Migrated): string[] {
  return [
    applied.length === 0
      ? `${name} has the newest schema already.`
      : `${name} was brought to the newest schema. Applied: ${applied.join(', ')}.`,
    ...(restoredFromMs === null ? [] : [restoredSentence(restoredFromMs)]),
    ...(newKey === null ? [] : newKeyLines(newKey)),
  ];
}

function newKeyLines({ keyId, keyPlace, undecipherable }: NonNullable<Migrated['newKey']>): string[] {
  const key = `The key ${keyId} encrypts secrets from now on: ${keyPlace}.`;
  if (undecipherable === 0) return [`${key} Every secret can be opened.`];
  return [
    key,
    `${undecipherable} links have a secret that no known key opens. Deliveries for them are answered 503, and settled finds ` +
      'the payments of their orders by asking the service. See Keys in docs/operations.md.',
  ];
}

/** For what passes over the whole database. */
const LONG_TIMEOUT_MS = 3_600_000;

type BackupAnswer = { backup: { path: string; bytes: number; notIncluded: string } };

export const backup = defineCommand({
  name: 'backup',
  about: 'write a consistent copy of the database next to it, while the server serves',
  details: [
    'The copy does not contain the secrets key, and cannot be used without it: the answer says where the key is.',
    'Copy the key once, and keep it apart. docs/operations.md has the restore, command by command.',
    'The command makes no copy of PostgreSQL and ends with 78: docs/postgres.md says how to back that up.',
  ],
  async run({ server }) {
    const answer = await server().post<BackupAnswer>('/v1/admin/backup', undefined, LONG_TIMEOUT_MS);
    const { path, bytes, notIncluded } = answer.backup;
    return { data: answer, lines: [`${printable(path)} was written, ${bytes} bytes.`, printable(notIncluded)] };
  },
});

type RotationAnswer = {
  rotation: { keyId: string; previousKeyId: string; secrets: number; resealed: number; keyPlace: string; note: string };
};

export const rotateKey = defineCommand({
  name: 'rotate-key',
  about: 'make a new secrets key, and encrypt all signing secrets with it, while the server serves',
  details: [
    'The secrets key encrypts the signing secrets in the database; links and what they sign do not change.',
    'It may take a while: no delivery waits for it.',
    'It ends with 78 if SETTLED_SECRETS_KEY gives the key, and then says how to change it there;',
    'with 75 if that change continues but cannot end yet, as while another replica encrypts with the key before.',
    'Afterwards copy the new key file, apart from the backups. Earlier backups still need the old one.',
  ],
  async run({ server }) {
    const answer = await server().post<RotationAnswer>('/v1/admin/rotate-key', undefined, LONG_TIMEOUT_MS);
    const { keyId, previousKeyId, secrets, resealed, keyPlace, note } = answer.rotation;
    const lines = record([
      ['key', keyId],
      ['key before', previousKeyId],
      ['kept in', keyPlace],
    ]);
    const which = secrets === resealed ? 'all of them' : `${resealed} of them now, the others before`;
    const done = `The secrets key is a new one. Re-encrypted with it: ${count(secrets, 'signing secret')}, ${which}.`;
    return { data: answer, lines: [done, printable(note), '', ...lines] };
  },
});
