import { spawnSync } from 'node:child_process';

/** Root without its privileges: still the owner of its files, but file modes bind it. */
const WITHOUT_PRIVILEGES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];

export const NO_FILE_MODES = 'file modes do not bind root, and setpriv (util-linux) cannot drop its privileges here';

/**
 * What to put before a command so that it may not write a file whose mode forbids it. Root runs it as itself without its
 * privileges: another user could not read a checkout below /root. Null if that is not possible here.
 */
export function boundByFileModes(): readonly string[] | null {
  if (process.getuid?.() !== 0) return [];
  const [program = '', ...rest] = WITHOUT_PRIVILEGES;
  return spawnSync(program, [...rest, 'true']).status === 0 ? WITHOUT_PRIVILEGES : null;
}
