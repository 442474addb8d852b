import { defineCommand } from './command.ts';
import { printable } from './layout.ts';

/** A large database takes its time. */
const BACKUP_TIMEOUT_MS = 3_600_000;

type BackupAnswer = { backup: { path: string; bytes: number; notIncluded: string } };

export const backup = defineCommand({
  name: 'backup',
  positionals: '',
  about: 'write a consistent copy of the database beside it, while the server serves',
  details: [
    'The secrets key is not in it, and the copy cannot be used without: the answer says where the key is. Copy that once, and',
    'keep it apart. docs/operations.md has the restore, command by command. Of PostgreSQL it makes none and',
    'ends with 78: docs/postgres.md says how that is backed up.',
  ],
  options: {},
  async run({ server }) {
    const answer = await server().post<BackupAnswer>('/v1/admin/backup', undefined, BACKUP_TIMEOUT_MS);
    const { path, bytes, notIncluded } = answer.backup;
    return { data: answer, lines: [`${printable(path)} was written, ${bytes} bytes.`, printable(notIncluded)] };
  },
});
