import { Fault, transientFault } from '../../fault.ts';
import type { ServerState } from '../contract.ts';
import type { Found } from './ask_servers.ts';

/** Faults of servers that settled does not use. All of them may pass while settled serves. */

const KEEP = 'To keep this one, stop every other first, then give `settled migrate --restored`.';

/** @param newest the timeline of the server that replaced it */
export function replacedFault(name: string, timeline: number | null, newest: number): Fault {
  return unwritable(
    `${name} was replaced as the primary: it is on timeline ${timeline}, and another server is on timeline ${newest}. What is ` +
      `written there would be lost. Stop it, or make it a standby of the other. ${KEEP}`,
  );
}

export function splitFault(one: string, other: string): Fault {
  return unwritable(
    `${one} and ${other} both take writes, and nothing says which of them is the primary. Stop the one whose data is not to be ` +
      'kept.',
  );
}

/** The fault of a single server; for several, what each of them is and what to do. */
export function noPrimaryFault(found: readonly Found[], states: readonly ServerState[]): Fault {
  const faults = found.flatMap(({ said }) => (said instanceof Fault ? [said] : []));
  const [only] = faults;
  if (found.length === 1 && only !== undefined) return only;
  // Names what a person must change first.
  const worst = faults.find(({ code }) => code !== 'store_unreachable') ?? only;
  const each = states.map(({ name, role, why }) => why ?? `${name} ${ROLES[role]}.`);
  const roles = new Set(states.map(({ role }) => role));
  const remedies = [
    roles.has('standby') ? 'Start the primary, or promote a standby.' : '',
    roles.has('replaced') ? `Start the server that replaced it. ${KEEP}` : '',
  ];
  const what = ['No server takes writes.', ...each, ...remedies].filter((sentence) => sentence !== '').join(' ');
  return transientFault(worst?.code ?? 'store_unwritable', what);
}

const ROLES: Readonly<Record<ServerState['role'], string>> = {
  primary: 'is the primary',
  standby: 'is a standby',
  replaced: 'was replaced as the primary',
  unreachable: 'does not answer',
  unusable: 'cannot be used',
};

function unwritable(what: string): Fault {
  return transientFault('store_unwritable', what);
}
