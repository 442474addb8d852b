import { timingSafeEqual } from 'node:crypto';
import { Fault } from '../fault.ts';
import { deliveryMac, type EventReading, parseBodyExactly, readEvent } from '../paylink/wire.ts';
import type { LinkCredentials } from '../store/credentials.ts';
import type { ClaimedEvent } from '../store/store.ts';

/**
 * Reads a stored event into facts. The signature is verified a second time, over the bytes that came back from the
 * disk: `integrity_check` does not see most damage, and money moves only on bytes that the service signed.
 *
 * Faults, both terminal: `stored_event_damaged`, `unreadable_event`.
 */
export function readStoredEvent(event: ClaimedEvent, { secret }: LinkCredentials): EventReading {
  const mac = deliveryMac(secret, event.timestamp, event.body);
  if (event.mac.length !== mac.length || !timingSafeEqual(mac, event.mac)) {
    throw new Fault(
      'terminal',
      'stored_event_damaged',
      `The stored bytes of event ${event.eventKey} do not carry their signature any more. Either the disk damaged them, ` +
        `or the link's signing secret was corrected after they came. Have the service send the event again.`,
    );
  }
  const parsed = parseBodyExactly(event.body);
  if (parsed === undefined) {
    throw new Fault(
      'terminal',
      'unreadable_event',
      `Event ${event.eventKey} is authentic but not JSON that can be read. Look at its body, and at the payment in the ` +
        `service's panel.`,
    );
  }
  return readEvent(parsed);
}
