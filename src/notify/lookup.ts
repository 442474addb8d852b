import type { LookupAddress, LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isPrivateIp } from '../config/addresses.ts';
import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';

/** How long an answer is used. */
const KEPT_MS = 10_000;

export type Resolve = typeof lookup;

export type ShopLookupOptions = {
  resolve: Resolve;
  mayConnect: (address: string) => boolean;
  /** Every question is answered within this time, in real time. */
  deadlineMs: number;
  deadlineClock: Pick<Clock, 'after'>;
  clock: Pick<Clock, 'monotonicMs'>;
};

type Asker = (error: Error | null, addresses: readonly LookupAddress[]) => void;
type Answer = { addresses: readonly LookupAddress[]; untilMs: number };

/**
 * Resolves the shop's name for each connection, to those of its addresses that settled may connect to; fails if there
 * are none. All callers share one look-up at a time, because a look-up holds one of the process's few threads for
 * names, and cannot be cancelled.
 */
export function openShopLookup({
  resolve,
  mayConnect,
  deadlineMs,
  deadlineClock,
  clock,
}: ShopLookupOptions): LookupFunction {
  let kept: Answer | null = null;
  /** Callers that wait for the look-up under way; null while there is none. */
  let askers: Asker[] | null = null;
  let isLate = false;

  function answerAll(error: Error | null, addresses: readonly LookupAddress[]): void {
    const answered = askers ?? [];
    askers = [];
    for (const asker of answered) asker(error, addresses);
  }

  function ask(hostname: string, options: LookupOptions, asker: Asker): void {
    if (kept !== null && clock.monotonicMs() < kept.untilMs) asker(null, kept.addresses);
    else if (isLate) asker(tooSlow(deadlineMs), []);
    else if (askers !== null) askers.push(asker);
    else lookUp(hostname, options, asker);
  }

  function lookUp(hostname: string, options: LookupOptions, asker: Asker): void {
    askers = [asker];
    const cancel = deadlineClock.after(deadlineMs, () => {
      isLate = true;
      answerAll(tooSlow(deadlineMs), []);
    });
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      cancel();
      isLate = false;
      if (error === null) kept = { addresses, untilMs: clock.monotonicMs() + KEPT_MS };
      answerAll(error, addresses);
      askers = null;
    });
  }

  return (hostname, options, callback) => {
    ask(hostname, options, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter(({ address }) => mayConnect(address));
      const [first] = allowed;
      if (first === undefined) return callback(refusedAddress(addresses[0]?.address ?? hostname), '', 0);
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

export function refusedAddress(address: string): Fault {
  const why = isPrivateIp(address)
    ? 'only this network knows it. If the shop is meant to be there, set SETTLED_SHOP_ALLOW_PRIVATE=true'
    : 'notices do not leave this network in the clear. Use https in SETTLED_SHOP_URL';
  return new Fault('transient', 'shop_address_private', `The shop's address is ${address}: ${why}.`);
}

function tooSlow(deadlineMs: number): Fault {
  const message = `The shop's name was not resolved within ${deadlineMs / 1_000} s. Check the name server of this machine.`;
  return new Fault('transient', 'shop_unreachable', message);
}
