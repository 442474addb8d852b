import type { LookupAddress, LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isPrivateIp } from '../config/addresses.ts';
import { type Fault, type FaultCode, transientFault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';

/** Whom settled sends to, for the words of faults: `shop`, and what it gets, its settings, and the codes. */
export type Peer = {
  name: string;
  what: string;
  setting: string;
  allow: string;
  faults: Readonly<Record<'unreachable' | 'timeout' | 'isPrivate', FaultCode>>;
};

/** How long the addresses of a name are reused. */
const ADDRESSES_KEPT_MS = 10_000;

export type TargetLookupOptions = {
  peer: Peer;
  resolve: typeof lookup;
  deadlineMs: number;
  clock: Pick<Clock, 'monotonicMs'>;
  deadlineClock: Pick<Clock, 'after'>;
  mayConnect: (address: string) => boolean;
};

type Asker = (error: Error | null, addresses: readonly LookupAddress[]) => void;

/**
 * Resolves the peer's name for each connection, to those addresses that settled may connect to. Fails if there are
 * none. All callers share one look-up, because it occupies one of the process's few threads for names and cannot be
 * cancelled.
 */
export function openTargetLookup(options: TargetLookupOptions): LookupFunction {
  const { resolve, mayConnect, deadlineMs, deadlineClock, clock, peer } = options;
  let kept: { addresses: readonly LookupAddress[]; untilMs: number } | null = null;
  /** Callers waiting for the look-up under way; null if there is none. */
  let askers: Asker[] | null = null;
  let isLate = false;

  function answerAll(error: Error | null, addresses: readonly LookupAddress[]): void {
    const answered = askers ?? [];
    askers = [];
    for (const asker of answered) asker(error, addresses);
  }

  function ask(hostname: string, options: LookupOptions, asker: Asker): void {
    if (kept !== null && clock.monotonicMs() < kept.untilMs) asker(null, kept.addresses);
    else if (isLate) asker(tooSlow(peer, deadlineMs), []);
    else if (askers !== null) askers.push(asker);
    else lookUp(hostname, options, asker);
  }

  function lookUp(hostname: string, options: LookupOptions, asker: Asker): void {
    askers = [asker];
    const cancel = deadlineClock.after(deadlineMs, () => {
      isLate = true;
      answerAll(tooSlow(peer, deadlineMs), []);
    });
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      cancel();
      isLate = false;
      if (error === null) kept = { addresses, untilMs: clock.monotonicMs() + ADDRESSES_KEPT_MS };
      answerAll(error, addresses);
      askers = null;
    });
  }

  return (hostname, options, callback) => {
    ask(hostname, options, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter(({ address }) => mayConnect(address));
      const [first] = allowed;
      if (first === undefined) return callback(refusedAddress(peer, addresses[0]?.address ?? hostname), '', 0);
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** What a peer said, without the secrets that it repeats: longest first, as one may hold another. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length);
  return longestFirst.reduce((rest, secret) => rest.replaceAll(secret, '…'), text);
}

export function refusedAddress({ name, what, setting, allow, faults }: Peer, address: string): Fault {
  const why = isPrivateIp(address)
    ? `only this network knows it. If the ${name} is meant to be there, set ${allow}=true`
    : `${what}s do not leave this network in the clear. Use https in ${setting}`;
  return transientFault(faults.isPrivate, `The ${name}'s address is ${address}: ${why}.`);
}

function tooSlow({ name, faults }: Peer, deadlineMs: number): Fault {
  const message = `The ${name}'s name was not resolved within ${deadlineMs / 1_000} s. Check the name server of this machine.`;
  return transientFault(faults.unreachable, message);
}
