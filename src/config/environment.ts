import { isUtf8 } from 'node:buffer';
import { constants, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { Fault, terminalFault } from '../fault.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings that came from a `.env` file, because the environment of the process lacks them. */
export type EnvFile = { readonly path: string; readonly names: readonly string[] };

const PREFIX = 'SETTLED_';

/** Settings of commands for a server on another machine. A server has no use for them; `.env` never gives them. */
export const TARGET_NAMES = ['SETTLED_AT', 'SETTLED_AT_TOKEN_FILE', 'SETTLED_AT_ALLOW_HTTP'] as const;
const isTargetName = (name: string): boolean => (TARGET_NAMES as readonly string[]).includes(name);

/** The settings of commands for a remote server, from the given environment or that of this process. */
export function targetEnvironment(given?: Environment): Environment {
  const { env } = process;
  return given ?? Object.fromEntries(TARGET_NAMES.map((name) => [name, env[name]]));
}

/**
 * The environment of this process, as `inherited` and with missing settings filled from `.env` in the working
 * directory. Other names in that file are ignored. Nothing else reads `process.env`. Faults: `configuration_invalid`.
 */
export function processEnvironment(): { environment: Environment; inherited: Environment; envFile: EnvFile | null } {
  const path = resolve('.env');
  const given = Object.entries(readEnvFile(path)).filter(
    ([name, value]) =>
      name.startsWith(PREFIX) && !isTargetName(name) && value !== '' && process.env[name] === undefined,
  );
  const environment = { ...process.env, ...Object.fromEntries(given) };
  return {
    environment,
    inherited: process.env,
    envFile: given.length === 0 ? null : { path, names: given.map(([name]) => name) },
  };
}

/** The names and values in a file like `.env`; empty if the file does not exist. Faults: `configuration_invalid`. */
function readEnvFile(path: string): Environment {
  try {
    const bytes = readFileSync(path);
    refuseOfStranger(path);
    return parseEnv(textOf(bytes, path));
  } catch (error) {
    if (error instanceof Fault) throw error;
    const { code } = error as NodeJS.ErrnoException;
    // A directory of this name belongs to another program.
    if (code === 'ENOENT' || code === 'EISDIR') return {};
    const told = `The settings in ${path} cannot be read (${code}): let this user read the file, or take it away.`;
    throw terminalFault('configuration_invalid', told);
  }
}

/** Without a byte order mark, which would become part of the first name. */
function textOf(bytes: Buffer, path: string): string {
  if (isUtf8(bytes) && !bytes.includes(0)) return new TextDecoder().decode(bytes);
  const told = `The settings in ${path} are not UTF-8 text: save the file as UTF-8. Notepad and PowerShell may write UTF-16.`;
  throw terminalFault('configuration_invalid', told);
}

/** In a folder like /tmp anyone can leave a `.env` for others, which would say where their tokens are sent. */
function refuseOfStranger(path: string): void {
  const { uid } = statSync(path);
  const isForeign = process.geteuid !== undefined && uid !== process.geteuid() && uid !== 0;
  if (!isForeign || (statSync(dirname(path)).mode & constants.S_IWOTH) === 0) return;
  const why = `${path} belongs to user ${uid}, in a folder that every user can write`;
  const told = `${why}, and may be a trap. Run settled in another folder, or remove the file.`;
  throw terminalFault('configuration_invalid', told);
}

/** Variables that Kubernetes sets in every pod for a Service whose name begins with `settled`, by its documentation. */
const OF_A_SERVICE = /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)$/;
const PORT_OF_A_SERVICE = /^(?:tcp|udp|sctp):\/\//;

/** Names with our prefix that belong to others: to Kubernetes, to `settled sandbox`, and to commands. */
function isForOthers(name: string, value: string): boolean {
  if (name.startsWith('SETTLED_SANDBOX_') || isTargetName(name) || OF_A_SERVICE.test(name)) return true;
  return name.endsWith('_PORT') && PORT_OF_A_SERVICE.test(value);
}

/** The names in an environment that are meant for settled. */
export function ownNames(environment: Environment): string[] {
  return Object.entries(environment)
    .filter(([name, value = '']) => name.startsWith(PREFIX) && !isForOthers(name, value))
    .map(([name]) => name);
}
