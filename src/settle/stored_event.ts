import { createHash, timingSafeEqual } from 'node:crypto';
import type { EventContent } from '../domain/fact.ts';
import { type Fault, terminalFault } from '../fault.ts';
import { parseBodyExactly } from '../json.ts';
import { deliveryMac, readEvent } from '../paylink/events.ts';
import { readReading } from '../paylink/reading.ts';
import type { LinkCredentials } from '../secrets/credentials.ts';
import type { ClaimedEvent } from '../store/verbs/inbox.ts';

/**
 * Reads a stored event into facts. First verifies its signature again, over the bytes read from disk: `integrity_check`
 * misses most damage, and money moves only on bytes that the service sent.
 * Terminal faults: `stored_event_damaged`, `unreadable_event`.
 */
export function readStoredEvent(event: ClaimedEvent, link: Secrets): EventContent {
  if (!isSignedFor(event, link)) throw damaged(event);
  const parsed = parseBodyExactly(event.body);
  if (parsed === undefined) {
    throw terminalFault(
      'unreadable_event',
      `Event ${event.eventKey} is authentic but not JSON that can be read. Look at its body, and at the payment in the ` +
        `service's panel.`,
    );
  }
  return readEvent(parsed);
}

/** Reads a stored reading into facts. A reading has no signature, so settled verifies its digest. Same faults. */
export function readStoredReading(event: ClaimedEvent, reading: number): EventContent {
  if (!isMac(event, createHash('sha256').update(event.body).digest())) throw damaged(event);
  return readReading(event.body, reading);
}

type Secrets = Pick<LinkCredentials, 'secret' | 'serviceSecret'>;

/** Whether the stored bytes match the signature that came with them, under either secret of the link. */
export function isSignedFor(event: ClaimedEvent, { secret, serviceSecret }: Secrets): boolean {
  const macWith = (key: string) => deliveryMac(key, event.timestamp, event.body);
  return isMac(event, macWith(secret)) || (serviceSecret !== undefined && isMac(event, macWith(serviceSecret())));
}

function isMac({ mac }: ClaimedEvent, expected: Buffer): boolean {
  return mac.length === expected.length && timingSafeEqual(expected, mac);
}

function damaged({ eventKey, reading }: ClaimedEvent): Fault {
  return terminalFault(
    'stored_event_damaged',
    reading === null
      ? `The stored bytes of event ${eventKey} no longer match their signature. Either the disk damaged them, ` +
          `or the link's signing secret was corrected after they came. Have the service send the event again.`
      : `The stored bytes of reading ${reading} (event ${eventKey}) are not those that came: the disk damaged them. Have ` +
          `the order checked again.`,
  );
}
