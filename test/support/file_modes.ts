import { spawnSync } from 'node:child_process';

/** Makes root obey file modes, as the owner of its files. */
const WITHOUT_PRIVILEGES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];

export const NO_FILE_MODES = 'file modes do not bind root, and setpriv (util-linux) cannot drop its privileges here';

/**
 * The words before a command that make it obey file modes. Root runs it as root without privileges: another user could
 * not read a checkout below /root. Null if that is not possible here.
 */
export function boundByFileModes(): readonly string[] | null {
  if (process.getuid?.() !== 0) return [];
  const [program = '', ...rest] = WITHOUT_PRIVILEGES;
  return spawnSync(program, [...rest, 'true']).status === 0 ? WITHOUT_PRIVILEGES : null;
}
