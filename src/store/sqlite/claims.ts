import { CLAIM_BYTES_MAX } from '../inbox.ts';
import { statement } from '../statement.ts';
import type { ClaimedEvent, Inbox } from '../store.ts';
import type { InTransaction } from '../transaction.ts';

const LAPSE_EVENTS = statement(
  `UPDATE inbox SET status = 'pending', holder = NULL WHERE status = 'leased' AND due_at_ms <= @nowMs`,
);
// A row that lost its bytes is claimed as well: its signature does not fit no bytes, and it is dead-lettered.
const DUE_EVENTS = statement(
  `SELECT i.key AS eventKey, i.attempt + 1 AS attempt, i.link_key AS linkKey, coalesce(b.body, x'') AS body,
     i.timestamp, i.mac, i.received_at_ms AS receivedAtMs, i.reading
   FROM inbox i LEFT JOIN inbox_body b ON b.inbox_key = i.key
   WHERE i.status = 'pending' AND i.due_at_ms <= @nowMs ORDER BY i.due_at_ms, i.key LIMIT @limit`,
);
const LEASE_EVENT = statement(
  `UPDATE inbox SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
   WHERE key = @eventKey`,
);

export const claimVerbs: InTransaction<Pick<Inbox, 'claimEvents'>> = {
  *claimEvents(tx, { limit, nowMs, leaseMs }) {
    tx.send(LAPSE_EVENTS, { nowMs });
    const claimed: ClaimedEvent[] = [];
    let bytes = 0;
    for (const event of yield* tx.all<ClaimedEvent>(DUE_EVENTS, { nowMs, limit })) {
      if (bytes >= CLAIM_BYTES_MAX) break;
      claimed.push(event);
      bytes += event.body.length;
      tx.send(LEASE_EVENT, { eventKey: event.eventKey, untilMs: nowMs + leaseMs, replica: tx.replica });
    }
    return claimed;
  },
};
